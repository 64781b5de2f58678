import { fromBase64 } from "./base64.ts";
import { list, type Reader, record, text, Unreadable, whole } from "./reader.ts";

/** Cells painted by hand: one matrix for all heads or one for each, nonzero where a query may attend to a key. */
export interface Painted {
  readonly rows: number;
  readonly columns: number;
  readonly cells: readonly Uint8Array[];
}

const MOST_CELLS = 4096;
const MOST_HEADS = 256;
const LONGEST = 4_000_000;

const readPacked = record<{ rows: number; columns: number; cells: readonly string[] }>(
  { rows: whole(1, MOST_CELLS), columns: whole(1, MOST_CELLS), cells: list(text(LONGEST), 1, MOST_HEADS) },
  { rows: 0, columns: 0, cells: [] },
);

export const readPainted: Reader<Painted> = (value, path) => {
  const { rows, columns, cells } = readPacked(value, path);
  const unpack = (packed: string) => {
    let bytes: Uint8Array;
    try {
      bytes = fromBase64(packed);
    } catch {
      throw new Unreadable("wrong_value", path);
    }
    if (bytes.length !== Math.ceil((rows * columns) / 8)) throw new Unreadable("wrong_value", path);
    const cells = new Uint8Array(rows * columns);
    for (let i = 0; i < cells.length; i++) cells[i] = ((bytes[i >> 3] as number) >> (i & 7)) & 1;
    return cells;
  };
  return { rows, columns, cells: cells.map(unpack) };
};

/** The cells of each head at another size: positions that are still there keep what was painted, new ones are open. */
export function resized({ rows, columns, cells }: Painted, toRows: number, toColumns: number, heads: number): Painted {
  if (toRows === rows && toColumns === columns && (cells.length === 1 || cells.length === heads)) {
    return { rows, columns, cells };
  }
  const kept = { rows: Math.min(rows, toRows), columns: Math.min(columns, toColumns) };
  const resize = (from: Uint8Array | undefined) => {
    const next = new Uint8Array(toRows * toColumns).fill(1);
    for (let row = 0; from && row < kept.rows; row++) {
      next.set(from.subarray(row * columns, row * columns + kept.columns), row * toColumns);
    }
    return next;
  };
  const count = cells.length === 1 ? 1 : heads;
  return { rows: toRows, columns: toColumns, cells: Array.from({ length: count }, (_, head) => resize(cells[head])) };
}
