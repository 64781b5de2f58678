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
  const characters = [...text.slice(0, 64)];
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > limit) characters.pop();
  return `${characters.join("")}…`;
}

const measured = new WeakMap<readonly string[], { readonly font: string; readonly width: number }>();

/** The width of the widest label in the context's font. */
export function widest(context: Context, labels: readonly string[]): number {
  const known = measured.get(labels);
  if (known?.font === context.font) return known.width;
  let width = 0;
  // Beyond some length no label is written in full, so that its end need not be measured.
  for (const label of labels) width = Math.max(width, context.measureText(visible(label.slice(0, 64))).width);
  measured.set(labels, { font: context.font, width });
  return width;
}
