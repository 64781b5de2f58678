import type { Context } from "./surface.ts";
import type { Theme } from "./theme.ts";
import { visible } from "./visible.ts";

export const FONT = 12;

/** How strongly what is neither selected nor pointed at is written. */
export const FAINT = 0.76;

export function setFont(context: Context, theme: Theme, size: number, isBold = false): void {
  context.font = `${isBold ? "600 " : ""}${size}px ${theme.font}`;
}

/** A text that fits a width in the context's font, shortened where it must be. */
export function shorten(context: Context, text: string, limit: number): string {
  if (context.measureText(text).width <= limit) return text;
  const characters = [...text.slice(0, 48)];
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > limit) characters.pop();
  return `${characters.join("")}…`;
}

const measured = new WeakMap<readonly string[], { readonly font: string; readonly width: number }>();

/** About how wide a text is, in Latin letters: Chinese ones are twice as wide. */
export function guessWidth(label: string): number {
  let width = 0;
  for (let i = 0; i < Math.min(label.length, LONGEST); i++) width += label.charCodeAt(i) > 0x2e80 ? 2 : 1;
  return width;
}

/** About how many pixels wide a text is at the usual size, where there is nothing to measure it with. */
export function textWidth(label: string): number {
  return Math.ceil(guessWidth(label) * 7.2);
}

const LABEL_LIMIT = 16;

/** A token as it is written where nothing can be measured. */
export function shortLabel(token: string): string {
  const shown = visible(token);
  if (guessWidth(shown) <= LABEL_LIMIT) return shown;
  const characters = [...shown.slice(0, LABEL_LIMIT)];
  while (guessWidth(characters.join("")) > LABEL_LIMIT - 1) characters.pop();
  return `${characters.join("")}…`;
}

/** Beyond this many characters no label is written in full. */
const LONGEST = 48;
const CANDIDATES = 48;

/** The width of the widest label in the context's font. */
export function widest(context: Context, labels: readonly string[]): number {
  const known = measured.get(labels);
  if (known?.font === context.font) return known.width;
  // The guess finds the few that are worth measuring.
  const candidates = labels.length <= CANDIDATES ? labels : [...labels].sort((a, b) => guessWidth(b) - guessWidth(a));
  const width = candidates
    .slice(0, CANDIDATES)
    .reduce((most, label) => Math.max(most, context.measureText(visible(label.slice(0, LONGEST))).width), 0);
  measured.set(labels, { font: context.font, width });
  return width;
}
