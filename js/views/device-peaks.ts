import type { DeviceMatrix, DeviceTensor, Outside, Region } from "../device.ts";
import { type Pixels, pixelsOf } from "./matrix-drawing.ts";
import { Peaks, type PeaksOptions } from "./peaks.ts";
import { colorsOf, raster } from "./raster.ts";
import { type ColorScale, thresholds } from "./scale.ts";

interface Picture {
  readonly image: ImageBitmap;
  readonly block: number;
  readonly region: Region;
  readonly look: string;
}

interface Wish {
  readonly level: number;
  readonly region: Region;
  readonly scale: ColorScale;
  readonly dark: boolean;
}

interface Window {
  readonly region: Region;
  readonly numbers: Float32Array;
}

/** Cells fetched at a time: so many before the one that is asked for, and so many from it on. */
const [BEFORE, FROM] = [24, 104];
/** Windows that are kept: those in sight on the widest screen, the selected cell's and that of the one pointed at, and some more. */
const MOST_WINDOWS = 16;

/**
 * A matrix on a graphics processor, drawn as `Peaks` draws one whose numbers are here. Pictures and cells come a little later than
 * they are asked for, which `changed` tells. Where the processor is gone the numbers are read, and drawn from then on; where the pass was
 * disposed the latest picture stays, and the console says why.
 */
export class DevicePeaks {
  readonly rows: number;
  readonly columns: number;
  readonly hatching: Peaks["hatching"];
  reach = 0;
  outside: Outside = { nan: false, plus: false, minus: false };

  readonly #tensor: DeviceTensor;
  readonly #options: PeaksOptions;
  readonly #changed: () => void;
  #matrix: DeviceMatrix | null = null;
  #numbers: Peaks | null = null;
  #isClosed = false;
  #isLost = false;
  #picture: Picture | null = null;
  #wish: Wish | null = null;
  /** Of the latest look, since finding them takes as long as some frames have. */
  #colors: { look: string; thresholds: Uint32Array; colors: Uint32Array } | null = null;
  #isDrawing = false;
  #windows: Window[] = [];
  #isFetching = false;

  constructor(tensor: DeviceTensor, options: PeaksOptions, changed: () => void) {
    const [rows = 1, columns = 1] = tensor.shape;
    const { hidden, hiddenKeepsColor, transposed } = options;
    this.rows = transposed ? columns : rows;
    this.columns = transposed ? rows : columns;
    this.hatching = hidden === null ? "none" : hiddenKeepsColor ? "over colour" : "bare";
    this.#tensor = tensor;
    this.#options = options;
    this.#changed = changed;
    this.#ask(() => this.#open());
  }

