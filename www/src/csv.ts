import type { Tensor } from "attnscope";
import { visible } from "attnscope/views";
import { writeNumber } from "./number-grid.ts";

export interface Table {
  /** `[rows, columns]`, or `[heads, rows, columns]`. */
  readonly values: Tensor;
  readonly rows: readonly string[];
  readonly columns: readonly string[];
  /** What heads and rows are called in the first line. */
  readonly head: string;
  readonly row: string;
}

/** UTF-8 has no half characters: they are named. */
function field(name: string): string {
  const text = name.replace(/\p{Cs}/gu, visible);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A stage as a spreadsheet opens it: a line for each row of each head, with its names in front. */
export function toCsv({ values: { data, shape }, rows, columns, head, row }: Table): string {
  const isSplit = shape.length === 3;
  const count = columns.length;
  const line = (at: number) => {
    const numbers = Array.from(data.subarray(at * count, (at + 1) * count), writeNumber);
    const name = field(rows[at % rows.length] ?? "");
    return [...(isSplit ? [Math.floor(at / rows.length) + 1] : []), name, ...numbers].join(",");
  };
  const first = [...(isSplit ? [head] : []), row, ...columns].map(field).join(",");
  return `${[first, ...Array.from({ length: data.length / count }, (_, at) => line(at))].join("\r\n")}\r\n`;
}
