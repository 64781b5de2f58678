import type { Mask, StateDict, Tensor, Trace } from "attnscope";
import type { Kind } from "./matrices.ts";
import type { Numbers } from "./state.ts";

/** A pass under one mask. */
export interface Side {
  readonly trace: Trace;
  readonly mask: Mask | null;
  /** Nonzero where a query may attend to a key: one matrix for all heads, or one for each. */
  readonly allowed: Uint8Array;
  /** Its opposite; null without a mask. */
  readonly hidden: Uint8Array | null;
}

export interface Sizes {
  readonly dModel: number;
  readonly nHeads: number;
  readonly dK: number;
  readonly dV: number;
  /** Of blocks. */
  readonly dFf: number;
}

/** What is on the page at one moment: one input, and the two passes that are compared. */
export interface Picture {
  /** The queries' tokens. */
  readonly tokens: readonly string[];
  /** The keys' tokens, under the mask; the same but for cross-attention by itself. */
  readonly keyTokens: readonly string[];
  /** The tokens that a decoder's second attention looks at; else null. */
  readonly memoryTokens: readonly string[] | null;
  /** Names of the columns of input and output; empty where they are only numbered. */
  readonly features: readonly string[];
  readonly kind: Kind;
  readonly nLayers: number;
  readonly nHeads: number;
  readonly off: readonly number[];
  readonly numbers: Numbers;
  readonly sizes: Sizes;
  readonly x: Tensor;
  /** What keys and values are made from, in a decoder those of the second attention; null where that is x. */
  readonly memory: Tensor | null;
  /** Null where they are drawn of the seed alone. */
  readonly weights: StateDict | null;
  /** Without a mask, or under mask A of two. */
  readonly before: Side;
  readonly after: Side;
}

/** What every mask of a picture lies on: its input and its parameters, and the pass without a mask. */
export interface Base extends Omit<Picture, "before" | "after"> {
  readonly plain: Trace;
}

// Beyond it the weights are too many to be sent back to the engine with every stroke, and two pictures too much to be held there.
const LARGE = 2 ** 24;

export function isLarge({ tokens, keyTokens, nHeads }: Picture): boolean {
  return tokens.length * keyTokens.length * nHeads > LARGE;
}
