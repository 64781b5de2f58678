// TensorFlow.js on its WebGPU backend: all heads in one product, which spares a GPU most of the dispatches, or head by head.
import { transposed } from "../work.mjs";
import { hiddenKeys, perHead } from "./tfjs.mjs";

export const kind = "package";
export const name = "tfjs-webgpu";
export const variants = ["batched", "per head"];

export async function start(variant) {
  const tf = await import("@tensorflow/tfjs-core");
  await import("@tensorflow/tfjs-backend-webgpu");
  await tf.setBackend("webgpu");
  await tf.ready();

  /** Results are copied back once all is submitted, then freed with all that led to them. */
  const reading = (compute) => async () => {
    const results = tf.tidy(compute);
    const data = await Promise.all(results.map((tensor) => tensor.data()));
    tf.dispose(results);
    return data;
  };
  return { mha: (problem) => (variant === "batched" ? batched : perHead)(tf, reading, problem) };
}

function batched(tf, reading, { n, d, h, causal, ...numbers }) {
  const width = d / h;
  const x = tf.tensor2d(numbers.x, [n, d]);
  const weight = tf.tensor2d(transposed(numbers.inWeight, 3 * d, d), [d, 3 * d]);
  const bias = tf.tensor1d(numbers.inBias);
  const outWeight = tf.tensor2d(transposed(numbers.outWeight, d, d), [d, d]);
  const outBias = tf.tensor1d(numbers.outBias);
  const hidden = hiddenKeys(tf, n);
  const scale = tf.scalar(1 / Math.sqrt(width));
  const run = reading(() => {
    const projected = tf.fused.matMul({ a: x, b: weight, bias });
    const [query, key, value] = tf.unstack(tf.transpose(tf.reshape(projected, [n, 3, h, width]), [1, 2, 0, 3]));
    const scores = tf.mul(tf.matMul(query, key, false, true), scale);
    const weights = tf.softmax(causal ? tf.add(scores, hidden) : scores);
    const merged = tf.reshape(tf.transpose(tf.matMul(weights, value), [1, 0, 2]), [n, d]);
    return [tf.fused.matMul({ a: merged, b: outWeight, bias: outBias }), weights];
  });
  return { run, free: () => tf.dispose({ x, weight, bias, outWeight, outBias, hidden, scale }) };
}
