// A Rust crate's product, and attention on it: baseline/ behind the contenders' interface.
import { compiled } from "./wasm.mjs";

/** Starts a variant of what `build.mjs` compiles. */
export async function startCrate(crate, variant, { threads }) {
  if (threads > 1) throw new Error("built for one thread");
  const module = await compiled(`target/bench/${crate}-${variant}.wasm`);

  async function job(inputs, prepare, lengths, taken = (numbers) => numbers.slice()) {
    const { exports: wasm } = await WebAssembly.instantiate(module, {});
    for (const numbers of inputs) {
      const at = wasm.input(numbers.length);
      new Float32Array(wasm.memory.buffer, at, numbers.length).set(numbers);
    }
    prepare(wasm);
    return {
      run() {
        wasm.run();
        return lengths.map((length, index) =>
          taken(new Float32Array(wasm.memory.buffer, wasm.result(index), length), index),
        );
      },
    };
  }

  const product =
    (taken) =>
    ({ m, k, n, left, right }) =>
      job([left, right], (wasm) => wasm.prepare_product(m, k, n), [m * n], taken);

  const attention = ({ n, d, h, causal, x, inWeight, inBias, outWeight, outBias }, taken) =>
    job(
      [x, inWeight, inBias, outWeight, outBias],
      (wasm) => wasm.prepare_attention(n, d, h, causal),
      [n * d, h * n * n],
      taken,
    );

  return {
    // Results are copied, as every package does: the next run overwrites what lies in its memory.
    matmul: product(),
    product: product((numbers) => numbers),
    mha: (problem) => attention(problem),
    reuse: (problem) => {
      const arrays = [];
      return attention(problem, (numbers, index) => {
        arrays[index] ??= new Float32Array(numbers.length);
        arrays[index].set(numbers);
        return arrays[index];
      });
    },
  };
}
