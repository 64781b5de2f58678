const words = new Intl.Segmenter(undefined, { granularity: "word" });
const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

// Scripts that are written without spaces: a character is a token, as in most models.
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;

/**
 * A sentence as tokens: words, punctuation marks, and single characters where a script has no spaces. The one space
 * between two words is no token; any other white space is.
 */
export function tokenize(sentence: string): string[] {
  return [...words.segment(sentence)]
    .map(({ segment }) => segment)
    .flatMap((segment) =>
      UNSPACED.test(segment) ? [...graphemes.segment(segment)].map((part) => part.segment) : segment,
    )
    .filter((segment) => segment !== " ");
}
