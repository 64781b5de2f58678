import { invalidOption } from "./errors.ts";
import { isList, isTensor, type Tensor } from "./tensor.ts";

/** An earlier result that is given up. */
export interface Reusable {
  readonly output: Tensor;
  readonly weights?: Tensor | readonly Tensor[] | null;
  readonly selfWeights?: Tensor | readonly Tensor[] | null;
  readonly crossWeights?: Tensor | readonly Tensor[] | null;
}

/** What a pass may say of the memory for its result. */
export interface ReuseOptions {
  /**
   * An earlier result that nobody needs any more: output and weights of the same sizes are put into its arrays instead of new
   * ones, whose memory is much of what large weights cost. From the call on, whatever comes of it, its numbers are no longer
   * those that it had; with a worker its arrays are empty.
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
  const { output, weights, selfWeights, crossWeights } = result;
  return [output, weights, selfWeights, crossWeights].flatMap((tensors) =>
    (isList(tensors) ? [...tensors] : [tensors])
      .filter(isTensor)
      .map(({ data }) => data)
      .filter(isWhole),
  );
}

/** Whether the memory behind it is all its own, so that it can be moved, and was not moved already. */
function isWhole(data: unknown): data is Float32Array {
  if (!(data instanceof Float32Array && data.buffer instanceof ArrayBuffer)) return false;
  return data.length > 0 && data.byteLength === data.buffer.byteLength;
}
