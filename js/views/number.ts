import { format } from "d3-format";

/** A number with so many decimals, or two fewer and a power of ten; `trim` leaves out zeros at the end. */
export function written(value: number, decimals: number, trim: "" | "~" = ""): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 5e-4
    ? format(`.${decimals - 2}~e`)(value).replace("e+", "e")
    : format(`.${decimals}${trim}f`)(value);
}

/** How many a view writes. */
export const DECIMALS = 3;

/**
 * A number as the views write it: three decimals, powers of ten for the very large and the very small.
 *
 * ```ts
 * console.log(number(1 / 3), number(1e-9), number(-Infinity)); // 0.333 1e-9 −∞
 * ```
 */
export function number(value: number): string {
  return written(value, DECIMALS);
}
