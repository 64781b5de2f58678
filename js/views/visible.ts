const MARKS: Record<string, string> = { " ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥", "\u00a0": "⍽", "\u3000": "□" };

function codePoint(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

/**
 * A token as it can be shown: spaces and line ends as marks, control characters and lone surrogates by their code
 * point. A token that is nothing but format characters (a lone joiner, say) is named too; inside a word they stay.
 *
 * ```ts
 * console.log(visible(" the\n"), visible("")); // ␣the↵ ∅
 * ```
 */
export function visible(token: string): string {
  if (token === "") return "∅";
  if (/^\p{Cf}+$/u.test(token)) return [...token].map(codePoint).join(" ");
  return token.replace(/[\s\p{Cc}\p{Cs}]/gu, (character) => MARKS[character] ?? codePoint(character));
}
