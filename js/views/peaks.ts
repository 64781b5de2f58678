import type { Outside, Region } from "../device.ts";
import type { Matrix } from "./matrix.ts";

/** What is drawn of a matrix: its cells, or its blocks of `2 ** level` by `2 ** level` cells. */
interface Level {
  readonly data: ArrayLike<number>;
  /** Nonzero where there is nothing to show. */
  readonly covered: ArrayLike<number> | null;
  readonly rows: number;
  readonly columns: number;
  readonly rowStride: number;
  readonly columnStride: number;
  /** What each row's values are multiplied by. */
  readonly factors: Float32Array | null;
}

/** The blocks that hold a region of cells. */
export function blocksOf({ top, left, bottom, right }: Region, block: number): Region {
  return {
    top: Math.floor(top / block),
    left: Math.floor(left / block),
    bottom: Math.ceil(bottom / block),
    right: Math.ceil(right / block),
  };
}

/** The largest magnitude of every block of a region, and which blocks are hidden altogether. */
export interface Blocks {
  readonly peaks: Float32Array;
  readonly covered: Uint8Array;
}

export interface PeaksOptions {
  /** Hidden cells, row-major, nonzero where hidden. They are left out, but where they keep their colour. */
  readonly hidden: ArrayLike<number> | null;
  readonly hiddenKeepsColor: boolean;
  /** Whether every value is taken relative to the largest of its row. */
  readonly byRow: boolean;
  /** Whether rows are drawn across and columns down. */
  readonly transposed: boolean;
}

// Levels 0 and 1 are read from the numbers themselves, so that all levels together take a twelfth of their memory.
const FIRST_STORED = 2;
const CELLS_AT_ONCE = 1 << 17;

// A NaN is larger than anything. Hidden cells do not count, but for a NaN: a mask never meant that.
function fill(from: Level, block: number, { top, left, bottom, right }: Region, out: Blocks, start: number): void {
  const { data, covered, rowStride, columnStride, factors } = from;
  let at = start;
  for (let y = top; y < bottom; y++) {
    const lastRow = Math.min(from.rows, (y + 1) * block);
    for (let x = left; x < right; x++, at++) {
      const lastColumn = Math.min(from.columns, (x + 1) * block);
      let largest = -1;
      let peak = 0;
      for (let row = y * block; row < lastRow; row++) {
        const factor = factors === null ? 1 : (factors[row] as number);
        const end = row * rowStride + lastColumn * columnStride;
        for (let i = row * rowStride + x * block * columnStride; i < end; i += columnStride) {
          const value = factor === 1 ? (data[i] as number) : Math.fround((data[i] as number) * factor);
          const size = Math.abs(value);
          if (size <= largest) continue;
          if (Number.isNaN(size)) {
            largest = Infinity;
            peak = Number.NaN;
          } else if (covered === null || covered[i] === 0) {
            largest = size;
            peak = value;
          }
        }
      }
      out.peaks[at] = peak;
      out.covered[at] = largest < 0 ? 1 : 0;
    }
  }
}

/**
 * A matrix ready to be drawn at any size: where cells are smaller than pixels a block shows its largest magnitude, so
 * that a lone spike stays visible. It is made in pieces, so that a large one never holds up the page.
 */
export class Peaks {
  readonly rows: number;
  readonly columns: number;
  /** The largest finite magnitude of what is not hidden. */
  reach = 0;
  outside: Outside = { nan: false, plus: false, minus: false };

  readonly hatching: "none" | "bare" | "over colour";
  readonly #hidden: ArrayLike<number> | null;
  readonly #cells: Level;
  readonly #stored: Level[] = [];
  readonly #work: Iterator<void>;
  #isReady = false;

