import type { ErrorCode } from "./generated.ts";

/** What an error knows beside its message, such as `{ dModel: 10, nHeads: 4 }` or `{ path: [2, 5], found: "abc" }`. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/**
 * Every refusal of attnscope. `code` is stable; the message names the argument, what was found and what was expected.
 *
 * ```ts
 * try {
 *   engine.multiHeadAttention({ dModel: 10, nHeads: 4 });
 * } catch (error) {
 *   if (error instanceof AttnError && error.code === "not_divisible") console.log(error.details);
 * }
 * ```
 */
export class AttnError extends Error {
  override readonly name = "AttnError";
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message);
    this.code = code;
    this.details = details;
  }
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
  const shown = typeof found === "string" ? `"${found}"` : String(found);
  return new AttnError("invalid_option", `option ${option}: found ${shown}, expected ${expected}`, {
    option,
    found: shown,
    expected,
  });
}
