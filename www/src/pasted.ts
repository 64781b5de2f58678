/** A number with a comma for a point. */
const COMMA = /^\s*[+−-]?(\d+,\d*|,\d+)(e[+-]?\d+)?\s*$/i;
/** A list of lists such as `[[0.5, 0.25], [1, 0]]`, by itself, within a call such as `torch.tensor(…)`, or behind a name as in `x = …`. */
const LISTS =
  /^\s*(?:[\p{L}_](?:[^\n\t,;"()[\]]|\[\d+\]){0,80}[:=\s]\s*)?(?:[a-z][\w.]*\(\s*)?(\[[\s\S]*\])\s*(?:,[^[\]]*)?\)?\s*$/iu;

/**
 * A block of cells as spreadsheets copy it: a line for each row; between cells tabs or semicolons, which leave a comma to be the
 * decimal point, else commas or spaces. Or as programs print it, a list for each row.
 */
export function pastedCells(pasted: string): string[][] {
  const lists = LISTS.exec(pasted)?.[1];
  const lines = lists ? rowsIn(lists) : pasted.replace(/\r\n?/g, "\n").replace(/\n$/, "").split("\n");
  const separator = ["\t", ";", ","].find((mark) => lines.some((line) => line.includes(mark))) ?? / +/;
  const cells = lines.map((line) => (separator === "\t" ? line : line.trim()).split(separator));
  if (separator !== "\t" && separator !== ";") return cells;
  return cells.map((row) => row.map((cell) => (COMMA.test(cell) ? cell.replace(",", ".") : cell)));
}

function rowsIn(lists: string): string[] {
  return lists
    .split("]")
    .filter((part) => part.includes("["))
    .map((part) =>
      part
        .slice(part.lastIndexOf("[") + 1)
        .replace(/\s+/g, " ")
        .trim()
        .replace(/,$/, ""),
    );
}