  constructor(matrix: Matrix, { hidden, hiddenKeepsColor, byRow, transposed }: PeaksOptions) {
    const { data, rows, columns } = matrix;
    this.rows = transposed ? columns : rows;
    this.columns = transposed ? rows : columns;
    this.hatching = hidden === null ? "none" : hiddenKeepsColor ? "over colour" : "bare";
    this.#hidden = hidden;
    this.#cells = {
      data,
      covered: hiddenKeepsColor ? null : hidden,
      rows: this.rows,
      columns: this.columns,
      rowStride: transposed ? 1 : columns,
      columnStride: transposed ? columns : 1,
      factors: byRow ? new Float32Array(this.rows) : null,
    };
    this.#work = this.#make();
  }

  /** Goes on until the deadline; whether all is made. */
  advance(deadline: number): boolean {
    while (!this.#isReady) {
      this.#isReady = this.#work.next().done === true;
      if (performance.now() > deadline) break;
    }
    return this.#isReady;
  }

  valueAt(row: number, column: number): number {
    const { data, rowStride, columnStride } = this.#cells;
    return data[row * rowStride + column * columnStride] ?? Number.NaN;
  }

  isHidden(row: number, column: number): boolean {
    const { rowStride, columnStride } = this.#cells;
    return this.#hidden !== null && (this.#hidden[row * rowStride + column * columnStride] ?? 0) !== 0;
  }

  /** Whether a cell is hidden and has no colour. */
  isBare(row: number, column: number): boolean {
    return this.hatching === "bare" && this.isHidden(row, column);
  }

  /** The number that a cell's colour stands for: its value, or its share of the row's largest. */
  shownAt(row: number, column: number): number {
    return this.valueAt(row, column) * (this.#cells.factors?.[row] ?? 1);
  }

  sumOf(row: number): number {
    let sum = 0;
    for (let column = 0; column < this.columns; column++) sum += this.valueAt(row, column);
    return sum;
  }

  /** The blocks of a region, counted in blocks of `2 ** level` cells a side. */
  blocks(level: number, region: Region): Blocks {
    const size = (region.bottom - region.top) * (region.right - region.left);
    const out = { peaks: new Float32Array(size), covered: new Uint8Array(size) };
    if (level < FIRST_STORED) fill(this.#cells, 2 ** level, region, out, 0);
    else fill(this.#stored[level - FIRST_STORED] as Level, 1, region, out, 0);
    return out;
  }

  *#make(): Generator<void> {
    yield* this.#survey();
    let from = this.#cells;
    for (let block = 2 ** FIRST_STORED; from.rows > 1 || from.columns > 1; block = 2) {
      const rows = Math.ceil(from.rows / block);
      const columns = Math.ceil(from.columns / block);
      const made = { peaks: new Float32Array(rows * columns), covered: new Uint8Array(rows * columns) };
      const atOnce = Math.max(1, Math.floor(CELLS_AT_ONCE / (from.columns * block)));
      for (let top = 0; top < rows; top += atOnce) {
        fill(from, block, { top, left: 0, bottom: Math.min(rows, top + atOnce), right: columns }, made, top * columns);
        yield;
      }
      const { peaks: data, covered } = made;
      from = { data, covered, rows, columns, rowStride: columns, columnStride: 1, factors: null };
      this.#stored.push(from);
    }
  }

  // Every row's largest finite magnitude, and what is not finite.
  *#survey(): Generator<void> {
    const { data, covered, rowStride, columnStride, factors } = this.#cells;
    let [reach, nan, plus, minus] = [0, false, false, false];
    const atOnce = Math.max(1, Math.floor(CELLS_AT_ONCE / this.columns));
    for (let row = 0; row < this.rows; row++) {
      let largest = 0;
      const end = row * rowStride + this.columns * columnStride;
      for (let i = row * rowStride; i < end; i += columnStride) {
        const value = data[i] as number;
        const size = Math.abs(value);
        if (size <= largest) continue;
        if (Number.isNaN(size)) nan = true;
        else if (covered === null || covered[i] === 0) {
          if (size < Infinity) largest = size;
          else if (value > 0) plus = true;
          else minus = true;
        }
      }
      if (factors) factors[row] = largest > 0 ? 1 / largest : 1;
      reach = Math.max(reach, largest);
      if (row % atOnce === atOnce - 1) yield;
    }
    this.reach = reach;
    this.outside = { nan, plus, minus };
  }
}
