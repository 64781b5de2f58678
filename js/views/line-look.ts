/** The distance of two tokens. */
export const PITCH = 26;
/** What the lines of one query leave out, and what those of all the others do. */
export const LEAST = 0.01;
export const LEAST_ASIDE = 0.08;
const WIDEST = 6;
export const BEND = 0.4;
/** How strong the lines of the other queries are. */
export const ASIDE = 0.2;

/** Heads that meet at the same tokens lie side by side. */
export const besides = (head: number, heads: number) => (heads > 1 ? ((head + 0.5) / heads - 0.5) * (PITCH - 10) : 0);

/** How a value looks as a line: thick and opaque where it is large, broken where it is negative. */
export function lineLook(value: number, reach: number, strength: number) {
  const share = Math.min(1, Math.abs(value) / reach);
  return {
    opacity: strength * (0.15 + 0.85 * share),
    width: Math.max(0.7, WIDEST * share),
    dash: value < 0 ? [5, 4] : [],
  };
}
