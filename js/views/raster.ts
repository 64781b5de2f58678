import type { Region } from "../device.ts";
import { palette, type Rgb, STEPS } from "./palette.ts";
import type { Peaks } from "./peaks.ts";
import { type ColorScale, outsideColors, stepOf } from "./scale.ts";

const NAN = STEPS;
const PLUS = STEPS + 1;
const MINUS = STEPS + 2;

const pack = ([red, green, blue]: Rgb) => (255 << 24) | (blue << 16) | (green << 8) | red;

/** The colours of a palette's steps, of NaN, infinity and -infinity, red in the lowest eight bits. */
export function colorsOf(scale: ColorScale, dark: boolean): Uint32Array {
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
  const colors = colorsOf(scale, dark);
  const image = new ImageData(region.right - region.left, region.bottom - region.top);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < pixels.length; i++) {
    if (blocks.covered[i] === 0) pixels[i] = colors[indexOf(blocks.peaks[i] as number, scale)] as number;
  }
  return image;
}

/** The level at which a block is no smaller than a pixel. */
export function levelFor(pixelsPerCell: number, peaks: Pick<Peaks, "rows" | "columns">): number {
  const deepest = Math.ceil(Math.log2(Math.max(peaks.rows, peaks.columns)));
  return Math.min(deepest, Math.max(0, Math.ceil(-Math.log2(pixelsPerCell) - 1e-9)));
}

let shared: OffscreenCanvas | null = null;

/** A part of an image as something to draw from, until the next one; its first pixel is the canvas's. */
export function toCanvas(image: ImageData | ImageBitmap, left: number, top: number, width: number, height: number) {
  shared ??= new OffscreenCanvas(1, 1);
  if (shared.width < width) shared.width = width;
  if (shared.height < height) shared.height = height;
  const context = shared.getContext("2d") as OffscreenCanvasRenderingContext2D;
  if (image instanceof ImageData) {
    context.putImageData(image, -left, -top, left, top, width, height);
  } else {
    context.clearRect(0, 0, width, height);
    context.drawImage(image, left, top, width, height, 0, 0, width, height);
  }
  return shared;
}
