// What the benchmark runs beside the package itself, in target/bench/.
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { compile, run, VARIANTS } from "../scripts/cargo.mjs";
import { peakText } from "./peak.mjs";

const CRATES = {
  attnscope: ["simd128", "relaxed"],
  ndarray: ["simd128"],
  gemm: ["simd128"],
  rten: ["simd128", "relaxed"],
};

const binaryen = (tool, ...args) => run(process.execPath, [`node_modules/binaryen/bin/${tool}`, ...args]);

export function build() {
  mkdirSync("target/bench", { recursive: true });
  for (const variant of Object.keys(VARIANTS)) {
    cpSync("dist", `target/bench/${variant}`, { recursive: true });
    // The instructions of relaxed SIMD, with one thread or several.
    if (variant === "threads") continue;
    const text = `target/bench/peak-${variant}.wat`;
    writeFileSync(text, peakText(variant));
    binaryen("wasm-as", text, "--enable-simd", "--enable-relaxed-simd", "-o", text.replace(/wat$/, "wasm"));
  }
  // As fast as our kernels are in the engine.
  process.env.CARGO_PROFILE_RELEASE_OPT_LEVEL = "3";
  for (const [crate, variants] of Object.entries(CRATES)) {
    for (const variant of variants) {
      binaryen("wasm-opt", "-O3", compile(`baseline-${crate}`, variant), "-o", `target/bench/${crate}-${variant}.wasm`);
    }
  }
}
