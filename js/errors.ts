import type { ErrorCode } from "./generated.ts";
import { shown } from "./shown.ts";

/** What an error knows beside its message, such as `{ dModel: 10, nHeads: 4 }` or `{ path: [2, 5], found: "abc" }`. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/** Every code of an error: what its `details` hold, what it means, and what helps. */
export interface ErrorCodes {
  /**
   * The input is not numbers in a regular shape: it is ragged or empty, holds something else than numbers, or does not fill the shape
   * that was given. `path` is the place in the arrays.
   */
  invalid_tensor: { argument: string; path?: readonly number[]; found: string; expected: string };
  /** A tensor is sound, but its shape does not fit the module or the other tensors. `expected` says which shape would. */
  shape_mismatch: { argument?: string; found: readonly number[]; expected: string };
  /** The heads do not share the width evenly. Choose an `nHeads` that divides `dModel`, or set `dK` and `dV`. */
  not_divisible: { dModel: number; nHeads: number };
  /** An option is unknown, of the wrong type or out of its range. `option` names it, and `expected` says what it may be. */
  invalid_option: { option: string; found: string; expected: string };
  /** A mask of a fixed size met scores of another size. Make one for this many queries and keys, or use a rule, which fits any size. */
  mask_shape: { mask: readonly number[]; scores: readonly number[]; expected: string };
  /** The trace does not hold this stage in this layer. Take one of `available`; a stack counts its layers from 0. */
  no_such_stage: { stage: string; layer: number; available: readonly string[] };
  /** The call would need more memory than it may have; nothing was allocated. Compute less at once, or raise `maxBytes` of `createEngine`. */
  too_large: { needed: number; maxBytes: number };
  /**
   * An entry of a state dict is missing, left over or of the wrong shape; nothing was loaded. Compare the module's sizes with those of the
   * model; for a dict with several layers, say which `layer`.
   */
  bad_state_dict: { entry?: string; found: unknown; expected?: string };
  /**
   * A file is damaged, is of another format, or holds something that is not supported. The place is a byte, `offset`, or a `line` and
   * `column`. Say `format` if it was guessed wrongly.
   */
  bad_file: {
    format?: string;
    offset?: number;
    line?: number;
    column?: number;
    stage?: number;
    found?: string;
    expected?: string;
  };
  /**
   * There is no engine to ask: none was created yet, or the trace comes from a file. Await `createEngine()`, or run the pass again. Or `part`
   * of the package could not be loaded, `from` its address where that is known; the next call tries again.
   */
  no_engine: { part?: string; from?: string; found?: string };
  /** The engine was destroyed, or the pass forgotten by `dispose()`. Make a new one. */
  disposed: object;
  /**
   * A fault in attnscope itself; the console has the details. The engine no longer answers: create a new one, and please report the fault.
   * Only after a crash of the analysis, which the message then names, does the engine go on.
   */
  engine_crashed: { found?: string };
  /** With `backend: "webgpu"`: there is no GPU, or it refused. "auto" computes on the CPU instead. */
  gpu_unavailable: { backend: string };
  /** With `backend: "webgpu"`: the device went away, usually because of its driver. Create a new engine. */
  gpu_lost: { backend?: string };
}

/**
 * What attnscope throws when it refuses a call. The message names the argument, what was found and what was expected.
 *
 * ```ts
 * try {
 *   engine.multiHeadAttention({ dModel: 10, nHeads: 4 });
 * } catch (error) {
 *   if (!(error instanceof AttnError)) throw error;
 *   console.log(error.code, error.details); // not_divisible { dModel: 10, nHeads: 4 }
 * }
 * ```
 */
export class AttnError extends Error {
  /** What tells it from other errors where `instanceof` cannot, as across frames. */
  override readonly name = "AttnError";
  /** What went wrong; the same from version to version. */
  readonly code: ErrorCode;
  /** What {@link ErrorCodes} says of the code. */
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

/** The refusal of a part of the package that could not be loaded from its address, where it has one. */
export function notLoaded(part: string, from: string | undefined, reason: unknown): AttnError {
  const found = String(reason);
  const message = `${part} could not be loaded${from ? ` from ${from}` : ""}: ${found}`;
  return new AttnError("no_engine", message, { part, ...(from && { from }), found });
}

/** An error as it crosses between threads. */
export interface PlainError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: ErrorDetails;
}

/** What the engine or this package threw, as plain data; null for anything else, which is a crash. */
export function plainError(thrown: unknown): PlainError | null {
  if (!(thrown instanceof Error) || !("code" in thrown) || typeof thrown.code !== "string") return null;
  const details = "details" in thrown ? (thrown.details as ErrorDetails) : {};
  return { code: thrown.code as ErrorCode, message: thrown.message, details };
}

export function invalidOption(option: string, found: unknown, expected: string): AttnError {
  return refusedOption(option, shown(found), expected);
}

/** The same of what is told of in words. */
export function refusedOption(option: string, found: string, expected: string): AttnError {
  const details = { option, found, expected };
  return new AttnError("invalid_option", `option ${option}: found ${found}, expected ${expected}`, details);
}
