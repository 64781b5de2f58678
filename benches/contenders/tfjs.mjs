// TensorFlow.js on its WebAssembly backend, head by head, projections too: to split one product of all takes longer than it.
import { transposed } from "../work.mjs";

export const kind = "package";
export const name = "tfjs-wasm";
export const variants = ["per head"];

const HIDDEN = -1e9;

export async function start(_variant, { threads, peers }) {
  const tf = await import("@tensorflow/tfjs-core");
  const backend = await import("@tensorflow/tfjs-backend-wasm");
  if (peers) backend.setWasmPaths(`${peers}/@tensorflow/tfjs-backend-wasm/dist/`);
  tf.env().set("WASM_HAS_MULTITHREAD_SUPPORT", threads > 1);
  backend.setThreadsCount(threads);
  await tf.setBackend("wasm");
  await tf.ready();

  /** Results are read, then freed with all that led to them; `tidy` would look for tensors in every number that it is given. */
  const reading = (compute) => () => {
    let data;
    tf.tidy(() => {
      data = compute().map((tensor) => tensor.dataSync());
    });
    return data;
  };

  return {
    async matmul({ m, k, n, left, right }) {
      const [a, b] = [tf.tensor2d(left, [m, k]), tf.tensor2d(right, [k, n])];
      return { run: reading(() => [tf.matMul(a, b)]), free: () => tf.dispose([a, b]) };
    },
    mha: (problem) => perHead(tf, reading, problem),
  };
}

/** Attention head by head; `reading` makes of what computes tensors what gives their numbers. */
export function perHead(tf, reading, { n, d, h, causal, ...numbers }) {
  const width = d / h;
  const x = tf.tensor2d(numbers.x, [n, d]);
  const outWeight = tf.tensor2d(transposed(numbers.outWeight, d, d), [d, d]);
  const outBias = tf.tensor1d(numbers.outBias);
  const hidden = hiddenKeys(tf, n);
  const scale = 1 / Math.sqrt(width);
  const projections = Array.from({ length: 3 * h }, (_, part) => {
    const scaled = (numbers) => (part < h ? numbers.map((number) => number * scale) : numbers);
    const weight = scaled(numbers.inWeight.slice(part * width * d, (part + 1) * width * d));
    const bias = scaled(numbers.inBias.slice(part * width, (part + 1) * width));
    return { weight: tf.tensor2d(transposed(weight, width, d), [d, width]), bias: tf.tensor1d(bias) };
  });
  // Its fused product mistakes the bias where it also transposes, so the weights are turned before.
  const linear = (a, b, bias) => tf.fused.matMul({ a, b, bias });
  const attend = reading(() => {
    const parts = projections.map(({ weight, bias }) => linear(x, weight, bias));
    const weights = parts.slice(0, h).map((query, head) => {
      const scores = tf.matMul(query, tf.transpose(parts[h + head]));
      return tf.softmax(causal ? tf.add(scores, hidden) : scores);
    });
    const contexts = weights.map((own, head) => tf.matMul(own, parts[2 * h + head]));
    return [linear(tf.concat(contexts, 1), outWeight, outBias), ...weights];
  });
  return {
    async run() {
      const [output, ...weights] = await attend();
      return [output, weights];
    },
    free: () => tf.dispose({ x, outWeight, outBias, hidden, projections }),
  };
}

/** What a causal mask adds to the scores. */
export const hiddenKeys = (tf, n) =>
  tf.tidy(() => tf.mul(tf.sub(1, tf.linalg.bandPart(tf.ones([n, n]), -1, 0)), HIDDEN));
