/** A stretch of a text as it is written and as it is shown. */
interface Stretch {
  readonly whole: string;
  readonly shown: string;
}

/** What is shorter is read as it is. */
const LONG = 2000;
const LONG_LIST = 16;

const LISTS = /\[(?:[-+\d.,\se[\]]|float\("[-a-z]+"\))+\]/g;
const FIRST_NUMBERS = /^\[+[^,\]]+(?:, [^,\]]+){0,2}/;

/** A program whose long lists of numbers are folded where it is long; `name` is what stands for so many numbers. */
export function folded(code: string, name: (numbers: number) => string): readonly Stretch[] {
  if (code.length <= LONG) return [{ whole: code, shown: code }];
  const stretches: Stretch[] = [];
  let end = 0;
  const upTo = (at: number, shown = code.slice(end, at)) => {
    stretches.push({ whole: code.slice(end, at), shown });
    end = at;
  };
  for (const { 0: list, index } of code.matchAll(LISTS)) {
    const numbers = list.split(",").length;
    if (numbers <= LONG_LIST) continue;
    const [first = ""] = FIRST_NUMBERS.exec(list) ?? [];
    const [closing = ""] = /\]+$/.exec(list) ?? [];
    upTo(index + first.length);
    upTo(index + list.length - closing.length, `, ${name(numbers)}`);
  }
  upTo(code.length);
  return stretches;
}

/** What a selection in the text that is shown is of: of a fold all that is folded. */
export function unfolded(stretches: readonly Stretch[], from: number, to: number): string {
  let start = 0;
  return stretches
    .map(({ whole, shown }) => {
      const [first, last] = [Math.max(0, from - start), Math.min(shown.length, to - start)];
      start += shown.length;
      if (last <= first) return "";
      return shown === whole ? whole.slice(first, last) : whole;
    })
    .join("");
}
