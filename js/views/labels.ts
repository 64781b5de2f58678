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
  const characters = beginning(text);
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > limit) characters.pop();
  return `${characters.join("")}…`;
}

const measured = new WeakMap<readonly string[], { readonly font: string; readonly width: number }>();

const segmenter = new Intl.Segmenter();

/** What readers take for one character each, of as much of a text as is ever written: a family of emoji is one. */
function beginning(text: string): string[] {
  const characters: string[] = [];
  for (const { segment, index } of segmenter.segment(text.slice(0, 4 * LONGEST))) {
    if (index > 0 && index + segment.length > LONGEST) break;
    characters.push(segment);
  }
  return characters;
}

/** About how wide a text is, in Latin letters: Chinese ones and emoji are twice as wide. */
export function guessWidth(label: string): number {
  if (/^[ -~]*$/.test(label)) return Math.min(label.length, LONGEST);
  return beginning(label).reduce((width, character) => width + (character.charCodeAt(0) > 0x2e80 ? 2 : 1), 0);
}

/** About how many pixels wide a text is at the usual size, where there is nothing to measure it with. */
export function textWidth(label: string): number {
  return Math.ceil(guessWidth(label) * 7.2);
}

/** A text of about so many Latin letters at most, where nothing can be measured. */
export function shortText(text: string, limit: number): string {
  if (text.length <= LONGEST && guessWidth(text) <= limit) return text;
  const characters = beginning(text);
  while (guessWidth(characters.join("")) > limit - 1) characters.pop();
  return `${characters.join("")}…`;
}

/** A token as it is written where nothing can be measured. */
export function shortLabel(token: string): string {
  return shortText(visible(token), 16);
}

/** Beyond this many characters no label is written in full. */
const LONGEST = 48;
const CANDIDATES = 48;

/** The width of the widest label in the context's font. */
export function widest(context: Context, labels: readonly string[]): number {
  const known = measured.get(labels);
  if (known?.font === context.font) return known.width;
  // The guess finds the few that are worth measuring.
  const guessed = labels.map((label) => ({ label, guess: guessWidth(label) })).sort((a, b) => b.guess - a.guess);
  const width = guessed
    .slice(0, CANDIDATES)
    .reduce((most, { label }) => Math.max(most, context.measureText(visible(label.slice(0, LONGEST))).width), 0);
  measured.set(labels, { font: context.font, width });
  return width;
}
