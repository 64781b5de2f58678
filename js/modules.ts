import { AttnError, invalidOption, refusedOption } from "./errors.ts";
import type {
  Mask as MaskRule,
  ForwardOptions as RustForwardOptions,
  MultiHeadAttentionOptions as RustMultiHeadAttentionOptions,
  TransformerOptions as RustTransformerOptions,
} from "./generated.ts";
import { Generator } from "./generator.ts";
import type { ModuleKind } from "./host.ts";
import type { Link } from "./link.ts";
import { type Mask, optionalRule } from "./mask.ts";
import { type Given, given } from "./options.ts";
import { givingUp, type ReuseOptions } from "./reuse.ts";
import { shown } from "./shown.ts";
import { lentTensor, type Tensor, type TensorLike, toTensor } from "./tensor.ts";
import { type Asked, isLazy, type LazyOption, type Passed, type Trace } from "./trace.ts";
import { type WatchOptions, watchOf } from "./watch.ts";

/** Parameters by name. */
export type StateDict = Record<string, Tensor>;

/** Where a module's weights are drawn from; without either, seed 0. */
export interface Drawn {
  /** As `torch.manual_seed(seed)` just before the module is built. */
  seed?: number | bigint | undefined;
  /** A generator in use. */
  generator?: Generator | undefined;
}

type Needed = "dModel" | "nHeads";
type Sizes<T extends Record<Needed, number>> = Pick<T, Needed> & Given<Omit<T, Needed | "seed">>;

/** Options of `engine.multiHeadAttention`. */
export interface MultiHeadAttentionOptions extends Sizes<RustMultiHeadAttentionOptions>, Drawn {}

/** Options of `engine.transformer` and `engine.decoder`; without `nLayers`, of a block. */
export interface TransformerOptions extends Sizes<RustTransformerOptions>, Drawn {}

/** What every pass may say. */
interface PassOptions<Weighed extends boolean = boolean, Traced extends boolean = boolean>
  extends Given<RustForwardOptions>,
    ReuseOptions,
    WatchOptions {
  /** Whether the result holds the weights; default true. */
  needWeights?: Weighed | undefined;
  /** Whether every stage is kept; default false. */
  trace?: Traced | undefined;
  /** Which key a query may attend to; default all. */
  mask?: Mask | null | undefined;
}

/** Options of a pass through a block or stack. */
export interface ForwardOptions<Weighed extends boolean = boolean, Traced extends boolean = boolean>
  extends PassOptions<Weighed, Traced> {
  /** Where dropout draws from, with `training: true`. */
  generator?: Generator | undefined;
}

/** Options of a pass through a decoder. */
export interface DecoderForwardOptions<Weighed extends boolean = boolean, Traced extends boolean = boolean>
  extends ForwardOptions<Weighed, Traced> {
  /** Which row of the memory a query may attend to; default all. */
  memoryMask?: Mask | null | undefined;
}

/** Options of a pass through multi-head attention. */
export interface AttentionForwardOptions<Weighed extends boolean = boolean, Traced extends boolean = boolean>
  extends Omit<PassOptions<Weighed, Traced>, "training"> {
  /** `[n_k, kDim]`: what the keys are made from; default x. */
  key?: TensorLike | null | undefined;
  /** `[n_k, vDim]`: what the values are made from; default the key's. */
  value?: TensorLike | null | undefined;
}

/** What a pass through a module with one attention gives. */
export interface ForwardResult<Weighed extends boolean = boolean, Traced extends boolean = boolean> {
  /** `[n_q, dModel]`, with `[batch, ...]` in front where x has it */
  readonly output: Tensor;
  /** `[nHeads, n_q, n_k]`, or null with `needWeights: false` */
  readonly weights: Asked<Weighed, Tensor>;
  /** Every stage with `trace: true`, else null */
  readonly trace: Asked<Traced, Trace>;
}

/** What a pass through a stack gives. */
export interface StackResult<Weighed extends boolean = boolean, Traced extends boolean = boolean> {
  /** `[n, dModel]`, with `[batch, ...]` in front where x has it */
  readonly output: Tensor;
  /** One tensor a layer, or null with `needWeights: false` */
  readonly weights: Asked<Weighed, Tensor[]>;
  /** Every stage with `trace: true`, else null */
  readonly trace: Asked<Traced, Trace>;
}

