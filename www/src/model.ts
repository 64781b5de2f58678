import type { Engine, MultiHeadAttentionOptions, StateDict, Tensor, Trace, TransformerOptions } from "attnscope";
import type { Kind } from "./matrices.ts";

/** What computes. */
export interface Model {
  stateDict(): Promise<StateDict>;
  loadStateDict(weights: StateDict): Promise<void>;
  /** A pass that keeps every stage. `memory` is what a decoder looks at, or where attention's keys and values come from. */
  pass(x: Tensor, memory: Tensor | null, how: PassOptions): Promise<Trace>;
}

/** What attention takes, and what blocks take beside it. */
export interface ModelOptions
  extends Pick<MultiHeadAttentionOptions, "dModel" | "nHeads" | "dK" | "dV" | "bias" | "generator"> {
  readonly scale: number | undefined;
  readonly blocks: Pick<TransformerOptions, "dFf" | "activation" | "normFirst"> & { readonly nLayers: number };
}

export interface PassOptions {
  readonly headMask: readonly number[] | undefined;
  readonly onProgress: (part: number) => void;
}

type Kept = PassOptions & { readonly trace: true; readonly needWeights: false };

export function makeModel(engine: Engine, kind: Kind, { blocks, dV, ...options }: ModelOptions): Model {
  const made = (
    module: Pick<Model, "stateDict" | "loadStateDict">,
    forward: (x: Tensor, memory: Tensor | null, how: Kept) => Promise<{ readonly trace: Trace | null }>,
  ): Model => ({
    stateDict: () => module.stateDict(),
    loadStateDict: (weights) => module.loadStateDict(weights),
    // The weights are a stage, which is not to be sent twice.
    pass: async (x, memory, how) =>
      (await forward(x, memory, { ...how, trace: true, needWeights: false })).trace as Trace,
  });
  switch (kind) {
    case "attention": {
      const module = engine.multiHeadAttention({ ...options, dV });
      return made(module, (x, key, how) => module.forward(x, { ...how, key }));
    }
    case "encoder": {
      const module = engine.transformer({ ...options, ...blocks });
      return made(module, (x, _, how) => module.forward(x, how));
    }
    case "decoder": {
      const module = engine.decoder({ ...options, ...blocks });
      return made(module, (x, memory, how) => module.forward(x, memory ?? x, how));
    }
  }
}
