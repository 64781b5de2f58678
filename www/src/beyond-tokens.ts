import { fieldsOf, problemsInMask, READ, type Size } from "./mask-algebra.ts";
import type { Problem } from "./refusal.ts";
import type { MaskState } from "./state.ts";

/** What was typed for a mask's rules and reaches beyond the tokens that there are; it is taken all the same. */
export function beyondTokens(state: MaskState, { nQ, nK }: Omit<Size, "nHeads">): readonly Problem[] {
  const wrong = new Set(problemsInMask(state).map(({ field }) => field));
  return fieldsOf(state).flatMap((field) => {
    if (wrong.has(field)) return [];
    const read = READ[field](state.numbers[field]);
    const isCount = field === "padded" || field === "prefix";
    if (!isCount && typeof read === "number") return [];
    const count = isCount ? nK : Math.max(nQ, nK);
    const found = [read].flat().find((number) => (isCount ? number > count : number >= count));
    if (found === undefined) return [];
    const message = `${field}: found ${found}, and there are ${count} tokens`;
    return { field, code: isCount ? "more_than_tokens" : "no_such_token", found: String(found), message, count };
  });
}
