// jax-js on its WebAssembly backend, the whole pass compiled by `jit`; products head by head, since its batched one is slow.
export const kind = "package";
export const name = "jax-js";
export const variants = ["jit, per head"];

const HIDDEN = -1e9;

export async function start() {
  const { init, defaultDevice, jit, nn, numpy: np } = await import("@jax-js/jax");
  await init("wasm");
  defaultDevice("wasm");

  /** Arrays are used up by what takes them, unless a reference more is taken. */
  function job(compute, inputs, read = (data) => data) {
    const held = inputs.map(([numbers, shape]) => np.array(numbers, { shape }));
    const compiled = jit(compute);
    return {
      async run() {
        const results = compiled(...held.map((array) => array.ref));
        const data = [];
        for (const result of results) data.push(await result.data());
        return read(data);
      },
      free() {
        for (const array of held) array.dispose();
        compiled.dispose();
      },
    };
  }

  return {
    matmul: async ({ m, k, n, left, right }) =>
      job(
        (a, b) => [np.matmul(a, b)],
        [
          [left, [m, k]],
          [right, [k, n]],
        ],
      ),
    async mha({ n, d, h, causal, x, inWeight, inBias, outWeight, outBias }) {
      const width = d / h;
      const hidden = new Float32Array(n * n).map((_, at) => (causal && at % n > Math.floor(at / n) ? HIDDEN : 0));
      const linear = (input, weight, bias) => np.matmul(input, np.transpose(weight)).add(bias);
      const attend = (x, inWeight, inBias, outWeight, outBias, hidden) => {
        const parts = np.split(linear(x, inWeight, inBias), 3 * h, 1);
        const weights = Array.from({ length: h }, (_, head) => {
          const scores = np.matmul(parts[head], np.transpose(parts[h + head])).mul(1 / Math.sqrt(width));
          return nn.softmax(causal ? scores.add(hidden.ref) : scores, -1);
        });
        hidden.dispose();
        const contexts = weights.map((own, head) => np.matmul(own.ref, parts[2 * h + head]));
        return [linear(np.concatenate(contexts, 1), outWeight, outBias), ...weights];
      };
      const inputs = [
        [x, [n, d]],
        [inWeight, [3 * d, d]],
        [inBias, [3 * d]],
        [outWeight, [d, d]],
        [outBias, [d]],
        [hidden, [n, n]],
      ];
      return job(attend, inputs, ([output, ...weights]) => [output, weights]);
    },
  };
}
