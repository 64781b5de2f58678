import { fromBase64 } from "./base64.ts";
import { list, type Reader, record, text, Unreadable, whole } from "./reader.ts";

/** What was typed into a cell and is no number that a float32 can hold; the number that was there stays in use. */
export interface Wrong {
  readonly row: number;
  readonly column: number;
  readonly typed: string;
}

/** Numbers that are edited cell by cell. */
export interface NumberGrid {
  readonly rows: number;
  readonly columns: number;
  readonly values: Float32Array;
  readonly wrong: readonly Wrong[];
}

/** The most rows, and columns, and wrong cells. */
export const MOST = 4096;
const LONGEST = 32_000_000;
export const LONGEST_CELL = 200;

const readPacked = record<Omit<NumberGrid, "values"> & { values: string }>(
  {
    rows: whole(1, MOST),
    columns: whole(1, MOST),
    values: text(LONGEST),
    wrong: list(
      record<Wrong>(
        { row: whole(0, MOST), column: whole(0, MOST), typed: text(LONGEST_CELL) },
        { row: 0, column: 0, typed: "" },
      ),
      0,
      MOST,
    ),
  },
  { rows: 0, columns: 0, values: "", wrong: [] },
);

export const readNumberGrid: Reader<NumberGrid> = (value, path) => {
  const { rows, columns, values, wrong } = readPacked(value, path);
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = fromBase64(values);
  } catch {
    throw new Unreadable("wrong_value", path);
  }
  if (bytes.length !== 4 * rows * columns) throw new Unreadable("wrong_value", path);
  return { rows, columns, values: new Float32Array(bytes.buffer), wrong };
};

export function gridOf(rows: number, columns: number, valueAt: (row: number, column: number) => number): NumberGrid {
  const values = Float32Array.from({ length: rows * columns }, (_, i) => valueAt(Math.floor(i / columns), i % columns));
  return { rows, columns, values, wrong: [] };
}

/** The grid at another size: numbers keep their place, new ones are 0. */
export function atSize(grid: NumberGrid, rows: number, columns: number): NumberGrid {
  if (rows === grid.rows && columns === grid.columns) return grid;
  const inside = (row: number, column: number) => row < grid.rows && column < grid.columns;
  const valueAt = (row: number, column: number) =>
    inside(row, column) ? (grid.values[row * grid.columns + column] ?? 0) : 0;
  return {
    ...gridOf(rows, columns, valueAt),
    wrong: grid.wrong.filter(({ row, column }) => row < rows && column < columns),
  };
}

/** The grid of other rows: each one of before, by its number, or null for a row of 0. */
export function ofRows(grid: NumberGrid, order: readonly (number | null)[]): NumberGrid {
  const valueAt = (row: number, column: number) => {
    const from = order[row] ?? null;
    return from === null ? 0 : (grid.values[from * grid.columns + column] ?? 0);
  };
  return {
    ...gridOf(order.length, grid.columns, valueAt),
    wrong: order.flatMap((from, row) =>
      grid.wrong.filter((cell) => cell.row === from).map((cell) => ({ ...cell, row })),
    ),
  };
}

const WORDS: Record<string, number> = {
  nan: Number.NaN,
  inf: Infinity,
  "+inf": Infinity,
  "-inf": -Infinity,
  infinity: Infinity,
  "-infinity": -Infinity,
  "∞": Infinity,
  "-∞": -Infinity,
};

const spelled = (typed: string) => typed.trim().replaceAll("−", "-").toLowerCase();

/** The number that was typed in digits, as a float32; NaN for none. */
function fromDigits(typed: string): number {
  const plain = spelled(typed);
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(plain) ? Math.fround(Number(plain)) : Number.NaN;
}

/** Whether digits were typed that no float32 can hold. */
export function isTooLarge(typed: string): boolean {
  return Math.abs(fromDigits(typed)) === Infinity;
}

/** The number that was typed, as notebooks and spreadsheets write it; null for none. */
export function parseNumber(typed: string): number | null {
  const plain = spelled(typed);
  if (Object.hasOwn(WORDS, plain)) return WORDS[plain] ?? null;
  const number = fromDigits(typed);
  return Number.isFinite(number) ? number : null;
}

/** The shortest decimal that means this float32. */
export function writeNumber(value: number): string {
  if (!Number.isFinite(value)) return String(value).replace("Infinity", "inf");
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(Number(value.toPrecision(9)));
}
