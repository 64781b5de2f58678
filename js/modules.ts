import { AttnError, invalidOption } from "./errors.ts";
import type {
  ForwardOptions as RustForwardOptions,
  MultiHeadAttentionOptions as RustMultiHeadAttentionOptions,
  TransformerOptions as RustTransformerOptions,
} from "./generated.ts";
import { Generator } from "./generator.ts";
import type { PassReply } from "./host.ts";
import type { Link } from "./link.ts";
import { type Mask, optionalRule } from "./mask.ts";
import { given } from "./options.ts";
import { type Tensor, type TensorLike, toTensor } from "./tensor.ts";
import type { Trace } from "./trace.ts";

/** Parameters by name. */
export type StateDict = Record<string, Tensor>;

/** Where a module's weights are drawn from; without either, seed 0. */
export interface Drawn {
  /** As `torch.manual_seed(seed)` just before the module is built. */
  seed?: number | bigint;
  /** A generator in use. */
  generator?: Generator;
}

type Sizes<T extends { dModel: number; nHeads: number }> = Pick<T, "dModel" | "nHeads"> & Partial<Omit<T, "seed">>;

/** Options of `engine.multiHeadAttention`. */
export type MultiHeadAttentionOptions = Sizes<RustMultiHeadAttentionOptions> & Drawn;

/** Options of `engine.transformerBlock` and `engine.transformer`. */
export type TransformerOptions = Sizes<RustTransformerOptions> & Drawn;

/** Options of a pass through a block or stack. */
export interface ForwardOptions extends Partial<RustForwardOptions> {
  /** Which key a query may attend to; default all. */
  mask?: Mask | null;
}

/** Options of a pass through multi-head attention. */
export interface AttentionForwardOptions extends ForwardOptions {
  /** `[n_k, kDim]`: what the keys are made from; default x. */
  key?: TensorLike | null;
  /** `[n_k, vDim]`: what the values are made from; default the key's. */
  value?: TensorLike | null;
}

/** What a pass through a module with one attention gives. */
export interface ForwardResult {
  /** `[n_q, dModel]`, with `[batch, ...]` in front where x has it */
  readonly output: Tensor;
  /** `[nHeads, n_q, n_k]`, or null with `needWeights: false` */
  readonly weights: Tensor | null;
  /** Every stage with `trace: true`, else null */
  readonly trace: Trace | null;
}

/** What a pass through a stack gives. */
export interface StackResult {
  readonly output: Tensor;
  /** One tensor a layer, or null with `needWeights: false` */
  readonly weights: Tensor[] | null;
  readonly trace: Trace | null;
}

/** A module of the engine that has weights. */
export class Weighted {
  readonly #link: Link;
  readonly #id: number;

  /** @internal */
  protected constructor(link: Link, kind: "attention" | "transformer", options: Drawn) {
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
      throw invalidOption("generator", "a generator beside a seed", "one of them");
    }
    if (generator !== undefined && !(generator instanceof Generator)) {
      throw invalidOption("generator", generator, "what engine.torchGenerator gives");
    }
    return settings;
  }

  /** The name of a module where it lives; `invalid_option` for one of another engine. @internal */
  static idIn(link: Link, module: Weighted): number {
    if (module.#link === link) return module.#id;
    throw invalidOption("module", "a module of another engine", "one of this engine");
  }

  /** The parameters by name, copied; weights are `[out_features, in_features]`. */
  async stateDict(): Promise<StateDict> {
    return Object.fromEntries(await this.#link.call<[string, Tensor][]>({ op: "stateDict", id: this.#id }));
  }

  /**
   * Takes the parameters from a state dict, its own or one with the names of the posts or of PyTorch.
   *
   * @throws AttnError `bad_state_dict` naming the entry that is missing, extra or of the wrong shape; then nothing was loaded
   */
  async loadStateDict(dict: Readonly<Record<string, TensorLike>>): Promise<void> {
    if (typeof dict !== "object" || dict === null) {
      throw new AttnError("bad_state_dict", `found ${dict}, expected an object of tensors by name`, { found: dict });
    }
    const entries = Object.entries(dict).map(([name, tensor]): [string, Tensor] => [name, toTensor(tensor, name)]);
    await this.#link.call({ op: "loadStateDict", id: this.#id, entries });
  }

  /** @internal */
  protected async pass(
    inputs: { x: Tensor; key?: Tensor | null; value?: Tensor | null },
    mask: Mask | null | undefined,
    options: object,
  ): Promise<PassReply & { trace: Trace | null }> {
    const trace = this.#link.newId();
    const reply = await this.#link.call<PassReply>({
      op: "forward",
      id: this.#id,
      inputs,
      mask: optionalRule(mask),
      options: options as Readonly<Record<string, unknown>>,
      trace,
    });
    return { ...reply, trace: this.#link.trace(reply, trace) };
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
   * @throws AttnError `invalid_tensor`, `shape_mismatch`, `mask_shape`, `invalid_option`, `too_large`
   */
  async forward(x: TensorLike, options: AttentionForwardOptions = {}): Promise<ForwardResult> {
    const { mask, key, value, ...rest } = given(options);
    const inputs = {
      x: toTensor(x, "x"),
      key: key == null ? null : toTensor(key, "key"),
      value: value == null ? null : toTensor(value, "value"),
    };
    const { output, weights, trace } = await this.pass(inputs, mask, rest);
    return { output, weights: weights[0] ?? null, trace };
  }
}

/** A transformer block, after `torch.nn.TransformerEncoderLayer`. */
export class TransformerBlock extends Weighted {
  /** @internal */
  constructor(link: Link, options: Omit<TransformerOptions, "nLayers">) {
    super(link, "transformer", options);
  }

  /** `x` is `[n, dModel]` or `[batch, n, dModel]`. @throws AttnError as {@link MultiHeadAttention.forward} */
  async forward(x: TensorLike, options: ForwardOptions = {}): Promise<ForwardResult> {
    const { mask, ...rest } = given(options);
    const { output, weights, trace } = await this.pass({ x: toTensor(x, "x") }, mask, rest);
    return { output, weights: weights[0] ?? null, trace };
  }
}

/** A stack of transformer blocks; the mask holds in each. */
export class Transformer extends Weighted {
  /** @internal */
  constructor(link: Link, options: TransformerOptions) {
    super(link, "transformer", options);
  }

  /** `x` is `[n, dModel]` or `[batch, n, dModel]`. @throws AttnError as {@link MultiHeadAttention.forward} */
  async forward(x: TensorLike, options: ForwardOptions = {}): Promise<StackResult> {
    const { mask, ...rest } = given(options);
    const { output, weights, trace } = await this.pass({ x: toTensor(x, "x") }, mask, rest);
    const kept = weights.filter((layer) => layer !== null);
    return { output, weights: kept.length === weights.length ? kept : null, trace };
  }
}
