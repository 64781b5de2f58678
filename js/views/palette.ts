import { type ColorMap, redBlue, yellowGreenBlue } from "./color-maps.ts";

/** `sequential` for weights (0 to 1), `diverging` for signed numbers and differences (0 in the middle). */
export type PaletteName = "sequential" | "diverging";

/** Red, green and blue, from 0 to 255. */
export type Rgb = readonly [number, number, number];

/** Colours of the values from the low end of a domain to its high end, in equal steps. */
export interface Palette {
  /** Each colour as CSS writes it. */
  readonly css: readonly string[];
  /** Each colour as numbers. */
  readonly rgb: readonly Rgb[];
  /** What text stays readable on each colour. */
  readonly ink: readonly string[];
}

export const STEPS = 256;
const NEUTRAL_LIGHT = "rgb(247, 246, 242)";
const NEUTRAL_DARK = "rgb(33, 38, 47)";

function channels(color: string): [number, number, number] {
  const [red = 0, green = 0, blue = 0] = (color.match(/\d+(\.\d+)?/g) ?? []).map(Number);
  return [red, green, blue];
}

function blend(from: string, to: string, t: number): string {
  const start = channels(from);
  const end = channels(to);
  return `rgb(${start.map((value, i) => Math.round(value + ((end[i] ?? 0) - value) * t)).join(", ")})`;
}

// Zero looks like the page: each map leaves a neutral colour, and on a dark page runs from dark to bright.
const emerge = (neutral: string, color: string, t: number) => blend(neutral, color, Math.min(1, t * 6));

const MAPS: Record<PaletteName, { light: ColorMap; dark: ColorMap }> = {
  sequential: {
    light: (t) => emerge(NEUTRAL_LIGHT, yellowGreenBlue(t), t),
    dark: (t) => emerge(NEUTRAL_DARK, yellowGreenBlue(0.96 - t * 0.9), t),
  },
  diverging: {
    light: (t) => redBlue(0.06 + 0.88 * t),
    dark: (t) => blend(NEUTRAL_DARK, redBlue(t < 0.5 ? 0.22 : 0.78), Math.abs(2 * t - 1) ** 0.8),
  },
};

function luminance(rgb: readonly number[]): number {
  const [red = 0, green = 0, blue = 0] = rgb.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function build(map: ColorMap): Palette {
  const rgb = Array.from({ length: STEPS }, (_, i) => channels(map(i / (STEPS - 1))));
  return { css: rgb.map(css), rgb, ink: rgb.map(inkOn) };
}

export function css([red, green, blue]: Rgb): string {
  return `rgb(${red}, ${green}, ${blue})`;
}

/** What text stays readable on a colour. */
export function inkOn(color: Rgb): string {
  // Black and white are equally readable at a luminance of about 0.18.
  return luminance(color) > 0.18 ? "#10131a" : "#ffffff";
}

const built = new Map<string, Palette>();

/** A palette's colours on a light page or a dark one. */
export function palette(name: PaletteName, dark: boolean): Palette {
  const theme = dark ? "dark" : "light";
  const id = `${name} ${theme}`;
  const known = built.get(id) ?? build(MAPS[name][theme]);
  built.set(id, known);
  return known;
}

/**
 * A value's step in a palette, clamped to the domain.
 *
 * ```ts
 * const { css } = palette("diverging", false);
 * console.log(css[step(0, [-1, 1])]); // rgb(241, 239, 238)
 * ```
 */
export function step(value: number, [low, high]: readonly [number, number]): number {
  const t = high > low ? (value - low) / (high - low) : 0.5;
  return Math.round(Math.min(1, Math.max(0, t)) * (STEPS - 1));
}

/** Whether an element's text is light, that is, whether its page is dark. */
export function isDark(color: string): boolean {
  return luminance(channels(color)) > 0.25;
}
