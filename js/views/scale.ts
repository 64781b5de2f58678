import { type PaletteName, type Rgb, STEPS } from "./palette.ts";
import type { Outside } from "./peaks.ts";

/** How a number becomes a colour: in equal steps, in powers of ten, or as a share of the largest of its row. */
export type ScaleKind = "linear" | "log" | "row";

/** The colours of a matrix. */
export interface ColorScale {
  /** Its colours. */
  readonly palette: PaletteName;
  /** How numbers become these. */
  readonly kind: ScaleKind;
  /** The values at the two ends of the palette. */
  readonly domain: readonly [number, number];
}

/** How many powers of ten below its end a logarithmic scale reaches; what is smaller looks like 0. */
export const DECADES = 4;

// Colours that neither palette has, so that what is no number is not taken for one.
const NAN = { light: [200, 30, 140], dark: [255, 110, 190] } as const;
const PLUS = { light: [20, 20, 24], dark: [255, 255, 255] } as const;
const MINUS = { light: [140, 140, 146], dark: [128, 128, 134] } as const;

/** The colours of what is not finite. */
export function outsideColors(dark: boolean): Record<keyof Outside, Rgb> {
  const theme = dark ? "dark" : "light";
  return { nan: NAN[theme], plus: PLUS[theme], minus: MINUS[theme] };
}

/** A scale of a palette that ends at the largest magnitude it is to show. */
export function scaleTo(reach: number, palette: PaletteName, kind: ScaleKind): ColorScale {
  const end = kind === "row" ? 1 : reach || 1;
  return { palette, kind, domain: [palette === "diverging" ? -end : 0, end] };
}

/** Where a value lies between the ends of a scale, from 0 to 1. Of a scale by rows, the value is its share of the row. */
export function position(value: number, { palette, kind, domain }: ColorScale): number {
  const [low, high] = domain;
  if (kind !== "log") return high > low ? clamp((value - low) / (high - low)) : 0.5;
  const size = clamp(1 + Math.log10(Math.abs(value) / high) / DECADES);
  if (palette === "diverging") return 0.5 + (Math.sign(value) * size) / 2;
  return value > 0 ? size : 0;
}

/** The palette's step for a value that is a number. */
export function stepOf(value: number, scale: ColorScale): number {
  return Math.round(position(value, scale) * (STEPS - 1));
}

function clamp(t: number): number {
  return t > 0 ? Math.min(1, t) : 0;
}