/** What a pass through a decoder's block gives. */
export interface DecoderBlockResult<Weighed extends boolean = boolean, Traced extends boolean = boolean> {
  /** `[n, dModel]`, with `[batch, ...]` in front where x has it */
  readonly output: Tensor;
  /** `[nHeads, n, n]`: its attention to itself; null with `needWeights: false` */
  readonly selfWeights: Asked<Weighed, Tensor>;
  /** `[nHeads, n, n_memory]`: its attention to the memory */
  readonly crossWeights: Asked<Weighed, Tensor>;
  /** Every stage with `trace: true`, else null */
  readonly trace: Asked<Traced, Trace>;
}

/** What a pass through a decoder gives. */
export interface DecoderResult<Weighed extends boolean = boolean, Traced extends boolean = boolean> {
  /** `[n, dModel]`, with `[batch, ...]` in front where x has it */
  readonly output: Tensor;
  /** Each layer's attention to itself, `[nHeads, n, n]`; null with `needWeights: false` */
  readonly selfWeights: Asked<Weighed, Tensor[]>;
  /** Each layer's attention to the memory, `[nHeads, n, n_memory]` */
  readonly crossWeights: Asked<Weighed, Tensor[]>;
  /** Every stage with `trace: true`, else null */
  readonly trace: Asked<Traced, Trace>;
}

/** Which entries are loaded. */
export interface LoadOptions {
  /** Of a dict with several layers, the one that a module of one layer takes. */
  layer?: number | undefined;
  /** How the names begin that are to be loaded, as `"vision_model."`; other entries are passed over. */
  prefix?: string | undefined;
}

/** What a module is given, as the engine names it. */
type Inputs = {
  x: Tensor;
  key?: Tensor | null | undefined;
  value?: Tensor | null | undefined;
  memory?: Tensor | undefined;
  memoryMask?: MaskRule | null | undefined;
};

/** A module of the engine that has weights. */
export class Weighted {
  readonly #link: Link;
  readonly #id: number;

