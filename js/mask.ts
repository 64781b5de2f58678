import { invalidOption, refusedOption } from "./errors.ts";
import { MAX_MASK_DEPTH, type MaskAxes, type Mask as MaskRule, type TorchConvention } from "./generated.ts";
import { given } from "./options.ts";
import { isList, type TensorLike, toTensor } from "./tensor.ts";
import { glue, throwTyped } from "./wasm.ts";

/** Nested booleans or numbers; true and nonzero mean the same. */
export type MaskMatrix = TensorLike | readonly unknown[];

/**
 * Which key a query may attend to: a rule or a matrix, sized when it meets the scores. Rows are queries, columns are keys.
 * Masks are values: `and`, `or` and `not` give new ones. {@link mask} makes them.
 */
export class Mask {
  /** The mask as plain data. */
  readonly rule: MaskRule;

  constructor(rule: MaskRule) {
    checkSize(rule);
    this.rule = rule;
  }

  /** Allowed by both; additive parts add up. */
  and(other: Mask): Mask {
    return new Mask({ and: { left: this.rule, right: ruleOf(other, "and") } });
  }

  /** Allowed by either; additive parts add up. */
  or(other: Mask): Mask {
    return new Mask({ or: { left: this.rule, right: ruleOf(other, "or") } });
  }

  /** Allowed where this mask hides. One that adds to the scores has no opposite: it is refused where it meets scores. */
  not(): Mask {
    return new Mask({ not: { mask: this.rule } });
  }

  /**
   * PyTorch code that makes the same mask as `attn_mask`, in the convention of the function that takes it. It broadcasts to
   * `[batch, heads, n_q, n_k]`; of a mask that differs by batch entry or head `torch.nn.MultiheadAttention` takes
   * `attn_mask.expand(batch, heads, n_q, n_k).flatten(0, 1)`.
   *
   * ```ts
   * console.log(mask.causal().toTorch("sdpa"));
   * // i = torch.arange(n_q)[:, None]  # queries
   * // j = torch.arange(n_k)[None, :]  # keys
   * // attn_mask = j <= i  # True = may attend
   * ```
   *
   * @throws AttnError `invalid_option`; `no_engine` before the first engine was created, for the engine writes it
   */
  toTorch(convention: TorchConvention): string {
    if (!CONVENTIONS.includes(convention)) {
      throw invalidOption("convention", convention, CONVENTIONS.map((one) => `"${one}"`).join(", "));
    }
    return throwTyped(() => glue().toTorch(this.rule, convention));
  }
}

const CONVENTIONS: readonly TorchConvention[] = ["sdpa", "mha", "additive"];

const MOST_RULES = 4096;

/** The engine reads rules one inside the other; and a mask joined with itself again and again is soon more than fits. */
function checkSize(outermost: MaskRule): void {
  let rules = 0;
  const visit = (rule: MaskRule, depth: number): void => {
    if (depth > MAX_MASK_DEPTH) throw invalidOption("mask", depth, `at most ${MAX_MASK_DEPTH} masks inside each other`);
    if (++rules > MOST_RULES) throw invalidOption("mask", rules, `at most ${MOST_RULES} rules`);
    if (typeof rule === "string") return;
    if (typeof rule !== "object" || rule === null) throw invalidOption("mask", rule, "the rule of a mask");
    if ("not" in rule) visit(rule.not.mask, depth + 1);
    if ("perHead" in rule) for (const inner of rule.perHead.masks) visit(inner, depth + 1);
    const pair = "and" in rule ? rule.and : "or" in rule ? rule.or : null;
    if (pair) for (const inner of [pair.left, pair.right]) visit(inner, depth + 1);
  };
  visit(outermost, 1);
}

export function ruleOf(value: unknown, argument: string): MaskRule {
  if (value instanceof Mask) return value.rule;
  throw invalidOption(argument, value, "a Mask, such as mask.causal() or mask.fromKeep(matrix)");
}

export function optionalRule(value: unknown, argument: string): MaskRule | null {
  return value === null || value === undefined ? null : ruleOf(value, argument);
}

/**
 * Every kind of mask.
 *
 * ```ts
 * const near = mask.causal().and(mask.slidingWindow(2)); // each token sees itself and the one before
 * const { allowed } = await engine.materialize(near, { nQ: 3, nK: 3 });
 * console.log(allowed.join(" ")); // 1 0 0 1 1 0 0 1 1
 * ```
 */
