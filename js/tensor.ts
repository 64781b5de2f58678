import { AttnError } from "./errors.ts";
import { short, shown } from "./shown.ts";

/** Row-major float32 numbers and their shape, outermost axis first. */
export interface Tensor {
  /** The numbers, the last axis running fastest. */
  readonly data: Float32Array;
  /** How many there are along each axis. */
  readonly shape: readonly number[];
}

/** Numbers in brackets, as a notebook shows them. */
export type NestedArray = readonly (number | NestedArray)[] | Float32Array | Float64Array | Int32Array | Uint8Array;

/** What every function takes where it needs numbers. */
export type TensorLike = Tensor | NestedArray;

/**
 * A tensor of nested arrays, or of flat numbers and a shape.
 *
 * ```ts
 * console.log(tensor([[1, 2], [3, 4]]).shape); // [ 2, 2 ]
 * console.log(tensor([1, 2, 3, 4], [2, 2]).shape); // [ 2, 2 ]
 * ```
 *
 * @throws AttnError `invalid_tensor` with the place in `details.path` for ragged, empty, wrong-sized or non-numeric input.
 * NaN and infinity are let through.
 */
export function tensor(nested: TensorLike): Tensor;
export function tensor(data: ArrayLike<number>, shape: readonly number[]): Tensor;
export function tensor(data: TensorLike | ArrayLike<number>, shape?: readonly number[]): Tensor {
  return shape === undefined ? toTensor(data as TensorLike) : copied(shaped(data as ArrayLike<number>, shape));
}

/** The tensor of what a user gave for `argument`; always a copy. `kinds` says what a cell may be. */
export function toTensor(value: TensorLike, argument = "tensor", kinds: readonly string[] = ["number"]): Tensor {
  if (isTensor(value)) return copied(shaped(value.data, value.shape, argument));
  const shape: number[] = [];
  for (let level: unknown = value; isList(level); level = level[0]) {
    if (level.length === 0) {
      const path = shape.map(() => 0);
      throw invalid(argument, path, "an empty array", "at least one number");
    }
    shape.push(level.length);
    checkAxes(shape, argument);
  }
  if (shape.length === 0) throw notNumbers(argument, [], value, "a tensor or nested arrays of numbers");
  const data = new Float32Array(shape.reduce((size, axis) => size * axis, 1));
  const path: number[] = [];
  let filled = 0;
  const fill = (level: unknown): void => {
    const depth = path.length;
    if (depth === shape.length) {
      if (!kinds.includes(typeof level)) throw notNumbers(argument, path, level, `a ${kinds.join(" or a ")}`);
      data[filled++] = level as number;
      return;
    }
    if (!isList(level)) throw notNumbers(argument, path, level, `an array of ${shape[depth]}`);
    if (level.length !== shape[depth]) {
      throw invalid(argument, path, `an array of ${level.length}`, `an array of ${shape[depth]}, as the first`);
    }
    for (let i = 0; i < level.length; i++) {
      path[depth] = i;
      fill(level[i]);
    }
    path.length = depth;
  };
  fill(value);
  return { data, shape };
}

/** The same, whose numbers may be the user's own. */
export function lentTensor(value: TensorLike, argument: string): Tensor {
  return isTensor(value) ? shaped(value.data, value.shape, argument) : toTensor(value, argument);
}

export function copied({ data, shape }: Tensor): Tensor {
  return { data: new Float32Array(data), shape };
}

/** With the user's own numbers, where they are float32. */
function shaped(data: ArrayLike<number>, shape: readonly number[], argument = "tensor"): Tensor {
  if (!isList(data)) throw notNumbers(argument, [], data, "an array of numbers");
  if (!Array.isArray(shape) || shape.length === 0) {
    throw invalid(argument, [], `shape ${shown(shape)}`, "a shape of at least one axis");
  }
  checkAxes(shape, argument);
  // A list's holes have no turn in forEach.
  for (const [i, axis] of shape.entries()) {
    if (!Number.isSafeInteger(axis) || axis < 1) {
      throw invalid(argument, [], `axis ${i} of length ${shown(axis)}`, "a whole number of at least 1");
    }
  }
  const size = shape.reduce((size, axis) => size * axis, 1);
  if (data.length !== size) {
    throw invalid(
      argument,
      [],
      `${data.length} numbers`,
      `${size} numbers for shape ${short(`[${shape.join(", ")}]`)}`,
    );
  }
  // The cells of a typed array are all of one kind.
  const toCheck = ArrayBuffer.isView(data) ? 1 : data.length;
  for (let i = 0; i < toCheck; i++) {
    if (typeof data[i] !== "number") throw notNumbers(argument, [i], data[i], "a number");
  }
  return { data: data instanceof Float32Array ? data : new Float32Array(data), shape: [...shape] };
}

/** As many as NumPy's arrays may have; a list that lies in itself has no end of them. */
const MOST_AXES = 64;

function checkAxes(shape: readonly number[], argument: string): void {
  if (shape.length > MOST_AXES) throw invalid(argument, [], `more than ${MOST_AXES} axes`, `at most ${MOST_AXES}`);
}

export function isTensor(value: unknown): value is Tensor {
  return typeof value === "object" && value !== null && "data" in value && "shape" in value;
}

/** An array, or a typed one. */
export function isList(value: unknown): value is ArrayLike<unknown> {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}

/** A refusal of what was found at a place in the arrays. */
export function invalid(
  argument: string,
  path: readonly number[],
  found: string,
  expected: string,
  said = found,
): AttnError {
  const place = path.length > 0 ? `${argument}[${path.join("][")}]` : argument;
  const details = { argument, path, found, expected };
  return new AttnError("invalid_tensor", `${place}: found ${said}, expected ${expected}`, details);
}

/** The same of a value, whose details give a word as it is. */
export function notNumbers(argument: string, path: readonly number[], value: unknown, expected: string): AttnError {
  return invalid(argument, path, typeof value === "string" ? short(value) : shown(value), expected, shown(value));
}
