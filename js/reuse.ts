import { invalidOption } from "./errors.ts";
import { isList, isTensor, type Tensor } from "./tensor.ts";
import { Trace } from "./trace.ts";

/** An earlier result that is given up. */
export interface Reusable {
  /** What came out. */
  readonly output: Tensor;
  /** The weights of one attention, or of each layer's. */
  readonly weights?: Tensor | readonly Tensor[] | null | undefined;
  /** Those of a decoder's attention to itself. */
  readonly selfWeights?: Tensor | readonly Tensor[] | null | undefined;
  /** Those of its attention to the memory. */
  readonly crossWeights?: Tensor | readonly Tensor[] | null | undefined;
  /** Its stages stay as they are, and with them what the result shares with them. */
  readonly trace?: Trace | null | undefined;
}

/** Which memory a pass puts its result into. */
export interface ReuseOptions {
  /**
   * An earlier result that nobody needs any more: output and weights of the same sizes are put into its memory instead of new
   * memory, which is much of what large weights cost. When the call settles its arrays are empty, whatever came of it: also where they
   * did not fit, the call was refused or the signal aborted it. What a trace of it holds stays, and so do parts of larger memory and
   * memory that is shared. Give a view that shows the arrays the new ones.
   *
   * ```ts
   * const mha = engine.multiHeadAttention({ dModel: 4, nHeads: 2 });
   * let result = await mha.forward([[1, 0, 0, 1], [0, 1, 1, 0]]);
   * result = await mha.forward([[1, 1, 0, 1], [0, 1, 0, 0]], { reuse: result });
   * console.log(result.weights.shape); // [ 2, 2, 2 ]
   * ```
   */
  reuse?: Reusable | null | undefined;
}

/** Runs a pass with the arrays of a result that is given up. @throws AttnError `invalid_option` */
export async function givingUp<T>(
  result: Reusable | null | undefined,
  pass: (spares: Float32Array[] | undefined) => Promise<T>,
): Promise<T> {
  const spares = sparesOf(result);
  try {
    return await pass(spares);
  } finally {
    for (const spare of spares ?? []) if (spare.length > 0) moved(spare);
  }
}

/** The same memory in another array; this one is empty then. */
export function moved(data: Float32Array): Float32Array {
  const buffer = data.buffer as ArrayBuffer & { transfer?(): ArrayBuffer };
  if (buffer.transfer) return new Float32Array(buffer.transfer());
  return structuredClone(data, { transfer: [buffer] });
}

function sparesOf(result: Reusable | null | undefined): Float32Array[] | undefined {
  if (result == null) return undefined;
  if (!isTensor(result.output)) throw invalidOption("reuse", result, "what a pass gave");
  const { output, weights, selfWeights, crossWeights, trace } = result;
  const held = trace instanceof Trace ? trace : null;
  const tensors = [output, weights, selfWeights, crossWeights].flatMap((given) => (isList(given) ? [...given] : given));
  const arrays = tensors.filter(isTensor).map(({ data }) => data);
  return arrays.filter((data) => isWhole(data) && !held?.holds(data));
}

/** Whether the memory behind it is all its own, so that it can be moved, and was not moved already. */
function isWhole(data: Float32Array): boolean {
  if (!(data instanceof Float32Array && data.buffer instanceof ArrayBuffer)) return false;
  return data.length > 0 && data.byteLength === data.buffer.byteLength;
}
