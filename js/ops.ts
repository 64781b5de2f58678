import { invalidOption } from "./errors.ts";
import { type Activation, LAYER_NORM_EPS } from "./generated.ts";
import type { Link } from "./link.ts";
import { given } from "./options.ts";
import { type Tensor, type TensorLike, toTensor } from "./tensor.ts";

/** Along which axis an operation works. */
export interface AxisOption {
  /** Counted from 0, or from the end where it is negative; default -1. */
  axis?: number | undefined;
}

/** Options of {@link Ops.layerNorm}. */
export interface LayerNormOptions extends AxisOption {
  /** of the shape normalised over; default ones */
  weight?: TensorLike | undefined;
  /** of the shape normalised over; default zeros */
  bias?: TensorLike | undefined;
  /** added to the variance; default 1e-5 */
  eps?: number | undefined;
}

/** Options of {@link Ops.rmsNorm}. */
export interface RmsNormOptions extends AxisOption {
  /** of the shape normalised over; default ones */
  weight?: TensorLike | undefined;
  /** added to the mean square; default 2⁻²³, float32's epsilon, as in PyTorch */
  eps?: number | undefined;
}

/** Options of {@link Ops.rotary}. */
export interface RotaryOptions {
  /** `[n or more, pairs]`, a row for each position, or `[batch, n, pairs]` */
  cos: TensorLike;
  /** as `cos` */
  sin: TensorLike;
  /** Turn neighbours (0, 1), (2, 3), ... together instead of the two halves; default false */
  interleaved?: boolean | undefined;
}

/**
 * The parts of attention by themselves.
 *
 * ```ts
 * const { data } = await engine.ops.softmax([[0, 0], [0, Infinity]]);
 * console.log(data); // Float32Array(4) [ 0.5, 0.5, NaN, NaN ]
 * const normed = await engine.ops.layerNorm([[1, 3]], { eps: 0 });
 * console.log(normed.data); // Float32Array(2) [ -1, 1 ]
 * ```
 */
export class Ops {
  readonly #link: Link;

  /** @internal */
  constructor(link: Link) {
    this.#link = link;
  }

  /** x · weightᵀ + bias: `[..., in]`, `[out, in]`, `[out]` -> `[..., out]`. @throws AttnError `shape_mismatch` */
  async linear(x: TensorLike, weight: TensorLike, bias?: TensorLike | null): Promise<Tensor> {
    return this.#link.call({
      op: "linear",
      x: toTensor(x, "x"),
      weight: toTensor(weight, "weight"),
      bias: bias == null ? null : toTensor(bias, "bias"),
    });
  }

  /** Softmax along an axis, as `torch.softmax`. @throws AttnError `invalid_option` for an axis that is not there */
  async softmax(x: TensorLike, options: AxisOption = {}): Promise<Tensor> {
    return this.#link.call({ op: "softmax", x: toTensor(x, "x"), axis: axisOf(given(options, ["axis"])) });
  }

  /** The logarithm of the softmax, as `torch.log_softmax`. @throws AttnError `invalid_option` */
  async logSoftmax(x: TensorLike, options: AxisOption = {}): Promise<Tensor> {
    return this.#link.call({ op: "logSoftmax", x: toTensor(x, "x"), axis: axisOf(given(options, ["axis"])) });
  }

  /** LayerNorm from an axis to the end, as `torch.nn.functional.layer_norm`. @throws AttnError `shape_mismatch` */
  async layerNorm(x: TensorLike, options: LayerNormOptions = {}): Promise<Tensor> {
    const { weight, bias, eps = LAYER_NORM_EPS, ...rest } = given(options, ["axis", "weight", "bias", "eps"]);
    return this.#link.call({
      op: "layerNorm",
      x: toTensor(x, "x"),
      weight: weight == null ? null : toTensor(weight, "weight"),
      bias: bias == null ? null : toTensor(bias, "bias"),
      eps: epsOf(eps),
      axis: axisOf(rest),
    });
  }

  /** RMSNorm from an axis to the end, as `torch.nn.functional.rms_norm`. @throws AttnError `shape_mismatch` */
  async rmsNorm(x: TensorLike, options: RmsNormOptions = {}): Promise<Tensor> {
    const { weight, eps = RMS_NORM_EPS, ...rest } = given(options, ["axis", "weight", "eps"]);
    return this.#link.call({
      op: "rmsNorm",
      x: toTensor(x, "x"),
      weight: weight == null ? null : toTensor(weight, "weight"),
      eps: epsOf(eps),
      axis: axisOf(rest),
    });
  }

  /**
   * Rotary positions: pairs of each row's first numbers turned by angles with these cosines and sines. `x` is `[n, d]`,
   * `[heads, n, d]` or `[batch, heads, n, d]`. Source: Su et al. 2021; ONNX's RotaryEmbedding.
   *
   * @throws AttnError `shape_mismatch`
   */
  async rotary(x: TensorLike, options: RotaryOptions): Promise<Tensor> {
    const { cos, sin, interleaved = false } = given(options, ["cos", "sin", "interleaved"]);
    if (typeof interleaved !== "boolean") throw invalidOption("interleaved", interleaved, "true or false");
    return this.#link.call({
      op: "rotary",
      x: toTensor(x, "x"),
      cos: toTensor(cos, "cos"),
      sin: toTensor(sin, "sin"),
      interleaved,
    });
  }

  /** `[n, dModel]`: sines and cosines to be added to an input (Vaswani et al. 2017, section 3.5). */
  async sinusoidal(n: number, dModel: number): Promise<Tensor> {
    for (const [name, size] of Object.entries({ n, dModel })) {
      if (!(Number.isInteger(size) && size >= 1 && size < 2 ** 31)) {
        throw invalidOption(name, size, "a whole number of at least 1");
      }
    }
    return this.#link.call({ op: "sinusoidal", n, dModel });
  }

  /** x Φ(x), exact or by its tanh approximation, as `torch.nn.functional.gelu`. */
  async gelu(x: TensorLike, options: { approximate?: "none" | "tanh" | undefined } = {}): Promise<Tensor> {
    const { approximate = "none" } = given(options, ["approximate"]);
    if (approximate !== "none" && approximate !== "tanh") {
      throw invalidOption("approximate", approximate, '"none" or "tanh"');
    }
    return this.#activation(x, approximate === "tanh" ? "gelu_tanh" : "gelu");
  }

  /** max(0, x) */
  async relu(x: TensorLike): Promise<Tensor> {
    return this.#activation(x, "relu");
  }

  /** x sigmoid(x) */
  async silu(x: TensorLike): Promise<Tensor> {
    return this.#activation(x, "silu");
  }

  #activation(x: TensorLike, name: Activation): Promise<Tensor> {
    return this.#link.call({ op: "activation", x: toTensor(x, "x"), name });
  }
}

/** PyTorch's: the distance from 1 to the next float32. */
const RMS_NORM_EPS = 2 ** -23;

function epsOf(eps: number): number {
  if (typeof eps === "number" && eps >= 0 && eps < Infinity) return eps;
  throw invalidOption("eps", eps, "a finite number of at least 0");
}

function axisOf({ axis = -1 }: AxisOption): number {
  // The engine takes 32 bits, into which a larger number would be folded.
  if (!Number.isInteger(axis) || axis !== (axis | 0)) throw invalidOption("axis", axis, "a whole number");
  return axis;
}
