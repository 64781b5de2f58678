import { invalidOption } from "./errors.ts";
import { isList, isTensor, type Tensor } from "./tensor.ts";
import { Trace } from "./trace.ts";

/** An earlier result that is given up. */
export interface Reusable {
  /** What came out. */
  readonly output: Tensor;
  /** The weights of one attention, or of each layer's. */
  readonly weights?: Tensor | readonly Tensor[] | null;
  /** Those of a decoder's attention to itself. */
  readonly selfWeights?: Tensor | readonly Tensor[] | null;
  /** Those of its attention to the memory. */
  readonly crossWeights?: Tensor | readonly Tensor[] | null;
  /** Its stages stay as they are, and with them what the result shares with them. */
  readonly trace?: Trace | null;
}

/** Which memory a pass puts its result into. */
export interface ReuseOptions {
  /**
   * An earlier result that nobody needs any more: output and weights of the same sizes are put into its memory instead of new
   * memory, which is much of what large weights cost. Its arrays are empty afterwards, even if the call fails; give a view that
   * shows them the new ones.
   *
   * ```ts
   * const mha = engine.multiHeadAttention({ dModel: 4, nHeads: 2 });
   * let result = await mha.forward([[1, 0, 0, 1], [0, 1, 1, 0]]);
   * result = await mha.forward([[1, 1, 0, 1], [0, 1, 0, 0]], { reuse: result });
   * console.log(result.weights.shape); // [ 2, 2, 2 ]
   * ```
   */
  reuse?: Reusable | null;
}

/** The arrays of a result that is given up. @throws AttnError `invalid_option` */
export function sparesOf(result: Reusable | null | undefined): Float32Array[] | undefined {
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
