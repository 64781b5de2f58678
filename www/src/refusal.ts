import { AttnError } from "attnscope";
import type { RuleNumbers } from "./state.ts";

export type Field = "sentence" | "keySentence" | "seed" | "nHeads" | "dModel" | "dK" | "dV" | keyof RuleNumbers;

/** What was refused, and the field it concerns. */
export interface Problem {
  readonly field: Field;
  /**
   * An engine's code, or one of the page's own: `not_whole`, `out_of_range`, `no_tokens`, `too_many_tokens`,
   * `too_few_columns`.
   */
  readonly code: string;
  readonly found: string;
  readonly message: string;
  /** What would have been taken. */
  readonly range?: readonly [least: number, most: number];
}

export class Refusal extends Error {
  constructor(readonly problem: Problem) {
    super(problem.message);
  }
}

const FIELDS: Record<string, Field> = { dModel: "dModel", nHeads: "nHeads", dK: "dK", dV: "dV", seed: "seed" };

export function toProblem(error: unknown): Problem {
  if (error instanceof Refusal) return error.problem;
  const message = error instanceof Error ? error.message : String(error);
  const { code = "unexpected", details = {} } = error instanceof AttnError ? error : {};
  const field = code === "not_divisible" ? "dModel" : (FIELDS[String(details.option)] ?? "sentence");
  return { field, code, found: String(details.found ?? ""), message };
}

/** The whole number that was typed into a field. */
export function whole(field: Field, typed: string, least: number, most: number): number {
  const value = Number(typed);
  const isWhole = typed.trim() !== "" && Number.isInteger(value);
  if (isWhole && value >= least && value <= most) return value;
  const message = `${field}: found "${typed}", expected a whole number from ${least} to ${most}`;
  const code = isWhole ? "out_of_range" : "not_whole";
  throw new Refusal({ field, code, found: typed, message, range: [least, most] });
}

/** The whole numbers of a list such as `0, 3 5`. */
export function wholes(field: Field, typed: string, least: number, most: number): number[] {
  return typed
    .split(/[\s,;，、；]+/)
    .filter((part) => part !== "")
    .map((part) => whole(field, part, least, most));
}
