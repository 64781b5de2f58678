import type { StateDict, Tensor } from "attnscope";
import { atSize, gridOf, type NumberGrid, readNumberGrid } from "./number-grid.ts";
import { list, oneOf, orNull, record } from "./reader.ts";
import { Refusal } from "./refusal.ts";

/** What a pass is given, and the parameters of one block in the order in which it meets them. */
export const INPUTS = ["x", "memory"] as const;
const ATTENTION = ["query", "key", "value", "out"] as const;
const CROSS_ATTENTION = ["cross_query", "cross_key", "cross_value", "cross_out"] as const;
const LINEARS = [...ATTENTION, ...CROSS_ATTENTION, "linear1", "linear2"] as const;
const NORMS = ["norm1", "norm2", "norm3"] as const;

export type InputName = (typeof INPUTS)[number];
type LinearName = (typeof LINEARS)[number];
type NormName = (typeof NORMS)[number];
export type ParameterName = LinearName | NormName;
export type MatrixName = InputName | ParameterName;

/** What the numbers are those of: attention alone, a stack of an encoder's blocks, or of a decoder's. */
export type Kind = "attention" | "encoder" | "decoder";

const PARAMETERS: Record<Kind, readonly ParameterName[]> = {
  attention: ATTENTION,
  encoder: [...ATTENTION, "norm1", "linear1", "linear2", "norm2"],
  decoder: [...ATTENTION, "norm1", ...CROSS_ATTENTION, "norm2", "linear1", "linear2", "norm3"],
};

export function parametersOf(kind: Kind): readonly ParameterName[] {
  return PARAMETERS[kind];
}

/** A parameter's name in the engine's state dict, without `.weight`. */
export function dictName(name: ParameterName, layer: number, kind: Kind): string {
  if (kind === "attention") return name;
  const isOneOf = (names: readonly string[]) => names.includes(name);
  const within = isOneOf(ATTENTION)
    ? `attention.${name}`
    : isOneOf(CROSS_ATTENTION)
      ? `cross_attention.${name.slice("cross_".length)}`
      : name;
  return `layers.${layer}.${within}`;
}

/** Where the numbers of X come from, those of a linear map, and those of a norm. */
export const INPUT_ORIGINS = ["seed", "one_hot", "sinusoidal", "zeros", "identity", "typed"] as const;
export const LINEAR_ORIGINS = ["seed", "zeros", "identity", "typed"] as const;
export const NORM_ORIGINS = ["one", "typed"] as const;
export type Origin = (typeof INPUT_ORIGINS)[number] | (typeof NORM_ORIGINS)[number];

/** X, or a parameter; what was typed is kept while the numbers come from elsewhere. */
export interface Matrix {
  readonly origin: Origin;
  /** A norm's is `[dModel, 1]`. */
  readonly weight: NumberGrid | null;
  /** `[out, 1]`; X has none. */
  readonly bias: NumberGrid | null;
}

/** The parameters of one block; attention alone has those of its attention. */
export type Layer = Readonly<Record<ParameterName, Matrix>>;

/** Numbers of one's own. A layer that is not there is as {@link UNTOUCHED} says. */
export interface Matrices extends Readonly<Record<InputName, Matrix>> {
  readonly layers: readonly Layer[];
}

const SEEDED: Matrix = { origin: "seed", weight: null, bias: null };
const UNTOUCHED_NORM: Matrix = { origin: "one", weight: null, bias: null };

const ofEach = <Name extends string, Value>(names: readonly Name[], value: Value) =>
  Object.fromEntries(names.map((name) => [name, value])) as Record<Name, Value>;

/** A block as it is drawn. */
const UNTOUCHED: Layer = { ...ofEach(LINEARS, SEEDED), ...ofEach(NORMS, UNTOUCHED_NORM) };
export const ALL_SEEDED: Matrices = { x: SEEDED, memory: SEEDED, layers: [] };

export const MOST_LAYERS = 12;

