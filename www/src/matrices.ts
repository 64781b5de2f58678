import type { StateDict, Tensor } from "attnscope";
import { atSize, type Edit, edited, gridOf, type NumberGrid, readNumberGrid } from "./number-grid.ts";
import { oneOf, orNull, record } from "./reader.ts";
import { Refusal } from "./refusal.ts";

export const MATRICES = ["x", "memory", "query", "key", "value", "out"] as const;
export type MatrixName = (typeof MATRICES)[number];

/** Where the numbers of X come from, and those of a projection. */
export const INPUT_ORIGINS = ["seed", "one_hot", "sinusoidal", "zeros", "identity", "typed"] as const;
export const LINEAR_ORIGINS = ["seed", "zeros", "identity", "typed"] as const;
export type Origin = (typeof INPUT_ORIGINS)[number];

/** X, or a projection; what was typed is kept while the numbers come from elsewhere. */
export interface Matrix {
  readonly origin: Origin;
  readonly weight: NumberGrid | null;
  /** `[out, 1]`; X has none. */
  readonly bias: NumberGrid | null;
}

export type Matrices = Readonly<Record<MatrixName, Matrix>>;

const SEEDED: Matrix = { origin: "seed", weight: null, bias: null };
export const ALL_SEEDED: Matrices = {
  x: SEEDED,
  memory: SEEDED,
  query: SEEDED,
  key: SEEDED,
  value: SEEDED,
  out: SEEDED,
};

const grids = { weight: orNull(readNumberGrid), bias: orNull(readNumberGrid) };
const readInput = record<Matrix>({ origin: oneOf<Origin>(...INPUT_ORIGINS), ...grids }, SEEDED);
const readLinear = record<Matrix>({ origin: oneOf<Origin>(...LINEAR_ORIGINS), ...grids }, SEEDED);

export const readMatrices = record<Matrices>(
  {
    x: readInput,
    memory: readInput,
    query: readLinear,
    key: readLinear,
    value: readLinear,
    out: readLinear,
  },
  ALL_SEEDED,
);

function tensorOf({ rows, columns, values }: NumberGrid): Tensor {
  return { data: values, shape: [rows, columns] };
}

function gridFrom({ data, shape: [rows = 1, columns = 1] }: Tensor): NumberGrid {
  return { rows, columns, values: data.slice(), wrong: [] };
}

const identity = (rows: number, columns: number) => gridOf(rows, columns, (row, column) => (row === column ? 1 : 0));
const zeros = (rows: number, columns: number) => gridOf(rows, columns, () => 0);

/** X, and for cross-attention the input of keys and values. */
export function isInput(name: MatrixName): name is "x" | "memory" {
  return name === "x" || name === "memory";
}

/** Which of all words each token is: 1 in the column of its word. */
function oneHot(tokens: readonly string[], allTokens: readonly string[], dModel: number): NumberGrid {
  const spelled = (line: readonly string[]) => line.map((token) => token.toLowerCase());
  const words = spelled(tokens);
  const vocabulary = [...new Set(spelled(allTokens))];
  if (vocabulary.length > dModel) {
    const message = `dModel: found ${dModel}, expected at least ${vocabulary.length} for as many different tokens`;
    throw new Refusal({ field: "dModel", code: "too_few_columns", found: String(vocabulary.length), message });
  }
  const columns = words.map((word) => vocabulary.indexOf(word));
  return gridOf(tokens.length, dModel, (row, column) => (columns[row] === column ? 1 : 0));
}

/** An input that is not drawn or computed by the engine; null for that. */
export function inputOf(
  { origin, weight }: Matrix,
  tokens: readonly string[],
  allTokens: readonly string[],
  dModel: number,
): Tensor | null {
  switch (origin) {
    case "one_hot":
      return tensorOf(oneHot(tokens, allTokens, dModel));
    case "zeros":
      return tensorOf(zeros(tokens.length, dModel));
    case "identity":
      return tensorOf(identity(tokens.length, dModel));
    case "typed":
      return tensorOf(atSize(weight ?? zeros(1, 1), tokens.length, dModel));
    default:
      return null;
  }
}

/** The drawn weights, with those of other origins in their place. */
export function weightsOf(matrices: Matrices, drawn: StateDict): StateDict {
  const weights: StateDict = { ...drawn };
  for (const name of MATRICES) {
    const { origin, weight, bias } = matrices[name];
    const [rows = 1, columns = 1] = drawn[`${name}.weight`]?.shape ?? [];
    if (isInput(name) || origin === "seed") continue;
    const typed = origin === "typed";
    const other = origin === "identity" ? identity(rows, columns) : zeros(rows, columns);
    weights[`${name}.weight`] = tensorOf(typed ? atSize(weight ?? zeros(1, 1), rows, columns) : other);
    const { values } = typed ? atSize(bias ?? zeros(1, 1), rows, 1) : zeros(rows, 1);
    weights[`${name}.bias`] = { data: values, shape: [rows] };
  }
  return weights;
}

export function typedInput(values: Tensor): Matrix {
  return { origin: "typed", weight: gridFrom(values), bias: null };
}

/** The projections as numbers to edit; where there is no bias it is 0. */
export function typedLinears(weights: StateDict): Pick<Matrices, "query" | "key" | "value" | "out"> {
  const linear = (name: string): Matrix => {
    const weight = weights[`${name}.weight`] as Tensor;
    const bias = weights[`${name}.bias`];
    return {
      origin: "typed",
      weight: gridFrom(weight),
      bias: bias ? gridFrom({ data: bias.data, shape: [bias.data.length, 1] }) : null,
    };
  };
  return { query: linear("query"), key: linear("key"), value: linear("value"), out: linear("out") };
}

/** Numbers that are in use, as ones to edit. */
export function typedMatrices(x: Tensor, memory: Tensor, weights: StateDict): Matrices {
  return { x: typedInput(x), memory: typedInput(memory), ...typedLinears(weights) };
}

/** A matrix and its bias in one grid: the bias is the column behind the last. */
interface Joined extends NumberGrid {
  readonly hasBias: boolean;
}

/** One of the matrices as a pass used it. */
export function matrixInUse(name: MatrixName, x: Tensor, memory: Tensor, weights: StateDict): Joined {
  if (isInput(name)) return { ...gridFrom(name === "x" ? x : memory), hasBias: false };
  const {
    data,
    shape: [rows = 1, columns = 1],
  } = weights[`${name}.weight`] as Tensor;
  const bias = weights[`${name}.bias`]?.data;
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
