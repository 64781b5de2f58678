/** A matrix in row-major order. Its numbers are read as they are, never copied: give a new array for new numbers. */
export interface Matrix {
  /** Its numbers, row by row. */
  readonly data: ArrayLike<number>;
  /** The number of rows. */
  readonly rows: number;
  /** The number of columns. */
  readonly columns: number;
}

/** A place in a matrix. */
export interface Cell {
  /** Counted from 0. */
  readonly row: number;
  /** Counted from 0. */
  readonly column: number;
}

export function isSameCell(a: Cell | null, b: Cell | null): boolean {
  return a?.row === b?.row && a?.column === b?.column;
}

/** Whether two arrays are the same numbers in memory. */
export function isSameData(a: ArrayLike<number> | null, b: ArrayLike<number> | null): boolean {
  if (a === b) return true;
  if (!ArrayBuffer.isView(a) || !ArrayBuffer.isView(b)) return false;
  return a.buffer === b.buffer && a.byteOffset === b.byteOffset && a.byteLength === b.byteLength;
}
