import { format } from "d3-format";

const plain = format(".3f");
const far = format(".1~e");

/**
 * A number as the views write it: three decimals, powers of ten for the very large and the very small.
 *
 * ```ts
 * console.log(number(1 / 3), number(1e-9), number(-Infinity)); // 0.333 1e-9 −∞
 * ```
 */
export function number(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 5e-4 ? far(value) : plain(value);
}
