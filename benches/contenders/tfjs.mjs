// TensorFlow.js on its WebAssembly backend: all projections in one product, then a few operations for each head.
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

  /** Results are read, then freed with all that led to them. */
  const reading = (compute) => () => tf.tidy(() => compute().map((tensor) => tensor.dataSync()));

  return {
    async matmul({ m, k, n, left, right }) {
      const [a, b] = [tf.tensor2d(left, [m, k]), tf.tensor2d(right, [k, n])];
      return { run: reading(() => [tf.matMul(a, b)]), free: () => tf.dispose([a, b]) };
    },
    async mha({ n, d, h, causal, ...numbers }) {
      const held = {
        x: tf.tensor2d(numbers.x, [n, d]),
        inWeight: tf.tensor2d(numbers.inWeight, [3 * d, d]),
        inBias: tf.tensor1d(numbers.inBias),
        outWeight: tf.tensor2d(numbers.outWeight, [d, d]),
        outBias: tf.tensor1d(numbers.outBias),
        hidden: tf.tidy(() => tf.mul(tf.sub(1, tf.linalg.bandPart(tf.ones([n, n]), -1, 0)), HIDDEN)),
        scale: tf.scalar(1 / Math.sqrt(d / h)),
      };
      const linear = (a, b, bias) => tf.fused.matMul({ a, b, transposeB: true, bias });
      return {
        run: reading(() => {
          const parts = tf.split(linear(held.x, held.inWeight, held.inBias), 3 * h, 1);
          const weights = parts.slice(0, h).map((query, head) => {
            const scores = tf.mul(tf.matMul(query, parts[h + head], false, true), held.scale);
            return tf.softmax(causal ? tf.add(scores, held.hidden) : scores);
          });
          const contexts = weights.map((own, head) => tf.matMul(own, parts[2 * h + head]));
          return [linear(tf.concat(contexts, 1), held.outWeight, held.outBias), tf.concat(weights, 0)];
        }),
        free: () => tf.dispose(held),
      };
    },
  };
}
