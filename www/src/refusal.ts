import { AttnError } from "attnscope";
import { isTooLarge, parseNumber } from "./number-grid.ts";
import type { RuleNumbers } from "./state.ts";

/** The fields of the state's numbers that a number is typed into. */
export const NUMBER_FIELDS = ["seed", "nHeads", "dModel", "dK", "dV", "scale", "nLayers", "dFf"] as const;

export type NumberName = (typeof NUMBER_FIELDS)[number];

export type Field = "sentence" | "keySentence" | NumberName | keyof RuleNumbers;

/** What was refused, and the field it concerns. */
export interface Problem {
  readonly field: Field;
  /**
   * An engine's code, or one of the page's own: `not_whole`, `not_a_number`, `out_of_range`, `not_divisible`, `no_tokens`,
   * `too_many_tokens`, `too_few_columns`; and what is taken all the same, `more_than_tokens` and `no_such_token`.
   */
  readonly code: string;
  readonly found: string;
  readonly message: string;
  /** What would have been taken. */
  readonly range?: readonly [least: number, most: number];
  /** Of `not_divisible`: the heads; of `more_than_tokens` and `no_such_token`: how many tokens there are. */
  readonly count?: number;
  /** Of `too_large`: bytes. */
  readonly needed?: number;
}

export class Refusal extends Error {
  constructor(
    readonly problem: Problem,
    /** What else was refused with it. */
    readonly others: readonly Problem[] = [],
  ) {
    super(problem.message);
  }
}

/** What was refused where this is done. */
export function refusedBy(act: () => void): readonly Problem[] {
  try {
    act();
    return [];
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return [error.problem, ...error.others];
  }
}

/** What each of several readers gives; one that refuses does not keep the others from being asked. */
export function readEach<Values extends object>(
  readers: { readonly [Name in keyof Values]: () => Values[Name] },
): Values {
  const values: Partial<Values> = {};
  const [first, ...others] = (Object.keys(readers) as (keyof Values)[]).flatMap((name) =>
    refusedBy(() => {
      values[name] = readers[name]();
    }),
  );
  if (first) throw new Refusal(first, others);
  return values as Values;
}

export function toProblem(error: unknown): Problem {
  if (error instanceof Refusal) return error.problem;
  const message = error instanceof Error ? error.message : String(error);
  const { code = "unexpected", details = {} } = error instanceof AttnError ? error : {};
  const field = NUMBER_FIELDS.find((field) => field === details.option) ?? "sentence";
  const { found, needed } = details;
  return { field, code, found: String(found ?? ""), message, ...(typeof needed === "number" && { needed }) };
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

/** The number that was typed into a field. */
export function decimal(field: Field, typed: string, least: number, most: number): number {
  const value = isTooLarge(typed) ? Infinity : (parseNumber(typed) ?? Number.NaN);
  if (value >= least && value <= most) return value;
  const message = `${field}: found "${typed}", expected a number from ${least} to ${most}`;
  const code = Number.isNaN(value) ? "not_a_number" : "out_of_range";
  throw new Refusal({ field, code, found: typed, message, range: [least, most] });
}

/** The whole numbers of a list such as `0, 3 5`. */
export function wholes(field: Field, typed: string, least: number, most: number): number[] {
  return typed
    .split(/[\s,;，、；]+/)
    .filter((part) => part !== "")
    .map((part) => whole(field, part, least, most));
}
