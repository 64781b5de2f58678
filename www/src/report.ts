import { type Engine, type HeadLabel, type MaskEffect, type Moved, mask, type Tensor } from "attnscope";
import type { Picture, Side } from "./picture.ts";
import { resultOf } from "./stages.ts";

/** What the heads of one side do. */
interface HeadsReport {
  readonly labels: readonly HeadLabel[];
  /** The mean entropy of each head's rows, in nats. */
  readonly entropy: readonly number[];
}

type Effect = Pick<MaskEffect, "freed" | "freedByHead" | "gains">;

/** What the engine's analysis says of a picture, a little later than the picture itself. */
export interface Report {
  readonly of: Picture;
  readonly layer: number;
  readonly before: HeadsReport;
  readonly after: HeadsReport;
  readonly effect: Effect;
  readonly moved: Moved;
}

type Analysis = Engine["analysis"];

/** Weights that are sent to the engine at a time: they are copied, for which the page would wait. */
const AT_ONCE = 2 ** 18;

/** Lets the page go on. */
const turn = () => new Promise((resolve) => setTimeout(resolve));

/**
 * What the engine's analysis says of one layer of a picture; of many weights it is asked head by head.
 *
 * @throws whatever `goOn` throws, which is asked between two questions
 */
export async function reportOf(analysis: Analysis, picture: Picture, layer: number, goOn: () => void): Promise<Report> {
  const { before, after } = picture;
  const result = resultOf(picture);
  const [one, other] = [before, after].map((side) => side.trace.stage("weights", { layer })) as [Tensor, Tensor];
  const ask: Ask = async (question) => {
    if (one.data.length > AT_ONCE) await turn();
    goOn();
    return question();
  };
  const isSame = before.trace === after.trace;
  const headsBefore = await headsReport(analysis, picture, before, one, ask);
  return {
    of: picture,
    layer,
    before: headsBefore,
    after: isSame ? headsBefore : await headsReport(analysis, picture, after, other, ask),
    effect: isSame ? nothingFreed(one) : await effectOf(analysis, one, other, ask),
    moved: await analysis.moved(before.trace.stage(result, { layer }), after.trace.stage(result, { layer })),
  };
}

type Ask = <Answer>(question: () => Promise<Answer>) => Promise<Answer>;

/** Parts of weights `[heads, n_q, n_k]`: one where they are few, else each head. */
function parts({ data, shape: [heads = 1, ...size] }: Tensor): readonly Tensor[] {
  if (data.length <= AT_ONCE) return [{ data, shape: [heads, ...size] }];
  const length = data.length / heads;
  return Array.from({ length: heads }, (_, head) => ({
    data: data.subarray(head * length, (head + 1) * length),
    shape: [1, ...size],
  }));
}

async function headsReport(
  analysis: Analysis,
  { tokens, keyTokens }: Picture,
  side: Side,
  weights: Tensor,
  ask: Ask,
): Promise<HeadsReport> {
  const options = {
    tokens: keyTokens === tokens ? tokens : null,
    // A head by itself may happen to look at nothing behind its query.
    mask: side.mask ?? mask.padding(keyTokens.length),
  };
  // A mask that differs between heads is one for all of them.
  const isForEach = side.allowed.length > tokens.length * keyTokens.length;
  const labels: HeadLabel[] = [];
  for (const part of isForEach ? [weights] : parts(weights)) {
    labels.push(...(await ask(() => analysis.labelHeads(part, options))));
  }
  const entropy: number[] = [];
  for (const part of parts(weights)) {
    const { data, shape } = await ask(() => analysis.entropy(part));
    const [heads = 1, n = 1] = shape;
    for (let head = 0; head < heads; head++) entropy.push(mean(data.subarray(head * n, (head + 1) * n)));
  }
  return { labels, entropy };
}

async function effectOf(analysis: Analysis, before: Tensor, after: Tensor, ask: Ask): Promise<Effect> {
  const effect = nothingFreed(before);
  const [then, now] = [parts(before), parts(after)];
  const gains: MaskEffect["gains"] = [];
  // As many as the engine tells of at once.
  let most = 0;
  for (const [i, part] of then.entries()) {
    const { freed, freedByHead, ...rest } = await ask(() => analysis.maskEffect(part, now[i] as Tensor));
    effect.freed.data.set(freed.data, i * freed.data.length);
    effect.freedByHead.data.set(freedByHead.data, i * freedByHead.data.length);
    most = Math.max(most, rest.gains.length);
    gains.push(...rest.gains.map((gain) => ({ ...gain, index: [i + (gain.index[0] ?? 0), ...gain.index.slice(1)] })));
  }
  return { ...effect, gains: gains.sort((a, b) => b.change - a.change).slice(0, most) };
}

function nothingFreed({ shape: [heads = 1, rows = 1] }: Tensor): Effect {
  const zeros = (...shape: number[]) => ({ data: new Float32Array(shape.reduce((a, b) => a * b)), shape });
  return { freed: zeros(heads, rows), freedByHead: zeros(heads), gains: [] };
}

function mean(values: Float32Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
