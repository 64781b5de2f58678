import { invalidOption, refusedOption } from "./errors.ts";
import type { Draw } from "./host.ts";
import type { Link } from "./link.ts";
import { given } from "./options.ts";
import { short } from "./shown.ts";
import { isList, type Tensor, type TensorLike, toTensor } from "./tensor.ts";

/**
 * PyTorch's CPU generator: the same seed and the same calls in the same order give the same numbers as a notebook on x86-64,
 * bit for bit, including the sine twin that a `randn` of fewer than 16 numbers leaves behind. On other processors PyTorch's own
 * `randn` of 16 numbers and more differs in the last place.
 */
export class Generator {
  readonly #link: Link;
  readonly #id: number;

  /** @internal */
  constructor(link: Link, seed: number | bigint) {
    const isWhole = typeof seed === "bigint" || Number.isSafeInteger(seed);
    if (!(isWhole && seed >= SMALLEST_SEED && seed <= LARGEST_SEED)) {
      throw invalidOption("seed", seed, "a whole number from -2^63 to 2^64 - 1, a bigint where it is beyond 2^53");
    }
    this.#link = link;
    this.#id = link.newId();
    link.send({ op: "generator", id: this.#id, seed: BigInt(seed) });
    link.watch(this, this.#id);
  }

  /** The name of a generator where it lives; `invalid_option` for one of another engine. @internal */
  static idIn(link: Link, generator: Generator): number {
    if (generator.#link === link) return generator.#id;
    throw refusedOption("generator", "a generator of another engine", "one of this engine");
  }

  /** `torch.rand(shape)`: uniform in [0, 1) */
  rand(shape: readonly number[]): Promise<Tensor> {
    return this.#shaped("rand", shape);
  }

  /** `torch.randn(shape)`: standard normal */
  randn(shape: readonly number[]): Promise<Tensor> {
    return this.#shaped("randn", shape);
  }

  /** `torch.empty(shape).normal_(mean, std)` */
  async normal(shape: readonly number[], mean = 0, std = 1): Promise<Tensor> {
    if (typeof mean !== "number") throw invalidOption("mean", mean, "a number");
    if (!(typeof std === "number" && std >= 0)) throw invalidOption("std", std, "a number of at least 0");
    return this.#shaped("normal", shape, mean, std);
  }

  /** `torch.nn.init.xavier_uniform_(torch.empty(shape))` for a matrix */
  async xavierUniform(shape: readonly number[]): Promise<Tensor> {
    const axes = axesOf(shape);
    if (axes.length !== 2) throw refusedOption("shape", short(`[${axes}]`), "two axes, [rows, columns]");
    return { data: await this.#draw<Float32Array>("xavierUniform", axes), shape: axes };
  }

  /** `torch.nn.Embedding(n, d, padding_idx=paddingIdx).weight`: the padding's row is zeros */
  async embedding(n: number, d: number, options: { paddingIdx?: number | undefined } = {}): Promise<Tensor> {
    const { paddingIdx } = given(options, ["paddingIdx"]);
    if (paddingIdx !== undefined && !(Number.isInteger(paddingIdx) && paddingIdx >= 0 && paddingIdx < n)) {
      throw invalidOption("paddingIdx", paddingIdx, `a whole number from 0 to ${n - 1}`);
    }
    const data = await this.#draw<Float32Array>("embedding", [length("n", n), length("d", d), paddingIdx]);
    return { data, shape: [n, d] };
  }

  /** `torch.nn.functional.dropout(x, p)` in training, as of PyTorch 2.7: numbers dropped with probability p, the others / (1 - p) */
  async dropout(x: TensorLike, p = 0.5): Promise<Tensor> {
    if (!(typeof p === "number" && p >= 0 && p <= 1)) throw invalidOption("p", p, "a probability from 0 to 1");
    const tensor = toTensor(x, "x");
    const data = await this.#link.call<Float32Array>({ op: "dropout", id: this.#id, x: tensor, p });
    return { data, shape: tensor.shape };
  }

  /** `torch.nn.Linear(inFeatures, outFeatures)`: weight `[out, in]`, bias `[out]` */
  async linear(inFeatures: number, outFeatures: number): Promise<{ weight: Tensor; bias: Tensor }> {
    const sizes = [length("inFeatures", inFeatures), length("outFeatures", outFeatures)];
    const [weight, bias] = await this.#draw<[Float32Array, Float32Array]>("linear", sizes);
    return {
      weight: { data: weight, shape: [outFeatures, inFeatures] },
      bias: { data: bias, shape: [outFeatures] },
    };
  }

  /** `torch.randint(low, high, shape)`: whole numbers from low to high - 1, rounded to float32 above 2^24 */
  async randint(low: number, high: number, shape: readonly number[]): Promise<Tensor> {
    if (!Number.isSafeInteger(low)) throw invalidOption("low", low, "a whole number");
    if (!(Number.isSafeInteger(high) && high > low))
      throw invalidOption("high", high, `a whole number above ${low}, below 2^53`);
    const axes = axesOf(shape);
    const data = await this.#draw<Float64Array>("randint", [low, high, product(axes)]);
    return { data: Float32Array.from(data), shape: axes };
  }

  /** `torch.randperm(n)` */
  async randperm(n: number): Promise<Tensor> {
    const data = await this.#draw<Float64Array>("randperm", [length("n", n)]);
    return { data: Float32Array.from(data), shape: [n] };
  }

  async #shaped(kind: Draw, shape: readonly number[], ...rest: number[]): Promise<Tensor> {
    const axes = axesOf(shape);
    return { data: await this.#draw<Float32Array>(kind, [product(axes), ...rest]), shape: axes };
  }

  #draw<T>(kind: Draw, sizes: (number | undefined)[]): Promise<T> {
    return this.#link.call<T>({ op: "draw", id: this.#id, kind, sizes });
  }
}

// What `torch.manual_seed` takes.
const SMALLEST_SEED = -(2n ** 63n);
const LARGEST_SEED = 2n ** 64n - 1n;

function length(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw invalidOption(name, value, "a whole number of at least 1, below 2^53");
}

/** A copy: the caller's own may change while the numbers are drawn. */
function axesOf(shape: ArrayLike<number>): number[] {
  if (!isList(shape) || shape.length === 0) throw invalidOption("shape", shape, "at least one axis");
  return Array.from(shape, (axis, i) => length(`shape[${i}]`, axis));
}

const product = (axes: readonly number[]) => axes.reduce((size, axis) => size * axis, 1);
