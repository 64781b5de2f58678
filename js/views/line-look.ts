/** The distance of two tokens. */
export const PITCH = 26;
/** What the lines of one query leave out, and what those of all the others do. */
export const LEAST = 0.01;
export const LEAST_ASIDE = 0.08;
/** The width of a weight of 1: as many heads as there are have to lie side by side. */
const widest = (heads: number) => Math.max(2.2, Math.min(6, 24 / heads));
export const BEND = 0.4;
/** How strong the lines of the other queries are: the more of them, the fainter. */
export const aside = (heads: number, queries: number) => 0.2 / Math.sqrt(Math.max(1, (heads * queries) / 24));

/** Heads that meet at the same tokens lie side by side. */
export const besides = (head: number, heads: number) => (heads > 1 ? ((head + 0.5) / heads - 0.5) * (PITCH - 10) : 0);

/** How a value looks as a line: thick and opaque where it is large, broken where it is negative. */
export function lineLook(value: number, reach: number, heads: number, strength: number) {
  const share = Math.min(1, Math.abs(value) / reach);
  return {
    opacity: strength * (0.35 + 0.65 * share),
    width: Math.max(1, widest(heads) * share),
    dash: value < 0 ? [5, 4] : [],
  };
}