  /** As `Peaks` does; whether it is known what there is in the matrix. */
  advance(deadline: number): boolean {
    if (!this.#numbers) return this.#matrix !== null;
    const isReady = this.#numbers.advance(deadline);
    ({ reach: this.reach, outside: this.outside } = this.#numbers);
    return isReady;
  }

  /** Undefined until it is fetched. */
  valueAt(row: number, column: number): number | undefined {
    if (this.#numbers) return this.#numbers.valueAt(row, column);
    const [r, c] = this.#options.transposed ? [column, row] : [row, column];
    for (const { region, numbers } of this.#windows) {
      if (r < region.top || r >= region.bottom || c < region.left || c >= region.right) continue;
      return numbers[(r - region.top) * (region.right - region.left) + c - region.left];
    }
    this.#ask(() => this.#fetch(r, c));
    return undefined;
  }

  isHidden(row: number, column: number): boolean {
    const { hidden, transposed } = this.#options;
    const at = transposed ? column * this.rows + row : row * this.columns + column;
    return hidden !== null && (hidden[at] ?? 0) !== 0;
  }

  isBare(row: number, column: number): boolean {
    return this.hatching === "bare" && this.isHidden(row, column);
  }

  shownAt(row: number, column: number): number {
    if (this.#numbers) return this.#numbers.shownAt(row, column);
    return (this.valueAt(row, column) ?? Number.NaN) * (this.#matrix?.survey.factors?.[row] ?? 1);
  }

  /** The numbers themselves. @throws Error where they were not read */
  whole(): Peaks {
    if (this.#numbers) return this.#numbers;
    throw new Error("the numbers of this picture lie on a graphics processor; give the view what trace.read gives");
  }

  /** The latest picture of blocks of a region, as far as there is one; a better one is asked for. */
  pixels(level: number, seen: Region, scale: ColorScale, dark: boolean): Pixels | null {
    if (this.#numbers) return pixelsOf(raster(this.#numbers, level, seen, scale, dark), 2 ** level, seen);
    if (!this.#matrix) return null;
    const picture = this.#picture;
    const isNear = picture?.look === lookOf(scale, dark) && picture.block === 2 ** level;
    if (isNear && holds(picture.region, seen)) {
      const { image, block, region } = picture;
      return { image, block, region: seen, left: seen.left - region.left, top: seen.top - region.top };
    }
    this.#wish = { level, region: this.#widened(seen, 2 ** level), scale, dark };
    this.#ask(() => this.#draw());
    return picture && { ...picture, left: 0, top: 0 };
  }

  destroy(): void {
    this.#isClosed = true;
    this.#matrix?.free();
    this.#picture?.image.close();
    [this.#matrix, this.#picture] = [null, null];
  }

  async #ask(act: () => Promise<void>): Promise<void> {
    if (this.#isLost) return;
    try {
      await act();
    } catch (reason) {
      if (!this.#isLost && !this.#isClosed) console.error(reason);
      this.#isLost = true;
    }
  }

  async #open(): Promise<void> {
    const { hidden, hiddenKeepsColor, byRow, transposed } = this.#options;
    const leftOut = hidden === null || hiddenKeepsColor ? null : Uint8Array.from(hidden);
    const matrix = await this.#tensor.open({ hidden: leftOut, byRow, transposed });
    if (this.#isClosed) return matrix?.free();
    if (!matrix) return this.#read();
    this.#matrix = matrix;
    ({ reach: this.reach, outside: this.outside } = matrix.survey);
    this.#changed();
  }

  async #read(): Promise<void> {
    this.#matrix = null;
    const { data } = await this.#tensor.read();
    if (this.#isClosed) return;
    const [rows = 1, columns = 1] = this.#tensor.shape;
    this.#numbers = new Peaks({ data, rows, columns }, this.#options);
    this.#changed();
  }

  async #draw(): Promise<void> {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    for (let wish = this.#wish; wish && this.#matrix; wish = this.#wish) {
      this.#wish = null;
      const { level, region, scale, dark } = wish;
      const [block, look] = [2 ** level, lookOf(scale, dark)];
      if (look !== this.#colors?.look)
        this.#colors = { look, thresholds: thresholds(scale), colors: colorsOf(scale, dark) };
      const { thresholds: from, colors } = this.#colors;
      const image = await this.#matrix.draw({ block, region, thresholds: from, colors });
      if (!image && !this.#isClosed) await this.#read();
      if (!image || this.#isClosed) {
        image?.close();
        break;
      }
      this.#picture?.image.close();
      this.#picture = { image, block, region, look };
      this.#changed();
    }
    this.#isDrawing = false;
  }

  async #fetch(row: number, column: number): Promise<void> {
    if (this.#isFetching || !this.#matrix) return;
    this.#isFetching = true;
    const [rows = 1, columns = 1] = this.#tensor.shape;
    const region = {
      top: Math.max(0, row - BEFORE),
      left: Math.max(0, column - BEFORE),
      bottom: Math.min(rows, row + FROM),
      right: Math.min(columns, column + FROM),
    };
    const numbers = await this.#matrix.cells(region);
    this.#isFetching = false;
    if (this.#isClosed) return;
    if (!numbers) return this.#read();
    this.#windows = [{ region, numbers }, ...this.#windows].slice(0, MOST_WINDOWS);
    this.#changed();
  }

  /** Half of what is seen on every side as well, so that there is something to see while one pans. */
  #widened({ top, left, bottom, right }: Region, block: number): Region {
    const [down, across] = [bottom - top, right - left].map((length) => Math.ceil(length / 2)) as [number, number];
    return {
      top: Math.max(0, top - down),
      left: Math.max(0, left - across),
      bottom: Math.min(Math.ceil(this.rows / block), bottom + down),
      right: Math.min(Math.ceil(this.columns / block), right + across),
    };
  }
}

function holds(outer: Region, inner: Region): boolean {
  return (
    outer.top <= inner.top && outer.left <= inner.left && outer.bottom >= inner.bottom && outer.right >= inner.right
  );
}

const lookOf = (scale: ColorScale, dark: boolean) => JSON.stringify([scale, dark]);

/** A matrix ready to be drawn, wherever its numbers are. */
export type AnyPeaks = Peaks | DevicePeaks;

/** The numbers of a matrix. @throws Error where they lie on a graphics processor */
export function wholeOf(peaks: AnyPeaks): Peaks {
  return peaks instanceof DevicePeaks ? peaks.whole() : peaks;
}

/** Lets go of what a graphics processor holds for a matrix. */
export function close(peaks: AnyPeaks): void {
  if (peaks instanceof DevicePeaks) peaks.destroy();
}

/** Whether numbers lie on a graphics processor. */
export function isOnDevice(values: object): values is DeviceTensor {
  return "open" in values;
}