const grids = { weight: orNull(readNumberGrid), bias: orNull(readNumberGrid) };
const readInput = record<Matrix>({ origin: oneOf<Origin>(...INPUT_ORIGINS), ...grids }, SEEDED);
const readLinear = record<Matrix>({ origin: oneOf<Origin>(...LINEAR_ORIGINS), ...grids }, SEEDED);
const readNorm = record<Matrix>({ origin: oneOf<Origin>(...NORM_ORIGINS), ...grids }, UNTOUCHED_NORM);

export const readMatrices = record<Matrices>(
  {
    x: readInput,
    memory: readInput,
    layers: list(
      record<Layer>({ ...ofEach(LINEARS, readLinear), ...ofEach(NORMS, readNorm) }, UNTOUCHED),
      0,
      MOST_LAYERS,
    ),
  },
  ALL_SEEDED,
);

/** One of the matrices; `layer` says which block's. */
export function matrixOf(matrices: Matrices, name: MatrixName, layer: number): Matrix {
  return isInput(name) ? matrices[name] : (matrices.layers[layer] ?? UNTOUCHED)[name];
}

/** The matrices with one of them in place of what it was. */
export function withMatrix(matrices: Matrices, name: MatrixName, layer: number, matrix: Matrix): Matrices {
  if (isInput(name)) return { ...matrices, [name]: matrix };
  const count = Math.max(matrices.layers.length, layer + 1);
  const layers = Array.from({ length: count }, (_, i) => matrices.layers[i] ?? UNTOUCHED);
  return { ...matrices, layers: layers.map((kept, i) => (i === layer ? { ...kept, [name]: matrix } : kept)) };
}

function tensorOf({ rows, columns, values }: NumberGrid): Tensor {
  return { data: values, shape: [rows, columns] };
}

export function gridFrom({ data, shape: [rows = 1, columns = 1] }: Tensor): NumberGrid {
  return { rows, columns, values: data.slice(), wrong: [] };
}

const identity = (rows: number, columns: number) => gridOf(rows, columns, (row, column) => (row === column ? 1 : 0));
export const zeros = (rows: number, columns: number) => gridOf(rows, columns, () => 0);

/** X, and for cross-attention what it attends to. */
export function isInput(name: MatrixName): name is InputName {
  return (INPUTS as readonly string[]).includes(name);
}

export function isNorm(name: MatrixName): name is NormName {
  return (NORMS as readonly string[]).includes(name);
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
export function weightsOf(matrices: Matrices, drawn: StateDict, kind: Kind, nLayers: number): StateDict {
  const weights: StateDict = { ...drawn };
  for (let layer = 0; layer < nLayers; layer++) {
    for (const name of parametersOf(kind)) {
      const { origin, weight, bias } = matrixOf(matrices, name, layer);
      if (origin === "seed" || origin === "one") continue;
      const at = dictName(name, layer, kind);
      const shape = drawn[`${at}.weight`]?.shape ?? [];
      const [rows = 1, columns = 1] = shape;
      const typed = origin === "typed";
      const other = origin === "identity" ? identity(rows, columns) : zeros(rows, columns);
      const { values } = typed ? atSize(weight ?? zeros(1, 1), rows, columns) : other;
      weights[`${at}.weight`] = { data: values, shape };
      const biases = typed ? atSize(bias ?? zeros(1, 1), rows, 1) : zeros(rows, 1);
      weights[`${at}.bias`] = { data: biases.values, shape: [rows] };
    }
  }
  return weights;
}

export function typedInput(values: Tensor): Matrix {
  return { origin: "typed", weight: gridFrom(values), bias: null };
}

/** The parameters of blocks as numbers to edit; where there is no bias it is 0. */
export function typedLayers(weights: StateDict, kind: Kind, nLayers: number): readonly Layer[] {
  const typed = (at: string): Matrix => {
    const weight = weights[`${at}.weight`] as Tensor;
    const bias = weights[`${at}.bias`];
    return {
      origin: "typed",
      weight: gridFrom(weight),
      bias: bias ? gridFrom({ data: bias.data, shape: [bias.data.length, 1] }) : null,
    };
  };
  return Array.from({ length: nLayers }, (_, layer) => ({
    ...UNTOUCHED,
    ...Object.fromEntries(parametersOf(kind).map((name) => [name, typed(dictName(name, layer, kind))])),
  }));
}
