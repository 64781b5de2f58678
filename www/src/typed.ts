import type { Kind } from "./matrices.ts";
import { decimal, type Field, NUMBER_FIELDS, type Problem, Refusal, readEach, refusedBy, whole } from "./refusal.ts";
import { LIMITS, type Numbers, START } from "./state.ts";
import { tokenize } from "./tokens.ts";

/** The lines and the numbers that a pass is made of, as they were typed. */
export interface Typed {
  readonly tokens: readonly string[];
  /** Null where keys and values come from the tokens themselves. */
  readonly otherTokens: readonly string[] | null;
  readonly numbers: Numbers;
}

/** What a model is built as. */
export interface Build {
  readonly kind: Kind;
  readonly nLayers: number;
}

/**
 * What is to compute.
 *
 * @throws Refusal
 */
export function buildOf({ model, nLayers }: Numbers, isCross: boolean): Build {
  if (model === "attention") return { kind: "attention", nLayers: 1 };
  return { kind: isCross ? "decoder" : "encoder", nLayers: whole("nLayers", nLayers, 1, LIMITS.nLayers) };
}

/** The numbers of the fields from which weights are drawn; undefined where nothing was typed into one that may be empty. */
export interface TypedNumbers {
  readonly seed: number;
  readonly nHeads: number;
  readonly dModel: number;
  readonly dK: number | undefined;
  readonly dV: number | undefined;
  readonly dFf: number;
  readonly scale: number | undefined;
}

function optional(typed: string, read: (typed: string) => number): number | undefined {
  return typed.trim() === "" ? undefined : read(typed);
}

/** @throws Refusal for each field that cannot be used */
export function typedNumbers({ otherTokens, numbers }: Typed): TypedNumbers {
  const isAttention = numbers.model === "attention";
  const width = (name: "dK" | "dV") => optional(numbers[name], (typed) => whole(name, typed, 1, LIMITS.dK));
  const read = readEach({
    build: () => buildOf(numbers, otherTokens !== null),
    seed: () => whole("seed", numbers.seed, 0, Number.MAX_SAFE_INTEGER),
    nHeads: () => whole("nHeads", numbers.nHeads, 1, LIMITS.nHeads),
    dModel: () => whole("dModel", numbers.dModel, 1, LIMITS.dModel),
    dK: () => width("dK"),
    dV: () => (isAttention ? width("dV") : undefined),
    dFf: () => (isAttention ? 0 : optional(numbers.dFf, (typed) => whole("dFf", typed, 1, LIMITS.dFf))),
    scale: () => optional(numbers.scale, (typed) => decimal("scale", typed, -LIMITS.scale, LIMITS.scale)),
  });
  const { dModel, nHeads, dK } = read;
  const dV = isAttention ? read.dV : dK;
  if (dModel % nHeads !== 0 && (dK === undefined || dV === undefined)) {
    const message = `dModel: found ${dModel}, expected a multiple of nHeads ${nHeads}, or dK and dV`;
    throw new Refusal({ field: "dModel", code: "not_divisible", found: String(dModel), message, count: nHeads });
  }
  return { ...read, dV, dFf: read.dFf ?? 4 * dModel };
}

/** @throws Refusal for a line that cannot be shown */
export function checkLine(field: "sentence" | "keySentence", line: readonly string[]): void {
  const found = String(line.length);
  if (line.length === 0) throw new Refusal({ field, code: "no_tokens", found, message: `${field} has no tokens` });
  if (line.length > LIMITS.tokens) {
    const message = `${field}: found ${found} tokens, expected at most ${LIMITS.tokens}`;
    throw new Refusal({ field, code: "too_many_tokens", found, message });
  }
}

/** Everything that was typed and cannot be used, before any of it is. */
export function problemsIn(typed: Typed): readonly Problem[] {
  const { tokens, otherTokens, numbers } = typed;
  return refusedBy(() =>
    readEach({
      sentence: () => checkLine("sentence", tokens),
      keySentence: () => otherTokens && checkLine("keySentence", otherTokens),
      numbers: () => (numbers.source === "readable" ? buildOf(numbers, otherTokens !== null) : typedNumbers(typed)),
    }),
  );
}

/** What can be computed in place of what cannot: the lines and the numbers that a new page has where those that were typed are refused. */
export function mended<Asked extends Typed>(typed: Asked): Asked {
  const refused = new Set<Field>(problemsIn(typed).map(({ field }) => field));
  const { tokens, otherTokens, numbers } = typed;
  // The numbers depend on each other.
  const fields = NUMBER_FIELDS.some((field) => refused.has(field)) ? NUMBER_FIELDS : [];
  return {
    ...typed,
    tokens: refused.has("sentence") ? tokenize(START.sentence) : tokens,
    otherTokens: refused.has("keySentence") ? tokenize(START.sentence) : otherTokens,
    numbers: { ...numbers, ...Object.fromEntries(fields.map((field) => [field, START.numbers[field]])) },
  };
}
