import { invalidOption } from "./errors.ts";
import type { HeadLabel, MaskEffect, Moved } from "./generated.ts";
import type { Link } from "./link.ts";
import { type Mask, optionalRule } from "./mask.ts";
import { type AttentionForwardOptions, MultiHeadAttention, Weighted } from "./modules.ts";
import { given } from "./options.ts";
import { invalid, isList, isTensor, notNumbers, type Tensor, type TensorLike, toTensor } from "./tensor.ts";
import type { WatchOptions } from "./watch.ts";

/** Where the queries stand among the keys. */
export interface OffsetOption {
  /** Query i stands at position i + offset: the number of cached keys in front; default 0. */
  offset?: number | undefined;
}

/** The ids of tokens, or the tokens themselves: what is equal is the same token. */
export type Tokens = ArrayLike<number | bigint | string>;

/** Options of {@link Analysis.labelHeads}. */
export interface LabelOptions extends OffsetOption {
  /** A token for each key, `[n_k]` or `[batch][n_k]`; without them no head is "same_token". */
  tokens?: Tokens | readonly Tokens[] | null | undefined;
  /** Which keys the queries may attend to; default all, or causal where no weight lies after its query. */
  mask?: Mask | null | undefined;
}

/**
 * What researchers ask of attention weights: `[..., n_q, n_k]`, row i query i and column j key j, from this engine or
 * any other. Rows need not sum exactly to 1.
 */
export class Analysis {
  readonly #link: Link;

  /** @internal */
  constructor(link: Link) {
    this.#link = link;
  }

  /**
   * The entropy of each row in nats, -Σ w ln w with 0 ln 0 = 0: `[..., n_q, n_k]` -> `[..., n_q]`; NaN for a row that
   * holds NaN. Source: Clark et al. 2019, section 3.3.
   *
   * ```ts
   * const { data } = await engine.analysis.entropy([[1, 0], [0.5, 0.5]]);
   * console.log(data); // Float32Array(2) [ 0, 0.6931471824645996 ]
   * ```
   *
   * @throws AttnError `invalid_tensor`, `shape_mismatch`
   */
  async entropy(weights: TensorLike): Promise<Tensor> {
    return this.#link.call({ op: "entropy", weights: toTensor(weights, "weights") });
  }

  /**
   * How many keys each row attends to in effect, e to the power of its entropy; 0 for a row of zeros:
   * `[..., n_q, n_k]` -> `[..., n_q]`.
   *
   * @throws AttnError `invalid_tensor`, `shape_mismatch`
   */
  async effectiveKeys(weights: TensorLike): Promise<Tensor> {
    return this.#link.call({ op: "effectiveKeys", weights: toTensor(weights, "weights") });
  }

  /**
   * How far each row looks, Σ w |i + offset - j| in positions: `[..., n_q, n_k]` -> `[..., n_q]`. Source: Vig and
   * Belinkov 2019.
   *
   * @throws AttnError `invalid_tensor`, `shape_mismatch`, `invalid_option`
   */
  async meanDistance(weights: TensorLike, options: OffsetOption = {}): Promise<Tensor> {
    const offset = offsetOf(given(options, ["offset"]));
    return this.#link.call({ op: "meanDistance", weights: toTensor(weights, "weights"), offset });
  }

