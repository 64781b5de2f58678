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
  readonly hidden: ((row: number, column: number) => boolean) | null;
}

// Each pixel shows the largest magnitude of its block, so that a lone spike stays visible.
function peak(
  matrix: Matrix,
  rows: readonly [number, number],
  columns: readonly [number, number],
  hidden: RasterOptions["hidden"],
): number {
  let found = Number.NaN;
  for (let row = rows[0]; row < rows[1]; row++) {
    for (let column = columns[0]; column < columns[1]; column++) {
      if (hidden?.(row, column)) continue;
      const value = matrix.data[row * matrix.columns + column] ?? Number.NaN;
      if (!(Math.abs(value) <= Math.abs(found))) found = value;
    }
  }
  return found;
}

function block(pixel: number, pixels: number, cells: number): [number, number] {
  const from = Math.floor((pixel * cells) / pixels);
  return [from, Math.max(from + 1, Math.floor(((pixel + 1) * cells) / pixels))];
}

/** A matrix as pixels, for where a cell is too small to be drawn by itself. Hidden blocks stay transparent. */
export function raster(matrix: Matrix, { width, height, palette, domain, hidden }: RasterOptions): ImageData {
  const image = new ImageData(width, height);
  for (let y = 0; y < height; y++) {
    const rows = block(y, height, matrix.rows);
    for (let x = 0; x < width; x++) {
      const value = peak(matrix, rows, block(x, width, matrix.columns), hidden);
      if (Number.isNaN(value)) continue;
      const [red, green, blue] = palette.rgb[step(value, domain)] ?? [0, 0, 0];
      image.data.set([red, green, blue, 255], (y * width + x) * 4);
    }
  }
  return image;
}
