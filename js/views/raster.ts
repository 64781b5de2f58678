import type { Palette } from "./palette.ts";
import { step } from "./palette.ts";

/** A matrix in row-major order. */
export interface Matrix {
  readonly data: ArrayLike<number>;
  readonly rows: number;
  readonly columns: number;
}

export interface RasterOptions {
  readonly width: number;
  readonly height: number;
  readonly palette: Palette;
  readonly domain: readonly [number, number];
  /** Cells to leave out, row-major, nonzero where hidden. */
  readonly hidden: ArrayLike<number> | null;
}

/** Where each pixel's block of cells begins, and where the last one ends. */
function blocks(pixels: number, cells: number): Int32Array {
  return Int32Array.from({ length: pixels + 1 }, (_, pixel) => Math.floor((pixel * cells) / pixels));
}

/**
 * A matrix as pixels, for where a cell is too small to be drawn by itself. A pixel shows the largest magnitude of its
 * block, so that a lone spike stays visible; blocks that are hidden altogether stay transparent.
 */
export function raster(matrix: Matrix, { width, height, palette, domain, hidden }: RasterOptions): ImageData {
  const { data, columns } = matrix;
  const image = new ImageData(width, height);
  const tops = blocks(height, matrix.rows);
  const lefts = blocks(width, columns);
  for (let y = 0; y < height; y++) {
    const top = tops[y] as number;
    const bottom = Math.max(top + 1, tops[y + 1] as number);
    for (let x = 0; x < width; x++) {
      const left = lefts[x] as number;
      const right = Math.max(left + 1, lefts[x + 1] as number);
      let peak = Number.NaN;
      for (let row = top; row < bottom; row++) {
        for (let i = row * columns + left; i < row * columns + right; i++) {
          if (hidden !== null && hidden[i] !== 0) continue;
          const value = data[i] as number;
          if (!(Math.abs(value) <= Math.abs(peak))) peak = value;
        }
      }
      if (Number.isNaN(peak)) continue;
      const color = palette.rgb[step(peak, domain)];
      if (!color) continue;
      const at = (y * width + x) * 4;
      image.data[at] = color[0];
      image.data[at + 1] = color[1];
      image.data[at + 2] = color[2];
      image.data[at + 3] = 255;
    }
  }
  return image;
}
