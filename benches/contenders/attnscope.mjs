// The package as its users call it, in this thread as the others and in a worker as pages have it by default; its product by
// the crate of its kernels.
import { startCrate } from "../crate.mjs";

export const kind = "ours";
export const name = "attnscope";
export const variants = ["simd128", "relaxed", "relaxed in a worker", "threads in a worker"];

export const MAX_BYTES = 2 ** 31;

/** Of several threads the others are beside it with one. */
export const threadsOf = (variant, threads) => (variant.startsWith("threads") ? threads : 1);

export async function start(variant, { threads: most }) {
  const threads = threadsOf(variant, most);
  const [build] = variant.split(" ");
  const worker = build !== variant;
  // A copy of the package for each build, since a page loads the engine's WebAssembly once.
  const { createEngine, mask } = await import(`../../target/bench/${build}/index.js`);
  const file = build === "simd128" ? build : "relaxed";
  const wasm = new URL(`../../target/bench/${build}/wasm/attnscope_${file}.wasm`, import.meta.url);
  const engine = await createEngine({ worker, threads, maxBytes: MAX_BYTES, wasm });
  if (engine.info.threads !== threads) throw new Error(`the engine has ${engine.info.threads} of ${threads} threads`);
  const { matmul, product } = worker ? {} : await startCrate("attnscope", build, { threads: 1 });
  const passes = passesOf(engine, mask);
  const { mha, reuse } = passes;
  return worker ? { mha, reuse } : { matmul, product, ...passes };
}

/** The kinds of work that are passes of an engine. */
export function passesOf(engine, mask) {
  async function attention(problem, options) {
    const { n, d, h, causal } = problem;
    const module = engine.multiHeadAttention({ dModel: d, nHeads: h });
    // Under the module's own names, which need no reader of others'.
    const rows = ["query", "key", "value"].flatMap((name, i) => [
      [`${name}.weight`, { data: problem.inWeight.subarray(i * d * d, (i + 1) * d * d), shape: [d, d] }],
      [`${name}.bias`, { data: problem.inBias.subarray(i * d, (i + 1) * d), shape: [d] }],
    ]);
    await module.loadStateDict({
      ...Object.fromEntries(rows),
      "out.weight": { data: problem.outWeight, shape: [d, d] },
      "out.bias": { data: problem.outBias, shape: [d] },
    });
    const x = { data: problem.x, shape: [n, d] };
    return (changes, input = x) =>
      module.forward(input, { mask: causal ? mask.causal() : null, ...options, ...changes });
  }

  /** A pass under the problem's mask, from one under another. */
  async function again(problem, other) {
    const forward = await attention(problem, { trace: true });
    const { trace: before } = await forward({ mask: other });
    return {
      async run() {
        const { output, weights, trace } = await before.remask(mask.causal());
        trace.dispose();
        return [output.data, weights.data];
      },
      free: () => before.dispose(),
    };
  }

  return {
    async mha(problem) {
      const forward = await attention(problem);
      return {
        async run() {
          const { output, weights } = await forward();
          return [output.data, weights.data];
        },
      };
    },
    async reuse(problem) {
      const forward = await attention(problem);
      let result = null;
      return {
        async run() {
          result = await forward({ reuse: result });
          return [result.output.data, result.weights.data];
        },
      };
    },
    async output(problem) {
      const forward = await attention(problem, { needWeights: false });
      return {
        async run() {
          const { output } = await forward();
          return [output.data];
        },
      };
    },
    async trace(problem) {
      const forward = await attention(problem, { trace: true });
      return {
        async run() {
          const { output, weights, trace } = await forward();
          trace.dispose();
          return [output.data, weights.data];
        },
      };
    },
    remask: (problem) => again(problem, null),
    cell({ n, ...problem }) {
      const middle = n >> 1;
      const cell = Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => i === middle && j === 0));
      return again({ n, ...problem }, mask.causal().and(mask.fromMasked(cell)));
    },
    async token(problem) {
      const { n, d, x } = problem;
      // Of one token a number is another, so little that the results are not.
      const data = x.slice();
      data[(n >> 1) * d] *= 1 + 2 ** -23;
      const lines = [x, data].map((data) => ({ data, shape: [n, d] }));
      const forward = await attention(problem, { trace: true });
      let before = null;
      return {
        async run() {
          const [line] = lines.reverse();
          const { output, weights, trace } = await forward({}, line);
          before?.dispose();
          before = trace;
          return [output.data, weights.data];
        },
        free: () => before?.dispose(),
      };
    },
  };
}
