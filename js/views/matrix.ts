/** A matrix in row-major order. Its numbers are read as they are, never copied: give a new array for new numbers. */
export interface Matrix {
  readonly data: ArrayLike<number>;
  readonly rows: number;
  readonly columns: number;
}

export interface Cell {
  readonly row: number;
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