  /**
   * What each head does, of weights `[heads, n_q, n_k]` or `[batch, heads, n_q, n_k]`; the rows of a batch are taken
   * together. A pattern's score is the mean weight on its keys, over the rows that could show it: those with such a key
   * and another, among the keys allowed. The score of "uniform" is the mean entropy over the most possible, of rows that hold any
   * weight.
   *
   * A pattern is the label where it rests on at least two rows, its score is at least halfway from chance (what uniform
   * rows would score) to 1, and at least three standard deviations above what as many rows drawn at random would give,
   * so that short sentences get no false labels. Of several it is the one farthest above chance; without any, a head is
   * "uniform" where that score is at least 0.98, else "mixed". Sources: Voita et al. 2019, Clark et al. 2019, Vig and
   * Belinkov 2019, Wang et al. 2022.
   *
   * ```ts
   * const previous = Array.from({ length: 6 }, (_, i) => Array.from({ length: 6 }, (_, j) => Number(j === Math.max(0, i - 1))));
   * const [{ label }] = await engine.analysis.labelHeads([previous]);
   * console.log(label); // previous_token
   * ```
   *
   * @throws AttnError `invalid_tensor`, `shape_mismatch`, `mask_shape`, `invalid_option`
   */
  async labelHeads(weights: TensorLike, options: LabelOptions = {}): Promise<HeadLabel[]> {
    const { tokens, mask, ...rest } = given(options, ["tokens", "mask", "offset"]);
    return this.#link.call({
      op: "labelHeads",
      weights: toTensor(weights, "weights"),
      tokens: tokens == null ? null : idsOf(tokens),
      mask: optionalRule(mask, "mask"),
      offset: offsetOf(rest),
    });
  }

  /**
   * Attention rollout: how much of each input token reaches each position after all layers. `weights` holds those of
   * each layer, the first layer first, all `[heads, n, n]` or all `[batch, heads, n, n]`; the result is `[n, n]` or
   * `[batch, n, n]`. Each layer is the mean over its heads, half of it replaced by the token itself where `residual`
   * (default true) counts the connection around the attention, its rows made to sum to 1. Source: Abnar and Zuidema
   * 2020.
   *
   * ```ts
   * const layer = [[[1, 0], [0.5, 0.5]]];
   * const { data } = await engine.analysis.rollout([layer, layer], { residual: false });
   * console.log(data); // Float32Array(4) [ 1, 0, 0.75, 0.25 ]
   * ```
   *
   * @throws AttnError `invalid_tensor`, `shape_mismatch`, `invalid_option`
   */
  async rollout(weights: readonly TensorLike[], options: { residual?: boolean | undefined } = {}): Promise<Tensor> {
    const { residual = true } = given(options, ["residual"]);
    if (typeof residual !== "boolean") throw invalidOption("residual", residual, "true or false");
    if (!Array.isArray(weights)) {
      const expected = "an array of tensors, one a layer";
      if (isTensor(weights)) throw invalid("weights", [], "one tensor", expected);
      throw notNumbers("weights", [], weights, expected);
    }
    const layers = weights.map((layer, i) => toTensor(layer, `weights[${i}]`));
    return this.#link.call({ op: "rollout", weights: layers, residual });
  }

  /**
   * What a mask freed and where it went, from the weights without it and with it, both `[..., n_q, n_k]`: the change of
   * each cell, the weight that each row and each head lost, and the cells that gained the most.
   *
   * ```ts
   * const { change, gains } = await engine.analysis.maskEffect([[0.5, 0.5]], [[1, 0]]);
   * console.log(change.data, gains[0].index); // Float32Array(2) [ 0.5, -0.5 ] [ 0, 0 ]
   * ```
   *
   * @throws AttnError `invalid_tensor`, `shape_mismatch`
   */
  async maskEffect(before: TensorLike, after: TensorLike): Promise<MaskEffect> {
    return this.#link.call({ op: "maskEffect", before: toTensor(before, "before"), after: toTensor(after, "after") });
  }

  /**
   * How far each output moved, both `[..., n, d]`: the Euclidean distance and the cosine of each row, `[..., n]`.
   *
   * @throws AttnError `invalid_tensor`, `shape_mismatch`
   */
  async moved(before: TensorLike, after: TensorLike): Promise<Moved> {
    return this.#link.call({ op: "moved", before: toTensor(before, "before"), after: toTensor(after, "after") });
  }

  /**
   * How much each head matters: the Euclidean distance that each output row moves when that head alone is switched off,
   * `[nHeads, n_q]`, with `[batch, ...]` in front where x has it. The options are those of `mha.forward` without `onProgress` and
   * `signal`; a `headMask` among them holds for the other heads. Source: Michel et al. 2019.
   *
   * ```ts
   * const mha = engine.multiHeadAttention({ dModel: 4, nHeads: 2 });
   * const moved = await engine.analysis.ablation(mha, [[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]]);
   * console.log(moved.shape); // [ 2, 3 ]
   * ```
   *
   * @throws AttnError as {@link MultiHeadAttention.forward}
   */
  async ablation(
    mha: MultiHeadAttention,
    x: TensorLike,
    options: Omit<AttentionForwardOptions, keyof WatchOptions> = {},
  ): Promise<Tensor> {
    if (!(mha instanceof MultiHeadAttention)) {
      throw invalidOption("mha", mha, "what engine.multiHeadAttention gives");
    }
    const { mask, key, value, ...rest } = given(options);
    return this.#link.call({
      op: "ablate",
      id: Weighted.idIn(this.#link, mha),
      inputs: {
        x: toTensor(x, "x"),
        key: key == null ? null : toTensor(key, "key"),
        value: value == null ? null : toTensor(value, "value"),
      },
      mask: optionalRule(mask, "mask"),
      options: rest as Readonly<Record<string, unknown>>,
    });
  }
}

function offsetOf({ offset = 0 }: OffsetOption): number {
  // The engine takes 32 bits, into which a larger number would be folded.
  if (!Number.isInteger(offset) || offset !== (offset | 0)) throw invalidOption("offset", offset, "a whole number");
  return offset;
}

/** A number for each token, the same for equal ones. */
function idsOf(tokens: unknown): Int32Array {
  if (!isList(tokens)) throw invalidOption("tokens", tokens, "a list of ids or words, or one for each batch entry");
  const isBatch = isList(tokens[0]);
  const rows: unknown[] = isBatch ? Array.from(tokens) : [tokens];
  const length = isBatch ? (tokens[0] as ArrayLike<unknown>).length : tokens.length;
  const ids = new Map<unknown, number>();
  const flat = rows.flatMap((row, entry) => {
    const name = isBatch ? `tokens[${entry}]` : "tokens";
    if (!isList(row) || row.length !== length) throw invalidOption(name, row, `a list of ${length}, as the first`);
    return Array.from(row, (token, i) => {
      if (!["number", "bigint", "string"].includes(typeof token)) {
        throw invalidOption(`${name}[${i}]`, token, "an id or a word");
      }
      const id = ids.get(token) ?? ids.size;
      ids.set(token, id);
      return id;
    });
  });
  return Int32Array.from(flat);
}
