import type { Stage, Tensor } from "attnscope";
import type { Axes, PaletteName } from "attnscope/views";
import { atOnce, SLICE } from "./in-slices.ts";
import type { Picture } from "./picture.ts";

type Lines = Pick<Picture, "keyTokens" | "memoryTokens">;

/** Whether a stage is one of a decoder's attention to the memory. */
export function isCross(stage: Stage): boolean {
  return stage.startsWith("cross_");
}

/** The stage, or the one of the first attention that it is the like of. */
export function plainStage(stage: Stage): Stage {
  return stage.replace(/^cross_/, "") as Stage;
}

/** What a stage's rows and columns are. */
export function axesOf(stage: Stage): Axes {
  switch (plainStage(stage)) {
    case "scores":
    case "scaled":
    case "masked":
    case "weights":
      return { row: "query", column: "key" };
    case "memory":
    case "key_input":
    case "key":
    case "value":
      return { row: "key", column: "feature" };
    default:
      return { row: "query", column: "feature" };
  }
}

/** The tokens of the keys that a stage is about. */
export function keysOf({ keyTokens, memoryTokens }: Lines, stage: Stage): readonly string[] {
  return memoryTokens && (stage === "memory" || isCross(stage)) ? memoryTokens : keyTokens;
}

/** The tokens that a stage's rows are of. */
export function rowsOf(picture: Picture, stage: Stage): readonly string[] {
  return axesOf(stage).row === "key" ? keysOf(picture, stage) : picture.tokens;
}

/** A name for each column of a stage: the keys, the features where they have names, else numbers. */
export function columnsOf(picture: Picture, stage: Stage): readonly string[] {
  if (axesOf(stage).column === "key") return keysOf(picture, stage);
  const { features, sizes } = picture;
  /** Of readable heads, whose values and feed-forward network carry words alone. */
  const word = (column: number) => (column < sizes.dFf ? features[column] : undefined);
  const numbered = (name: (column: number) => string | undefined, count: number) =>
    Array.from({ length: count }, (_, column) => name(column) ?? String(column));
  switch (plainStage(stage)) {
    case "query":
    case "key":
      return numbered(String, sizes.dK);
    case "value":
    case "context":
      return numbered(word, sizes.dV);
    case "concat":
      return numbered((column) => word(column % sizes.dV), sizes.nHeads * sizes.dV);
    case "hidden":
    case "activation":
      return numbered(word, sizes.dFf);
    default:
      return numbered((column) => features[column], sizes.dModel);
  }
}

/** The stages of a picture's pass, those that a layer has. */
export function stagesOf({ after, kind }: Picture, layer: number): readonly Stage[] {
  const { stages } = after.trace;
  return layer === 0 || kind !== "decoder" ? stages : stages.filter((stage) => stage !== "memory");
}

/** What a layer gives. */
export function resultOf({ after }: Picture): Stage {
  return after.trace.stages.at(-1) ?? "output";
}

/** Whether a mask changes a stage, so that with and without can be compared. */
export function isAfterMask({ after }: Picture, stage: Stage, layer: number): boolean {
  const { stages } = after.trace;
  return stage !== "memory" && (layer > 0 || stages.indexOf(stage) > stages.indexOf("masked"));
}

/** Whether hidden cells are hatched in a stage. */
export function showsMask(stage: Stage): boolean {
  return stage === "masked" || stage === "weights";
}

/** Whether a stage is one of weights, from 0 to 1. */
export function isWeights(stage: Stage): boolean {
  return plainStage(stage) === "weights";
}

/** A stage as `[heads, rows, columns]`; a stage that is not split into heads is one matrix. */
export function byHead({ data, shape }: Tensor): Tensor {
  return shape.length === 2 ? { data, shape: [1, ...shape] } : { data, shape };
}

const differences = new WeakMap<Float32Array, { readonly from: Float32Array; readonly made: Tensor }>();

/** Makes the {@link difference} of two passes in slices. */
export function* subtracting(one: Tensor, other: Tensor): Generator<void> {
  const data = new Float32Array(one.data.length);
  for (let start = 0; start < data.length; start += SLICE) {
    if (start > 0) yield;
    const end = Math.min(data.length, start + SLICE);
    for (let i = start; i < end; i++) data[i] = (one.data[i] as number) - (other.data[i] as number);
  }
  differences.set(one.data, { from: other.data, made: { data, shape: one.shape } });
}

/** Whether {@link difference} takes no longer than the page can wait. */
export function isDifferenceAtHand(one: Tensor, other: Tensor): boolean {
  return one.data.length <= SLICE || differences.get(one.data)?.from === other.data;
}

/** One minus the other; made once for two passes. */
export function difference(one: Tensor, other: Tensor): Tensor {
  if (differences.get(one.data)?.from !== other.data) atOnce(subtracting(one, other));
  return differences.get(one.data)?.made as Tensor;
}

/** The colours of a stage: weights run from 0 to 1, signed stages as far to either side of 0 as they reach. */
export function colorsOf(stage: Stage, isDifference = false) {
  if (isWeights(stage) && !isDifference) return { palette: "sequential" as PaletteName, domain: [0, 1] as const };
  return { palette: "diverging" as PaletteName, domain: undefined };
}

/** The value that lines and bars draw largest: 1 for weights, else the largest magnitude that is not hidden. */
export function reachOf(stage: Stage, { data }: Tensor, hidden: Uint8Array | null, isDifference: boolean): number {
  if (isWeights(stage) && !isDifference) return 1;
  let reach = 0;
  const period = hidden?.length ?? data.length;
  for (let start = 0; start < data.length; start += period) {
    for (let i = 0; i < period; i++) {
      const size = Math.abs(data[start + i] as number);
      if (size > reach && size !== Infinity && !hidden?.[i]) reach = size;
    }
  }
  return reach || 1;
}

/** One head's part of what is the same for all heads, or given for each. */
export function cellsOf(cells: Uint8Array, size: number, head: number): Uint8Array {
  return cells.length > size ? cells.subarray(head * size, (head + 1) * size) : cells;
}
