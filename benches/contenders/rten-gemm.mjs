// rten-gemm, the product of the RTen runtime.
import { startCrate } from "../crate.mjs";

export const kind = "crate";
export const name = "rten-gemm";
export const variants = ["simd128", "relaxed"];
export const start = (variant, where) => startCrate("rten", variant, where);
