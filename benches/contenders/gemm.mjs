// The gemm crate, which candle uses.
import { startCrate } from "../crate.mjs";

export const kind = "crate";
export const name = "gemm";
export const variants = ["simd128"];
export const start = (variant, where) => startCrate("gemm", variant, where);
