import type { Engine, HeadLabel, MaskEffect, Moved, Tensor } from "attnscope";
import type { Picture, Side } from "./picture.ts";
import { resultOf } from "./stages.ts";

/** What the heads of one side do. */
interface HeadsReport {
  readonly labels: readonly HeadLabel[];
  /** The mean entropy of each head's rows, in nats. */
  readonly entropy: readonly number[];
}

/** What the engine's analysis says of a picture, a little later than the picture itself. */
export interface Report {
  readonly of: Picture;
  readonly layer: number;
  readonly before: HeadsReport;
  readonly after: HeadsReport;
  readonly effect: MaskEffect;
  readonly moved: Moved;
}

type Analysis = Engine["analysis"];

/** What the engine's analysis says of one layer of a picture. */
export async function reportOf(analysis: Analysis, picture: Picture, layer: number): Promise<Report> {
  const { before, after } = picture;
  const result = resultOf(picture);
  const weights = [before.trace.stage("weights", { layer }), after.trace.stage("weights", { layer })] as const;
  const headsBefore = headsReport(analysis, picture, before, weights[0]);
  const [one, other, effect, moved] = await Promise.all([
    headsBefore,
    before.trace === after.trace ? headsBefore : headsReport(analysis, picture, after, weights[1]),
    analysis.maskEffect(...weights),
    analysis.moved(before.trace.stage(result, { layer }), after.trace.stage(result, { layer })),
  ]);
  return { of: picture, layer, before: one, after: other, effect, moved };
}

async function headsReport(
  analysis: Analysis,
  { tokens, keyTokens, nHeads }: Picture,
  { mask }: Side,
  weights: Tensor,
): Promise<HeadsReport> {
  const [labels, entropies] = await Promise.all([
    analysis.labelHeads(weights, { tokens: keyTokens === tokens ? tokens : null, mask }),
    analysis.entropy(weights),
  ]);
  const n = entropies.data.length / nHeads;
  const entropy = labels.map((_, head) => mean(entropies.data.subarray(head * n, (head + 1) * n)));
  return { labels, entropy };
}

function mean(values: Float32Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
