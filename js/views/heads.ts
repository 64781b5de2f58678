import { format } from "d3-format";
import type { Place, Selection } from "../selection.ts";
import { checked, sized } from "./checked.ts";
import type { Cell } from "./matrix.ts";
import { number } from "./number.ts";

/** Every head's weights of queries for keys, as the views that draw no matrix take them. */
export interface HeadsOptions {
  /** `[heads, queries, keys]`, row-major; give a new array for new numbers. */
  readonly values: { readonly data: Float32Array; readonly shape: readonly number[] };
  /** Hidden cells of all heads, `[heads, queries, keys]`, or of one matrix that holds for every head. */
  readonly hidden?: Uint8Array | null;
  /** The queries' tokens. */
  readonly rowLabels: readonly string[];
  /** The keys' tokens. */
  readonly columnLabels: readonly string[];
  /** The word for queries; "query" by default. */
  readonly rowAxis?: string;
  /** The word for keys; "key" by default. */
  readonly columnAxis?: string;
  /** A name for each head, and what is known of it. */
  readonly titles: readonly { readonly name: string; readonly note: string }[];
  /** What is looked at; views that are given the same one move together. */
  readonly selection: Selection;
  /** The value that is drawn largest; 1 by default, as for weights. */
  readonly reach?: number;
  /** How a number is written; two decimals by default. */
  readonly write?: (value: number) => string;
  /** The accessible name of the picture. */
  readonly label: string;
  /** The accessible name of a cell. */
  readonly describe: (head: number, cell: Cell, value: number) => string;
}

const NEEDED = ["values", "rowLabels", "columnLabels", "titles", "selection", "label", "describe"] as const;

/** @throws AttnError `invalid_option`, `shape_mismatch` */
export function read<Options extends HeadsOptions>(given: Options): Options {
  const options = checked(given, NEEDED);
  return sized(options, "values", options.values, "[heads, rows, columns]");
}

export function sizesOf({ values }: HeadsOptions) {
  const [heads = 1, queries = 1, keys = 1] = values.shape;
  return { heads, queries, keys };
}

export function weightAt(options: HeadsOptions, head: number, query: number, key: number): number {
  const { queries, keys } = sizesOf(options);
  return options.values.data[(head * queries + query) * keys + key] ?? Number.NaN;
}

export function isHidden(options: HeadsOptions, head: number, query: number, key: number): boolean {
  const { hidden } = options;
  if (!hidden) return false;
  const { queries, keys } = sizesOf(options);
  const first = hidden.length > queries * keys ? head * queries * keys : 0;
  return (hidden[first + query * keys + key] ?? 0) !== 0;
}

/** The selection's place, inside the heads there are. */
export function placeIn(options: HeadsOptions): Pick<Place, "head" | "query" | "key"> {
  const { heads, queries, keys } = sizesOf(options);
  const { head, query, key } = options.selection.place;
  return { head: Math.min(head, heads - 1), query: Math.min(query, queries - 1), key: Math.min(key, keys - 1) };
}

/** The query and the key under the pointer, in whichever view. */
export function pointedIn(options: HeadsOptions): Cell | null {
  const { queries, keys } = sizesOf(options);
  const { query = -1, key = -1 } = options.selection.pointed ?? {};
  return query >= 0 && query < queries && key >= 0 && key < keys ? { row: query, column: key } : null;
}

const EVENTS = ["change", "point"] as const;

export function listen(selection: Selection, follow: () => void): void {
  for (const name of EVENTS) selection.addEventListener(name, follow);
}

export function unlisten(selection: Selection, follow: () => void): void {
  for (const name of EVENTS) selection.removeEventListener(name, follow);
}

const short = format(".2f");

export function writeWeight({ write = short }: HeadsOptions, value: number): string {
  return Number.isFinite(value) ? write(value) : number(value);
}

/** Whether any head's row of a query goes below 0. */
export function hasNegative(options: HeadsOptions, query: number): boolean {
  const { heads, queries, keys } = sizesOf(options);
  const { data } = options.values;
  for (let head = 0; head < heads; head++) {
    const from = (head * queries + query) * keys;
    if (data.subarray(from, from + keys).some((value) => value < 0)) return true;
  }
  return false;
}
