import { palette, type Rgb, STEPS } from "./palette.ts";
import type { Peaks, Region } from "./peaks.ts";
import { type ColorScale, outsideColors, stepOf } from "./scale.ts";

const NAN = STEPS;
const PLUS = STEPS + 1;
const MINUS = STEPS + 2;

const pack = ([red, green, blue]: Rgb) => (255 << 24) | (blue << 16) | (green << 8) | red;

function packed(scale: ColorScale, dark: boolean): Uint32Array {
  const { nan, plus, minus } = outsideColors(dark);
  return Uint32Array.from([...palette(scale.palette, dark).rgb, nan, plus, minus], pack);
}

function indexOf(value: number, scale: ColorScale): number {
  if (Number.isNaN(value)) return NAN;
  if (value === Infinity) return PLUS;
  if (value === -Infinity) return MINUS;
  return stepOf(value, scale);
}

/** The colours of a region of blocks, a pixel for a block; blocks that are hidden altogether stay transparent. */
export function raster(peaks: Peaks, level: number, region: Region, scale: ColorScale, dark: boolean): ImageData {
  const blocks = peaks.blocks(level, region);
  const colors = packed(scale, dark);
  const image = new ImageData(region.right - region.left, region.bottom - region.top);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < pixels.length; i++) {
    if (blocks.covered[i] === 0) pixels[i] = colors[indexOf(blocks.peaks[i] as number, scale)] as number;
  }
  return image;
}

/** The level at which a block is no smaller than a pixel. */
export function levelFor(pixelsPerCell: number, peaks: Peaks): number {
  const deepest = Math.ceil(Math.log2(Math.max(peaks.rows, peaks.columns)));
  return Math.min(deepest, Math.max(0, Math.ceil(-Math.log2(pixelsPerCell) - 1e-9)));
}

let shared: OffscreenCanvas | null = null;

/** An image as something to draw from, until the next one. */
export function toCanvas(image: ImageData): OffscreenCanvas {
  shared ??= new OffscreenCanvas(1, 1);
  if (shared.width < image.width) shared.width = image.width;
  if (shared.height < image.height) shared.height = image.height;
  shared.getContext("2d")?.putImageData(image, 0, 0);
  return shared;
}
