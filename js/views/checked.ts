// What no view can draw is refused when it is given, not in a later frame.
import { AttnError, invalidOption } from "../errors.ts";
import { given } from "../options.ts";
import { isList } from "../tensor.ts";

/** What some options must be, in words and as a test, and their names. */
export type Rule = readonly [expected: string, holds: (value: never) => unknown, names: string];

const isText = (value: unknown) => typeof value === "string";
export const isCall = (value: unknown) => typeof value === "function";
export const isPair = (value: unknown) => isList(value) && value.length === 2;
export const HIDDEN: Rule = ["a Uint8Array or null", (cells: unknown) => !cells || ArrayBuffer.isView(cells), "hidden"];
const oneOf = (words: string, names: string): Rule => [
  words,
  (value: string) => words.split(" or ").includes(value),
  names,
];

/** Options mean the same in every view, but for those that have rules of their own. */
const RULES: readonly Rule[] = [
  ["a string", isText, "label rowAxis columnAxis"],
  ["a function", isCall, "describe write onSelect onHover onShown onHeads onPaint"],
  [
    "a list of strings",
    (labels: unknown[]) => Array.isArray(labels) && labels.every(isText),
    "rowLabels columnLabels keyLabels",
  ],
  ["two numbers", isPair, "domain"],
  oneOf("sequential or diverging", "palette"),
  oneOf("linear or log or row", "scale kind"),
  ["a Selection", (selection: { place?: unknown } | null) => selection?.place, "selection"],
  ["a list of { name, note }", (titles: { name?: unknown }[]) => isText(titles?.[0]?.name), "titles"],
  [
    "a tensor",
    (values: { data?: unknown; shape?: unknown; open?: unknown } | null) =>
      isList(values?.shape) && (values.open || ArrayBuffer.isView(values.data)),
    "values",
  ],
];

/**
 * The options, without those that are undefined. `needed` must be there; `own` come before what holds for every view.
 *
 * @throws AttnError `invalid_option`
 */
export function checked<Options extends object>(
  options: Options,
  needed: readonly (keyof Options)[],
  ...own: readonly Rule[]
): Options {
  const chosen = given(options);
  const seen = new Set<string>();
  for (const [expected, holds, names] of [...own, ...RULES]) {
    for (const name of names.split(" ")) {
      const value = chosen[name as keyof Options];
      const isAsked = value !== undefined || needed.includes(name as keyof Options);
      if (isAsked && !seen.has(name) && !holds(value as never)) throw invalidOption(name, value, expected);
      seen.add(name);
    }
  }
  return chosen;
}

interface Sized {
  readonly hidden?: ArrayLike<number> | null;
  readonly rowLabels?: readonly string[];
  readonly columnLabels?: readonly string[];
  readonly titles?: readonly object[];
}

interface Numbers {
  readonly data?: ArrayLike<unknown>;
  readonly shape: readonly number[];
}

/**
 * The options, whose numbers have as many axes as one of `axes` names, and hidden cells, labels and titles to go with them.
 *
 * @throws AttnError `shape_mismatch`
 */
export function sized<Options extends Sized>(
  options: Options,
  argument: string,
  { data, shape }: Numbers,
  ...axes: readonly string[]
): Options {
  const refuse = (argument: string, found: readonly number[], all: readonly unknown[]) => {
    const expected = all.join(" or ");
    const message = `${argument}: found [${found.join(", ")}], expected ${expected}`;
    throw new AttnError("shape_mismatch", message, { argument, found, expected });
  };
  if (!axes.some((one) => one.split(",").length === shape.length)) refuse(argument, shape, axes);
  const [heads, rows, columns] = [1, ...shape].slice(-3) as [number, number, number];
  const size = rows * columns;
  const { hidden, rowLabels, columnLabels, titles } = options;
  for (const [name, list, ...sizes] of [
    [argument, data, heads * size],
    ["hidden", hidden, size, heads * size],
    ["rowLabels", rowLabels, rows],
    ["columnLabels", columnLabels, columns],
    ["titles", titles, heads],
  ] as const) {
    if (list && !sizes.includes(list.length)) refuse(name, [list.length], sizes);
  }
  return options;
}
