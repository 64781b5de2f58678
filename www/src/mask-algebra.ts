import { type Mask, mask } from "attnscope";
import { resized } from "./painted.ts";
import { whole, wholes } from "./refusal.ts";
import { LIMITS, type MaskState, type RuleName } from "./state.ts";

/** What a mask lies on. */
export interface Size {
  readonly nQ: number;
  readonly nK: number;
  readonly nHeads: number;
}

const LAST = LIMITS.tokens - 1;

/** The document that each position belongs to, of the positions at which a new one starts. */
function documentIds(starts: readonly number[], count: number): number[] {
  return Array.from({ length: count }, (_, i) => new Set(starts.filter((start) => start > 0 && start <= i)).size);
}

function ruleMask(rule: RuleName, { numbers, painted }: MaskState, { nQ, nK, nHeads }: Size): Mask {
  switch (rule) {
    case "causal":
      return mask.causal();
    case "padding":
      return mask.padding(Math.max(0, nK - whole("padded", numbers.padded, 0, LAST)));
    case "window":
      return mask.slidingWindow({
        left: whole("before", numbers.before, 0, LAST),
        right: whole("after", numbers.after, 0, LAST),
      });
    case "prefix":
      return mask.prefix(whole("prefix", numbers.prefix, 0, LAST));
    case "documents":
      return mask.documents(documentIds(wholes("starts", numbers.starts, 0, LAST), Math.max(nQ, nK)));
    case "global":
      // A position that a shorter sentence no longer has is passed over.
      return mask.global(wholes("globals", numbers.globals, 0, LAST).filter((at) => at < Math.max(nQ, nK)));
    case "dilated":
      return mask.dilated(whole("width", numbers.width, 1, LAST), whole("stride", numbers.stride, 1, LAST));
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
