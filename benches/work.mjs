// What is computed: the sizes, the numbers and, in float64, what is right.

/** Tokens, width and heads of multi-head attention to itself. */
export const ATTENTION = {
  S: { n: 32, d: 64, h: 4 },
  M: { n: 128, d: 512, h: 8 },
  L: { n: 512, d: 768, h: 12 },
  XL: { n: 1024, d: 768, h: 12 },
};

/** Rows, depth and columns of a product. */
export const MATMUL = {
  "512x768x768": { m: 512, k: 768, n: 768 },
  "1024x1024x1024": { m: 1024, k: 1024, n: 1024 },
};

/**
 * The kinds of work, each a method of the contenders that do it; `beside` is another that runs in the same rounds, `without` what
 * those do who have no such method:
 *   matmul      a matrix product
 *   product     a matrix product by itself, whose result stays in the memory of WebAssembly
 *   mha         multi-head attention, output and weights of each head readable in JavaScript
 *   reuse       the same, over the arrays of the result before
 *   output      multi-head attention, its output alone
 *   trace       multi-head attention with every stage kept
 *   remask      such a pass again under another mask, of which every row differs
 *   cell        such a pass again under a mask of which one cell differs
 *   token       a pass with every stage kept, after one in which another token stood in one place
 */
export const WORK = {
  matmul: { sizes: MATMUL, masks: [false] },
  product: { sizes: MATMUL, masks: [false] },
  mha: { sizes: ATTENTION, masks: [false, true] },
  reuse: { sizes: ATTENTION, masks: [false, true], without: "mha" },
  output: { sizes: ATTENTION, masks: [false, true] },
  remask: { sizes: ATTENTION, masks: [true], beside: "trace" },
  cell: { sizes: ATTENTION, masks: [true], beside: "trace" },
  token: { sizes: ATTENTION, masks: [true], beside: "trace" },
};

/** Small products and passes, so that many calls bring optimised code into place. */
export const WARM_UP = [
  ...["matmul", "product"].map((work) => ({ work, size: "48x48x48", m: 48, k: 48, n: 48 })),
  ...["mha", "reuse", "output", "remask", "cell", "token"].map((work) => ({
    work,
    beside: WORK[work].beside,
    without: WORK[work].without,
    size: "S",
    ...ATTENTION.S,
    causal: true,
  })),
];

/** The cases of the table, or those that `only` and `size` leave of them. */
export function cases({ only, size }) {
  return Object.entries(WORK)
    .flatMap(([work, { sizes, masks, ...others }]) =>
      Object.entries(sizes).flatMap(([name, shape]) =>
        masks.map((causal) => ({ work, ...others, size: name, ...shape, causal })).filter(() => !size || size === name),
      ),
    )
    .filter(({ work }) => !only || only === work);
}

/** Floating-point operations, of the whole matrices whether a mask hides a part of them or not. */
export function operations(work, { m, k, n, d }) {
  if (work === "matmul" || work === "product") return 2 * m * k * n;
  if (work === "cell") return 2 * n * d + 2 * d * d;
  if (work === "token") return 6 * d * d + 4 * n * n * d + 2 * n * d * d;
  if (work === "remask") return 2 * n * n * d + 2 * n * d * d;
  return 8 * n * d * d + 4 * n * n * d;
}

/** The case with its numbers. */
export function withNumbers(spec) {
  const rand = generator();
  const uniform = (length, reach) => rand(length).map((number) => (2 * number - 1) * reach);
  const { m, k, n, d } = spec;
  if (m) return { ...spec, left: rand(m * k), right: rand(k * n) };
  const reach = Math.sqrt(3 / d);
  return {
    ...spec,
    x: uniform(n * d, 2),
    inWeight: uniform(3 * d * d, reach),
    inBias: uniform(3 * d, 0.1),
    outWeight: uniform(d * d, reach),
    outBias: uniform(d, 0.1),
  };
}