  /** @internal */
  protected constructor(link: Link, kind: ModuleKind, options: Drawn) {
    this.#link = link;
    this.#id = link.newId();
    const settings = Weighted.settings(options);
    const generator = Generator.idIn(link, options.generator ?? new Generator(link, options.seed ?? 0));
    link.send({ op: kind, id: this.#id, options: settings, generator });
    link.watch(this, this.#id);
  }

  /** The options that the engine reads: all but where the weights come from. @internal */
  static settings<T extends Drawn>(options: T): Omit<T, keyof Drawn> {
    const { seed, generator, ...settings } = given(options);
    if (seed !== undefined && generator !== undefined) {
      throw refusedOption("generator", "both a generator and a seed", "at most one of them");
    }
    if (generator !== undefined && !(generator instanceof Generator)) {
      throw invalidOption("generator", generator, "what engine.torchGenerator gives");
    }
    return settings;
  }

  /** The name of a module where it lives; `invalid_option` for one of another engine. @internal */
  static idIn(link: Link, module: Weighted): number {
    if (module.#link === link) return module.#id;
    throw refusedOption("module", "a module of another engine", "one of this engine");
  }

  /**
   * The parameters by name, copied; weights are `[out_features, in_features]`.
   *
   * ```ts
   * const mha = engine.multiHeadAttention({ dModel: 4, nHeads: 2, bias: false });
   * console.log(Object.keys(await mha.stateDict())); // [ 'query.weight', 'key.weight', 'value.weight', 'out.weight' ]
   * ```
   */
  async stateDict(): Promise<StateDict> {
    return Object.fromEntries(await this.#link.call<[string, Tensor][]>({ op: "stateDict", id: this.#id }));
  }

  /**
   * Takes the parameters from a state dict: its own, or one with the names of the posts, of PyTorch's modules, or of BERT,
   * DistilBERT, GPT-2, GPT-NeoX, LLaMA, Mistral, Qwen, Phi-3, T5, ViT, BART, CLIP or llama.cpp. Wrappers in front (`module.`,
   * `_orig_mod.`, `model.`) are dropped, fused projections split, transposed ones turned; embeddings and heads are passed over.
   *
   * ```ts
   * const mha = engine.multiHeadAttention({ dModel: 2, nHeads: 1, bias: false });
   * const identity = [[1, 0], [0, 1]];
   * await mha.loadStateDict({
   *   "query.weight": identity,
   *   "key.weight": identity,
   *   "value.weight": identity,
   *   "out.weight": identity,
   * });
   * const { output } = await mha.forward([[5, 6]]);
   * console.log(output.data); // Float32Array(2) [ 5, 6 ]
   * ```
   *
   * @throws AttnError `bad_state_dict` naming the entry that is missing, extra or of the wrong shape; then nothing was loaded
   */
  async loadStateDict(dict: Readonly<Record<string, TensorLike>>, options: LoadOptions = {}): Promise<void> {
    const { layer, prefix = "" } = given(options, ["layer", "prefix"]);
    if (layer !== undefined && !(Number.isInteger(layer) && layer >= 0)) {
      throw invalidOption("layer", layer, "a whole number of at least 0");
    }
    const refuse = (found: string, expected: string) => {
      throw new AttnError("bad_state_dict", `found ${found}, expected ${expected}`, { found, expected });
    };
    if (typeof dict !== "object" || dict === null) refuse(shown(dict), "an object of tensors by name");
    if (typeof prefix !== "string") throw invalidOption("prefix", prefix, "how names begin");
    const named = Object.entries(dict).filter(([name]) => name.startsWith(prefix));
    const [first] = Object.keys(dict);
    if (named.length === 0 && first !== undefined) {
      refuse(`names such as ${shown(first)}`, `some that begin with the prefix ${shown(prefix)}`);
    }
    const entries = named.map(([name, tensor]): [string, Tensor] => [
      name.slice(prefix.length),
      toTensor(tensor, name),
    ]);
    await this.#link.call({ op: "loadStateDict", id: this.#id, entries, layer });
  }

  /** Runs a pass on what `inputsOf` gives. @internal */
  protected pass(
    { mask, lazy, reuse, ...settings }: PassOptions & LazyOption,
    inputsOf: () => Inputs,
    generator?: Generator,
  ): ReturnType<Link["pass"]> {
    return givingUp(reuse, async (spares) => {
      if (generator !== undefined && !(generator instanceof Generator)) {
        throw invalidOption("generator", generator, "what engine.torchGenerator gives");
      }
      const [watch, options] = watchOf(settings);
      const request = {
        op: "forward",
        id: this.#id,
        inputs: inputsOf(),
        mask: optionalRule(mask, "mask"),
        options,
        isLazy: isLazy(lazy),
        spares,
        generator: options.training && generator ? Generator.idIn(this.#link, generator) : null,
        trace: this.#link.newId(),
      } as const;
      return this.#link.pass(request, watch);
    });
  }

  /** The same where there is dropout, which may be drawn from a generator. @internal */
  protected passWithDropout(
    { generator, ...options }: ForwardOptions & LazyOption,
    inputsOf: () => Inputs,
  ): ReturnType<Link["pass"]> {
    return this.pass(options, inputsOf, generator);
  }
}

/** Multi-head attention with its weights, after `torch.nn.MultiheadAttention`. */
export class MultiHeadAttention extends Weighted {
  /** @internal */
  constructor(link: Link, options: MultiHeadAttentionOptions) {
    super(link, "attention", options);
  }

  /**
   * Attends from `x` `[n, dModel]` or `[batch, n, dModel]` to itself, or to `key` and `value`.
   *
   * ```ts
   * const mha = engine.multiHeadAttention({ dModel: 4, nHeads: 2 });
   * const x = [[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]];
   * const { output, weights, trace } = await mha.forward(x, { mask: mask.causal(), trace: true });
   * console.log(output.shape, weights.shape); // [ 3, 4 ] [ 2, 3, 3 ]
   * console.log(trace.stage("scores").shape); // [ 2, 3, 3 ]
   * ```
   *
   * @throws AttnError `invalid_tensor`, `shape_mismatch`, `mask_shape`, `invalid_option`, `too_large`; the signal's reason
   */
  async forward<Weighed extends boolean = true, Traced extends boolean = false, Lazy extends boolean = false>(
    x: TensorLike,
    options: AttentionForwardOptions<Weighed, Traced> & LazyOption<Lazy> = {},
  ): Promise<Passed<Lazy, ForwardResult<Weighed, Traced>>> {
    const { key, value, ...rest } = given(options);
    const { output, weights, trace } = await this.pass(rest, () => ({
      x: lentTensor(x, "x"),
      key: key == null ? null : lentTensor(key, "key"),
      value: value == null ? null : lentTensor(value, "value"),
    }));
    return { output, weights: weights[0] ?? null, trace } as Passed<Lazy, ForwardResult<Weighed, Traced>>;
  }
}

/** A transformer block, after `torch.nn.TransformerEncoderLayer`. */
export class TransformerBlock extends Weighted {
  /** @internal */
  constructor(link: Link, options: Omit<TransformerOptions, "nLayers">) {
    super(link, "encoder", options);
  }

  /** `x` is `[n, dModel]` or `[batch, n, dModel]`. @throws AttnError as {@link MultiHeadAttention.forward} */
  async forward<Weighed extends boolean = true, Traced extends boolean = false, Lazy extends boolean = false>(
    x: TensorLike,
    options: ForwardOptions<Weighed, Traced> & LazyOption<Lazy> = {},
  ): Promise<Passed<Lazy, ForwardResult<Weighed, Traced>>> {
    const { output, weights, trace } = await this.passWithDropout(given(options), () => ({ x: lentTensor(x, "x") }));
    return { output, weights: weights[0] ?? null, trace } as Passed<Lazy, ForwardResult<Weighed, Traced>>;
  }
}

/** A stack of transformer blocks; the mask holds in each. */
export class Transformer extends Weighted {
  /** @internal */
  constructor(link: Link, options: TransformerOptions) {
    super(link, "encoder", options);
  }

  /** `x` is `[n, dModel]` or `[batch, n, dModel]`. @throws AttnError as {@link MultiHeadAttention.forward} */
  async forward<Weighed extends boolean = true, Traced extends boolean = false, Lazy extends boolean = false>(
    x: TensorLike,
    options: ForwardOptions<Weighed, Traced> & LazyOption<Lazy> = {},
  ): Promise<Passed<Lazy, StackResult<Weighed, Traced>>> {
    const { output, weights, trace } = await this.passWithDropout(given(options), () => ({ x: lentTensor(x, "x") }));
    return { output, weights: everyLayers(weights), trace } as Passed<Lazy, StackResult<Weighed, Traced>>;
  }
}

/** A decoder's block, after `torch.nn.TransformerDecoderLayer`: attention to itself, then to a memory. */
export class DecoderBlock extends Weighted {
  /** @internal */
  constructor(link: Link, options: Omit<TransformerOptions, "nLayers">) {
    super(link, "decoder", options);
  }

  /** `x` and `memory` are `[n, dModel]` or `[batch, n, dModel]`. @throws AttnError as {@link MultiHeadAttention.forward} */
  async forward<Weighed extends boolean = true, Traced extends boolean = false, Lazy extends boolean = false>(
    x: TensorLike,
    memory: TensorLike,
    options: DecoderForwardOptions<Weighed, Traced> & LazyOption<Lazy> = {},
  ): Promise<Passed<Lazy, DecoderBlockResult<Weighed, Traced>>> {
    const { output, weights, crossWeights, trace } = await this.passWithDropout(...decoderInputs(x, memory, options));
    return {
      output,
      selfWeights: weights[0] ?? null,
      crossWeights: crossWeights[0] ?? null,
      trace,
    } as Passed<Lazy, DecoderBlockResult<Weighed, Traced>>;
  }
}

/** A stack of a decoder's blocks; the masks hold in each. */
export class Decoder extends Weighted {
  /** @internal */
  constructor(link: Link, options: TransformerOptions) {
    super(link, "decoder", options);
  }

  /** `x` and `memory` are `[n, dModel]` or `[batch, n, dModel]`. @throws AttnError as {@link MultiHeadAttention.forward} */
  async forward<Weighed extends boolean = true, Traced extends boolean = false, Lazy extends boolean = false>(
    x: TensorLike,
    memory: TensorLike,
    options: DecoderForwardOptions<Weighed, Traced> & LazyOption<Lazy> = {},
  ): Promise<Passed<Lazy, DecoderResult<Weighed, Traced>>> {
    const { output, weights, crossWeights, trace } = await this.passWithDropout(...decoderInputs(x, memory, options));
    return {
      output,
      selfWeights: everyLayers(weights),
      crossWeights: everyLayers(crossWeights),
      trace,
    } as Passed<Lazy, DecoderResult<Weighed, Traced>>;
  }
}

function decoderInputs(
  x: TensorLike,
  memory: TensorLike,
  options: DecoderForwardOptions & LazyOption,
): [ForwardOptions & LazyOption, () => Inputs] {
  const { memoryMask, ...rest } = given(options);
  const inputsOf = () => ({
    x: lentTensor(x, "x"),
    memory: lentTensor(memory, "memory"),
    memoryMask: optionalRule(memoryMask, "memoryMask"),
  });
  return [rest, inputsOf];
}

/** Every layer's weights, or null where they were not asked for. */
function everyLayers(weights: (Tensor | null)[]): Tensor[] | null {
  const kept = weights.filter((layer) => layer !== null);
  return kept.length === weights.length ? kept : null;
}
