import { type Mask, mask } from "attnscope";
import { resized } from "./painted.ts";
import { type Problem, readEach, refusedBy, whole, wholes } from "./refusal.ts";
import { LIMITS, type MaskState, type RuleName, type RuleNumbers } from "./state.ts";

/** What a mask lies on. */
export interface Size {
  readonly nQ: number;
  readonly nK: number;
  readonly nHeads: number;
}

const LAST = LIMITS.tokens - 1;

/** The numbers that each rule is told. */
export const FIELDS: Record<RuleName, readonly (keyof RuleNumbers)[]> = {
  causal: [],
  padding: ["padded"],
  window: ["before", "after"],
  prefix: ["prefix"],
  documents: ["starts"],
  global: ["globals"],
  dilated: ["width", "stride"],
  painted: [],
};

const one =
  (field: keyof RuleNumbers, least = 0) =>
  (typed: string) =>
    whole(field, typed, least, LAST);
const several = (field: keyof RuleNumbers) => (typed: string) => wholes(field, typed, 0, LAST);

/** What is typed for them, as numbers. */
export const READ = {
  padded: one("padded"),
  before: one("before"),
  after: one("after"),
  prefix: one("prefix"),
  starts: several("starts"),
  globals: several("globals"),
  width: one("width", 1),
  stride: one("stride", 1),
};

/** The fields of a mask's rules. */
export const fieldsOf = ({ terms }: MaskState) => terms.flatMap(({ rule }) => FIELDS[rule]);

/** What was typed for a mask's rules and cannot be used. */
export function problemsInMask(state: MaskState): readonly Problem[] {
  const readers = fieldsOf(state).map((field) => [field, () => READ[field](state.numbers[field])]);
  return refusedBy(() => readEach(Object.fromEntries(readers)));
}

/** The document that each position belongs to, of the positions at which a new one starts. */
function documentIds(starts: readonly number[], count: number): number[] {
  return Array.from({ length: count }, (_, i) => new Set(starts.filter((start) => start > 0 && start <= i)).size);
}

function ruleMask(rule: RuleName, { numbers, painted }: MaskState, { nQ, nK, nHeads }: Size): Mask {
  switch (rule) {
    case "causal":
      return mask.causal();
    case "padding":
      return mask.padding(Math.max(0, nK - READ.padded(numbers.padded)));
    case "window":
      return mask.slidingWindow({
        left: READ.before(numbers.before),
        right: READ.after(numbers.after),
      });
    case "prefix":
      return mask.prefix(READ.prefix(numbers.prefix));
    case "documents":
      return mask.documents(documentIds(READ.starts(numbers.starts), Math.max(nQ, nK)));
    case "global":
      // A position that a shorter sentence no longer has is passed over.
      return mask.global(READ.globals(numbers.globals).filter((at) => at < Math.max(nQ, nK)));
    case "dilated":
      return mask.dilated(READ.width(numbers.width), READ.stride(numbers.stride));
    case "painted": {
      const open = { rows: nQ, columns: nK, cells: [new Uint8Array(nQ * nK).fill(1)] };
      const { cells } = resized(painted ?? open, nQ, nK, nHeads);
      const [first = new Uint8Array()] = cells;
      if (cells.length === 1) return mask.fromKeep({ data: new Float32Array(first), shape: [nQ, nK] });
      const data = new Float32Array(nHeads * nQ * nK);
      cells.forEach((head, i) => {
        data.set(head, i * nQ * nK);
      });
      return mask.fromKeep({ data, shape: [nHeads, nQ, nK] });
    }
  }
}

// Beyond it a painted mask's code is no longer something to read, nor to paste.
const MOST_CELLS_WRITTEN = 2 ** 18;

/** Whether the code of the mask would be all cells. */
export function isTooLongToWrite({ terms, painted }: MaskState): boolean {
  if (painted === null || terms.every(({ rule }) => rule !== "painted")) return false;
  return painted.rows * painted.columns * painted.cells.length > MOST_CELLS_WRITTEN;
}

/** The mask that the terms make, from left to right; null for none. */
export function toMask(state: MaskState, size: Size): Mask | null {
  let joined: Mask | null = null;
  for (const { rule, join, isNegated } of state.terms) {
    const made = ruleMask(rule, state, size);
    const term = isNegated ? made.not() : made;
    joined = joined === null ? term : joined[join](term);
  }
  if (!state.hasAlibi) return joined;
  const alibi = mask.alibi(size.nHeads);
  return joined === null ? alibi : joined.and(alibi);
}
