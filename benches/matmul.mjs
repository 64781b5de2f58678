// Our matrix product against ndarray's, in turns, in one JavaScript engine: machines are noisy, so only the ratio of two
// neighbouring samples means anything. Runs in Node.js and in a browser; `load` brings a file's bytes.
import initialise, { MatmulBench, RawGenerator } from "../dist/wasm/attnscope.js";

export const SIZE = { m: 512, k: 768, n: 768 };
const ROUNDS = 15;
const CALLS = 4;
const TOLERANCE = 1e-5;
const MAX_BYTES = 2 ** 30;

function ours({ m, k, n }) {
  const bench = new MatmulBench(m, k, n);
  return () => bench.run();
}

function ndarray(wasm, { m, k, n }) {
  // The numbers that MatmulBench draws.
  const generator = new RawGenerator(0n);
  const left = generator.rand(m * k, MAX_BYTES);
  const right = generator.rand(k * n, MAX_BYTES);
  wasm.prepare(m, k, n);
  new Float32Array(wasm.memory.buffer, wasm.left(), m * k).set(left);
  new Float32Array(wasm.memory.buffer, wasm.right(), k * n).set(right);
  return () => wasm.run();
}

/** What both give: the last number of the product, here in float64. */
function expected({ m, k, n }) {
  const generator = new RawGenerator(0n);
  const left = generator.rand(m * k, MAX_BYTES).subarray((m - 1) * k);
  const right = generator.rand(k * n, MAX_BYTES);
  return left.reduce((sum, value, c) => sum + value * right[c * n + n - 1], 0);
}

/** Milliseconds of one call, over a few. */
function sample(run) {
  const start = performance.now();
  for (let call = 0; call < CALLS; call++) run();
  return (performance.now() - start) / CALLS;
}

/** `{ size, errors, samples }`, each by contender: relative to float64, and in milliseconds, one a round. */
export async function measure(load) {
  await initialise({ module_or_path: await load("dist/wasm/attnscope_relaxed.wasm") });
  const { instance } = await WebAssembly.instantiate(await load("target/bench/baseline.wasm"), {});
  const contenders = (size) => ({ ours: ours(size), ndarray: ndarray(instance.exports, size) });

  // A JavaScript engine puts its optimised code in place between calls: many short ones bring it there.
  for (const run of Object.values(contenders({ m: 48, k: 48, n: 48 }))) {
    for (let call = 0; call < 3000; call++) run();
  }
  const both = contenders(SIZE);
  const names = Object.keys(both);
  const errors = {};
  for (const name of names) {
    sample(both[name]);
    errors[name] = Math.abs(both[name]() / expected(SIZE) - 1);
    if (!(errors[name] < TOLERANCE)) throw new Error(`${name} is off by a factor of 1 + ${errors[name]}`);
  }

  const samples = { ours: [], ndarray: [] };
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) samples[name].push(sample(both[name]));
  }
  return { size: SIZE, errors, samples };
}