/** Uniform numbers from 0 up to 1 that are the same in every run (mulberry32). */
function generator() {
  let state = 0;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return (length) => Float32Array.from({ length }, next);
}

/** `[product]`, or `[output, weights]`, in float64. */
export function reference(problem) {
  if (problem.m) {
    const { m, k, n, left, right } = problem;
    return [product(left, right, m, k, n)];
  }
  const { n, d, h, causal, x, inWeight, inBias, outWeight, outBias } = problem;
  const width = d / h;
  const projected = linear(x, inWeight, inBias, n);
  const head = (part, at) => columns(projected, n, 3 * d, part * d + at * width, width);
  const weights = new Float64Array(h * n * n);
  const merged = new Float64Array(n * d);
  for (let at = 0; at < h; at++) {
    const scores = product(head(0, at), transposed(head(1, at), n, width), n, width, n);
    for (let i = 0; i < n; i++) {
      const row = scores
        .subarray(i * n, (i + 1) * n)
        .map((score, j) => (causal && j > i ? -Infinity : score / Math.sqrt(width)));
      const max = row.reduce((a, b) => Math.max(a, b));
      const powers = row.map((score) => Math.exp(score - max));
      const sum = powers.reduce((a, b) => a + b);
      weights.set(
        powers.map((power) => power / sum),
        (at * n + i) * n,
      );
    }
    const context = product(weights.subarray(at * n * n, (at + 1) * n * n), head(2, at), n, n, width);
    for (let i = 0; i < n; i++) merged.set(context.subarray(i * width, (i + 1) * width), i * d + at * width);
  }
  return [linear(merged, outWeight, outBias, n), weights];
}

/** Throws where numbers are not what `reference` gives, of `output` its first alone. Weights may be a list by head. */
export function check(who, work, found, expected) {
  const TOLERANCE = 1e-5;
  const needed = work === "output" ? 1 : expected.length;
  if (found.length < needed) throw new WrongResult(`${who}: ${found.length} results, expected ${needed}`);
  for (const [index, result] of found.entries()) {
    const numbers = Array.isArray(result) ? Float32Array.from(result.flatMap((part) => Array.from(part))) : result;
    const right = expected[index];
    if (numbers.length !== right.length) {
      throw new WrongResult(`${who}: result ${index} holds ${numbers.length} numbers, expected ${right.length}`);
    }
    const scale = right.reduce((max, number) => Math.max(max, Math.abs(number)), 0);
    // Not `>`: a NaN is wrong too.
    const wrong = numbers.findIndex((number, i) => !(Math.abs(number - right[i]) <= TOLERANCE * scale));
    if (wrong >= 0)
      throw new WrongResult(
        `${who}: number ${wrong} of result ${index} is ${numbers[wrong]}, expected ${right[wrong]}`,
      );
  }
}

/** It ends the whole run: no table is printed. */
export class WrongResult extends Error {}

function product(left, right, m, k, n) {
  const out = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    const row = out.subarray(i * n, (i + 1) * n);
    for (let c = 0; c < k; c++) {
      const factor = left[i * k + c];
      const from = c * n;
      for (let j = 0; j < n; j++) row[j] += factor * right[from + j];
    }
  }
  return out;
}

export function transposed(matrix, rows, columns) {
  const out = new matrix.constructor(matrix.length);
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) out[j * rows + i] = matrix[i * columns + j];
  return out;
}

function columns(matrix, rows, stride, from, width) {
  const out = new Float64Array(rows * width);
  for (let i = 0; i < rows; i++) out.set(matrix.subarray(i * stride + from, i * stride + from + width), i * width);
  return out;
}

/** x · weightᵀ + bias */
function linear(x, weight, bias, n) {
  const inward = x.length / n;
  const outward = bias.length;
  const out = product(x, transposed(Float64Array.from(weight), outward, inward), n, inward, outward);
  return out.map((number, i) => number + bias[i % outward]);
}
