const words = new Intl.Segmenter(undefined, { granularity: "word" });
const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

// Scripts that are written without spaces: a character is a token, as in most models.
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;

// What models put between words of their own.
const SPECIAL = /(\[(?:CLS|SEP|PAD|MASK|UNK|BOS|EOS)\]|<\/?s>|<(?:pad|mask|unk|bos|eos)>|<\|\w+\|>)/;

/** The tokens to add to a line with one click; the first ones belong to its start. */
export const SPECIAL_TOKENS = ["[CLS]", "<s>", "[SEP]", "</s>", "[PAD]", "[MASK]"] as const;

/**
 * A sentence as tokens: words, punctuation marks, special tokens such as `[CLS]`, and single characters where a script
 * has no spaces. The one space between two tokens is no token; any other white space is.
 */
export function tokenize(sentence: string): string[] {
  return sentence
    .split(SPECIAL)
    .flatMap((part) => (SPECIAL.test(part) ? [part] : [...words.segment(part)].map(({ segment }) => segment)))
    .flatMap((segment) =>
      UNSPACED.test(segment) ? [...graphemes.segment(segment)].map((part) => part.segment) : segment,
    )
    .filter((segment) => segment !== " ");
}

/** The first of a line's characters: whole tokens, as many as fit; where not even one does, the part of it that fits. */
export function shortened(sentence: string, most: number): string {
  if (sentence.length <= most) return sentence;
  const piece = sentence.slice(0, 2 * most);
  let end = 0;
  for (const token of tokenize(piece)) {
    const next = piece.indexOf(token, end) + token.length;
    if (next > most) break;
    end = next;
  }
  // Not in the middle of a character either.
  return end > 0 ? piece.slice(0, end) : piece.slice(0, most).replace(/[\ud800-\udbff]$/, "");
}

/** A token of a changed line: one of before, by its number, or a new one. */
export type Placed = number | string;

/** Why a line's tokens cannot be arranged so: none is left, two side by side would be others, or the line holds no more. */
export type Unarranged = "empty" | "joined" | "too_long";

/** A line of whole numbers. */
export const inOrder = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** The numbers with one of them at another place. */
export function moved(count: number, from: number, to: number): number[] {
  const order = inOrder(count).filter((i) => i !== from);
  order.splice(to, 0, from);
  return order;
}

/**
 * The sentence with its tokens in another order; with or without a space between two, as they stood before where that
 * still tells them apart. Null where they cannot be told apart in that order, as with two that are only spaces.
 */
export function rearranged(sentence: string, order: readonly Placed[]): string | null {
  const tokens = tokenize(sentence);
  const wanted = order.map((placed) => (typeof placed === "string" ? placed : (tokens[placed] ?? "")));
  const isApart = (left: string, joint: string, right: string) => {
    const parts = tokenize(left + joint + right);
    return parts.length === 2 && parts[0] === left && parts[1] === right;
  };
  let joined = wanted[0] ?? "";
  for (let i = 1; i < wanted.length; i++) {
    const [left, right] = [wanted[i - 1] ?? "", wanted[i] ?? ""];
    const wasTogether = order[i] === Number(order[i - 1]) + 1 && sentence.includes(left + right);
    const joints = wasTogether || UNSPACED.test(left + right) ? ["", " "] : [" ", ""];
    joined += (joints.find((joint) => isApart(left, joint, right)) ?? " ") + right;
  }
  const found = tokenize(joined);
  return found.length === wanted.length && found.every((token, i) => token === wanted[i]) ? joined : null;
}
