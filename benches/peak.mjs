// The most that one thread can compute without touching memory: chains of multiply-and-add in vector registers.
import { compiled } from "./wasm.mjs";

/** How many chains: few wait for each other's results, many do not fit into the registers. Which is best depends on the machine. */
const CHAINS = [8, 10, 12];

/** One step of a chain, of x and y. Products and sums are chains of their own: in one they would wait for each other. */
const STEPS = {
  simd128: (chain, index) => `(f32x4.${index % 2 ? "mul" : "add"} ${chain} (local.get $x))`,
  relaxed: (chain) => `(f32x4.relaxed_madd ${chain} (local.get $x) (local.get $y))`,
};
const OPERATIONS = { simd128: 4, relaxed: 8 };

const VARIANTS = Object.keys(STEPS);

/** A module that exports `run8`, `run10`, ...: each takes how many times to go round. */
export function peakText(variant) {
  const functions = CHAINS.map((count) => {
    const chains = Array.from({ length: count }, (_, chain) => `$chain${chain}`);
    const steps = chains.map((chain, index) => `(local.set ${chain} ${STEPS[variant](`(local.get ${chain})`, index)})`);
    const sum = chains.map((chain) => `(local.get ${chain})`).reduce((left, right) => `(f32x4.add ${left} ${right})`);
    return `(func (export "run${count}") (param $times i32) (param $a f32) (param $b f32) (result f32)
      (local $x v128) (local $y v128) ${chains.map((chain) => `(local ${chain} v128)`).join(" ")}
      (local.set $x (f32x4.splat (local.get $a)))
      (local.set $y (f32x4.splat (local.get $b)))
      (loop $again
        ${steps.join("\n        ")}
        (br_if $again (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))
      (f32x4.extract_lane 0 ${sum}))`;
  });
  return `(module ${functions.join("\n")})`;
}

/** GFLOP/s: the best of many short runs, for what disturbs them only slows them. */
async function peak(variant) {
  const { exports } = await WebAssembly.instantiate(await compiled(`target/bench/peak-${variant}.wasm`), {});
  const TIMES = 200_000;
  const RUNS = 100;
  const rates = CHAINS.flatMap((count) =>
    Array.from({ length: RUNS }, () => {
      const start = performance.now();
      exports[`run${count}`](TIMES, 1, 1);
      return (TIMES * count * OPERATIONS[variant]) / (performance.now() - start) / 1e6;
    }),
  );
  return Math.max(...rates);
}

/** GFLOP/s of each build. */
export async function peaks() {
  const found = {};
  for (const variant of VARIANTS) found[variant] = await peak(variant);
  return found;
}
