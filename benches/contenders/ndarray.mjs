// ndarray's product (the matrixmultiply crate).
import { startCrate } from "../crate.mjs";

export const kind = "crate";
export const name = "ndarray";
export const variants = ["simd128"];
export const start = (variant, where) => startCrate("ndarray", variant, where);