export const mask = {
  /** Query i sees key j where j <= i. */
  causal: () => new Mask("causal"),

  /** The first keys only: one length for all, or one per batch entry. */
  padding: (lengths: number | readonly number[]) =>
    new Mask({ padding: { lengths: whole("lengths", typeof lengths === "number" ? [lengths] : lengths, 1) } }),

  /** |i - j| < width, or as many keys as said before and after the query. */
  slidingWindow: (width: number | { left: number; right: number }) => {
    if (typeof width === "object") {
      const { left, right } = given(width, ["left", "right"]);
      return new Mask({ slidingWindow: { left: size("left", left), right: size("right", right) } });
    }
    const side = size("width", width, 1) - 1;
    return new Mask({ slidingWindow: { left: side, right: side } });
  },

  /** Causal, but the first `keys` keys are open to all (prefix language model). */
  prefix: (keys: number) => new Mask({ prefix: { keys: size("keys", keys) } }),

  /** Only keys with the query's id; one id for each position, of which queries and keys may have different numbers. */
  documents: (ids: readonly number[]) => new Mask({ documents: { ids: whole("ids", ids, 1, -Infinity) } }),

  /** The positions named see all and are seen by all; nothing else is allowed. Combine with `or`. */
  global: (indices: readonly number[]) => new Mask({ global: { indices: whole("indices", indices) } }),

  /** |i - j| a multiple of stride and less than width * stride. */
  dilated: (width: number, stride: number) =>
    new Mask({ dilated: { width: size("width", width, 1), stride: size("stride", stride, 1) } }),

  /** One mask for each head. */
  perHead: (masks: readonly Mask[]) =>
    new Mask({ perHead: { masks: list("masks", masks, 1).map((mask) => ruleOf(mask, "masks")) } }),

  /** A matrix whose nonzero or true means: may attend. Three axes are heads first, or the batch with `axes: "batch"`. */
  fromKeep: (matrix: MaskMatrix, options?: { axes?: MaskAxes | undefined }) =>
    new Mask({ keep: { ...cells(matrix, options) } }),

  /** A matrix whose nonzero or true means: hidden. Three axes are heads first, or the batch with `axes: "batch"`. */
  fromMasked: (matrix: MaskMatrix, options?: { axes?: MaskAxes | undefined }) =>
    new Mask({ masked: { ...cells(matrix, options) } }),

  /** A matrix added to the scores; -Infinity hides, whatever `maskFill` is. */
  additive: (matrix: TensorLike, options?: { axes?: MaskAxes | undefined }) => {
    const { data, shape } = toTensor(matrix, "matrix");
    return new Mask({ additive: { shape: [...shape], data: floatBytes(data), axes: axesOf(options) } });
  },

  /**
   * A learned number for each head and distance added to the scores, from a table `[buckets, heads]`: near distances have a
   * bucket each, far ones share by their logarithm (T5, Raffel et al. 2020).
   */
  relative: (
    table: TensorLike,
    options: { bidirectional?: boolean | undefined; maxDistance?: number | undefined } = {},
  ) => {
    const { bidirectional = true, maxDistance = 128 } = given(options, ["bidirectional", "maxDistance"]);
    if (typeof bidirectional !== "boolean") throw invalidOption("bidirectional", bidirectional, "true or false");
    const { data, shape } = toTensor(table, "table");
    const [buckets, heads] = shape;
    if (buckets === undefined || heads === undefined || shape.length !== 2) {
      throw refusedOption("table", `shape [${shape}]`, "a matrix [buckets, heads]");
    }
    const rule = { buckets, heads, bidirectional, maxDistance: size("maxDistance", maxDistance, 1) };
    return new Mask({ relative: { table: floatBytes(data), ...rule } });
  },

  /** -slope |i - j| added to the scores, a slope for each head (Press et al. 2022). */
  alibi: (nHeads: number) => new Mask({ alibi: { heads: size("nHeads", nHeads, 1) } }),
};

/** Float32 numbers as little-endian bytes. */
function floatBytes(data: Float32Array): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(4 * data.length));
  data.forEach((number, i) => {
    bytes.setFloat32(4 * i, number, true);
  });
  return new Uint8Array(bytes.buffer);
}

function cells(matrix: MaskMatrix, options?: { axes?: MaskAxes | undefined }) {
  const { data, shape } = toTensor(matrix as TensorLike, "matrix", ["number", "boolean"]);
  const bytes = new Uint8Array(data.length);
  for (let i = 0; i < data.length; i++) bytes[i] = Number(data[i] !== 0);
  return { shape: [...shape], data: bytes, axes: axesOf(options) };
}

function axesOf(options: { axes?: MaskAxes | undefined } = {}): MaskAxes | null {
  const { axes } = given(options, ["axes"]);
  if (axes !== undefined && axes !== "batch") throw invalidOption("axes", axes, '"batch"');
  return axes ?? null;
}

const LARGEST = 2 ** 31 - 1;

function size(name: string, value: number, least = 0): number {
  if (Number.isInteger(value) && value >= least && value <= LARGEST) return value;
  throw invalidOption(name, value, `a whole number from ${least} to 2^31 - 1`);
}

function list<T>(name: string, values: readonly T[], least: number): T[] {
  if (isList(values) && values.length >= least) return Array.from(values) as T[];
  throw invalidOption(name, values, least > 0 ? "a list that is not empty" : "a list");
}

function whole(name: string, values: readonly number[], least = 0, smallest = 0): number[] {
  return list(name, values, least).map((value, i) => {
    if (Number.isInteger(value) && value >= smallest && Math.abs(value) <= LARGEST) return value;
    throw invalidOption(`${name}[${i}]`, value, `a whole number from ${smallest === 0 ? 0 : "-2^31 + 1"} to 2^31 - 1`);
  });
}
