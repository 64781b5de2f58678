import type { Outside } from "../device.ts";
import { type PaletteName, type Rgb, STEPS } from "./palette.ts";

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

const LOWEST = 0x00800000;
const HIGHEST = 0xff7fffff;
const word = new DataView(new ArrayBuffer(4));

/** The float32 at a place in the order of all; -0 comes before 0. */
function floatAt(place: number): number {
  word.setUint32(0, place >= 2 ** 31 ? place - 2 ** 31 : ~place >>> 0);
  return word.getFloat32(0);
}

/**
 * From which float32 on each step of a palette but the first is reached, as its place in the order of all: a shader that only compares
 * places gives the very steps that `stepOf` does.
 */
export function thresholds(scale: ColorScale): Uint32Array {
  let from = LOWEST;
  return Uint32Array.from({ length: STEPS - 1 }, (_, i) => {
    let end = HIGHEST + 1;
    while (from < end) {
      const middle = Math.floor((from + end) / 2);
      if (stepOf(floatAt(middle), scale) > i) end = middle;
      else from = middle + 1;
    }
    return from;
  });
}

function clamp(t: number): number {
  return t > 0 ? Math.min(1, t) : 0;
}
