import type { StateDict, Tensor } from "attnscope";
import { dictName, gridFrom, isInput, type Kind, type Matrix, type MatrixName, zeros } from "./matrices.ts";
import { atSize, gridOf, LONGEST_CELL, MOST, type NumberGrid, parseNumber } from "./number-grid.ts";

/** What is typed into a cell. */
export interface Edit {
  readonly row: number;
  readonly column: number;
  readonly typed: string;
}

/** A matrix and its bias in one grid: the bias is the column behind the last. */
interface Joined extends NumberGrid {
  readonly hasBias: boolean;
}

/** What a pass was made of. */
export interface InUse {
  readonly kind: Kind;
  readonly x: Tensor;
  readonly memory: Tensor | null;
  readonly weights: StateDict;
}

/** One of the matrices as a pass used it. */
export function matrixInUse(name: MatrixName, layer: number, { kind, x, memory, weights }: InUse): Joined {
  if (isInput(name)) return { ...gridFrom(name === "x" ? x : (memory ?? x)), hasBias: false };
  const at = dictName(name, layer, kind);
  const {
    data,
    shape: [rows = 1, columns = 1],
  } = weights[`${at}.weight`] as Tensor;
  const bias = weights[`${at}.bias`]?.data;
  const grid = gridOf(rows, columns + 1, (row, column) =>
    column < columns ? (data[row * columns + column] ?? 0) : (bias?.[row] ?? 0),
  );
  return { ...grid, hasBias: true };
}

const EMPTY = zeros(1, 1);

function split({ rows, columns, values, hasBias }: Joined): Pick<Matrix, "weight" | "bias"> {
  const inner = hasBias ? columns - 1 : columns;
  const valueAt = (row: number, column: number) => values[row * columns + column] ?? 0;
  return {
    weight: gridOf(rows, inner, valueAt),
    bias: hasBias ? gridOf(rows, 1, (row) => valueAt(row, inner)) : null,
  };
}

/** The matrix to show for editing: what was typed, at once and at the size of the pass; else what the pass used. */
export function toEdit({ origin, weight, bias }: Matrix, inUse: Joined): NumberGrid {
  if (origin !== "typed") return inUse;
  const { rows, columns, hasBias } = inUse;
  if (!hasBias) return atSize(weight ?? EMPTY, rows, columns);
  const inner = atSize(weight ?? EMPTY, rows, columns - 1);
  const last = atSize(bias ?? EMPTY, rows, 1);
  const joined = gridOf(rows, columns, (row, column) =>
    column < columns - 1 ? (inner.values[row * (columns - 1) + column] ?? 0) : (last.values[row] ?? 0),
  );
  return {
    ...joined,
    wrong: [...inner.wrong, ...last.wrong.map(({ row, typed }) => ({ row, column: columns - 1, typed }))],
  };
}

/** The matrix after cells of the shown one were typed. */
export function editedMatrix(matrix: Matrix, inUse: Joined, edits: readonly Edit[]): Matrix {
  const before = matrix.origin === "typed" ? matrix : split(inUse);
  const isBias = ({ column }: Edit) => inUse.hasBias && column === inUse.columns - 1;
  const biasEdits = edits.filter(isBias).map((edit) => ({ ...edit, column: 0 }));
  return {
    origin: "typed",
    weight: edited(
      before.weight ?? EMPTY,
      edits.filter((edit) => !isBias(edit)),
    ),
    bias: inUse.hasBias ? edited(before.bias ?? EMPTY, biasEdits) : null,
  };
}

/** The grid after some cells were typed, grown to hold them. */
export function edited(grid: NumberGrid, edits: readonly Edit[]): NumberGrid {
  const rows = Math.max(grid.rows, ...edits.map(({ row }) => row + 1));
  const columns = Math.max(grid.columns, ...edits.map(({ column }) => column + 1));
  const { wrong, ...grown } = atSize(grid, rows, columns);
  const values = grown.values.slice();
  const stillWrong = new Map(wrong.map((cell) => [cell.row * columns + cell.column, cell]));
  for (const { row, column, typed } of edits) {
    const at = row * columns + column;
    const number = parseNumber(typed);
    if (number === null) {
      stillWrong.set(at, { row, column, typed: typed.slice(0, LONGEST_CELL) });
    } else {
      values[at] = number;
      stillWrong.delete(at);
    }
  }
  return { ...grown, values, wrong: [...stillWrong.values()].slice(0, MOST) };
}
