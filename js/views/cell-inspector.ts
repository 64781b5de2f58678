import type { Explanation, Stage, Term } from "../generated.ts";
import { checked, type Rule } from "./checked.ts";
import { cancel, type Drawing, request } from "./frames.ts";
import { DECIMALS, number, written } from "./number.ts";
import { adoptStyles } from "./styles.ts";
import type { View } from "./view.ts";
import { visible } from "./visible.ts";

/** The words of the inspector. */
export interface InspectorText {
  /** The name of a stage. */
  readonly stage: (stage: Stage) => string;
  /** The two factors of a dot product and what is summed over, by the stage they give. */
  readonly factors: (stage: Stage) => { readonly over: string; readonly left: string; readonly right: string };
  /** The heading of products. */
  readonly product: string;
  /** The word for a bias. */
  readonly bias: string;
  /** The word for a sum. */
  readonly sum: string;
  /** The heading of keys. */
  readonly key: string;
  /** The word for a cell that the mask leaves. */
  readonly allowed: string;
  /** The words for a cell that it hides, and by what number. */
  readonly hidden: (fill: string) => string;
  /** What is said of a row of weights that is all 0, since the mask leaves it no key. */
  readonly emptyRow: string;
  /** The word for a head that is switched off. */
  readonly off: string;
  /** The word for a number that was given, not computed. */
  readonly given: string;
  /** Terms that are not listed, where there are very many. */
  readonly more: (count: number) => string;
}

/** A number that a page made of numbers of one stage or two: the mean of heads, or one pass minus another. */
export interface Combination {
  /** The stage of the numbers. */
  readonly stage: Stage;
  /** How the parts give the value; a difference is the first minus the second. */
  readonly operation: "mean" | "difference";
  /** The numbers, each with what it is of. */
  readonly parts: readonly { readonly name: string; readonly value: number }[];
  /** What they give. */
  readonly value: number;
}

/** A step to a cell, as the engine explains it or as a page combined it; `title` says of which pass, where there are two. */
export type InspectorStep = (Explanation | Combination) & { readonly title?: string | undefined };

/** Options of {@link cellInspector}. */
export interface CellInspectorOptions {
  /** The steps to the cell, in order. */
  readonly steps: readonly InspectorStep[];
  /** The keys' tokens. */
  readonly keyLabels: readonly string[];
  /** Its words, in the language of the page. */
  readonly text: InspectorText;
}

type Child = Node | string;

function make<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, ...children: Child[]): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  element.append(...children);
  return element;
}

/** The d_k by whose root scores are divided, as far as the steps tell; null where they are multiplied by another scale. */
function rootOf(steps: readonly InspectorStep[]): number | null {
  const find = (stage: Stage) =>
    steps.flatMap((step) => ("terms" in step && plain(step.stage) === stage ? [step.terms] : []))[0];
  const dK = find("scores")?.length;
  const scale = find("scaled")?.[0]?.right;
  return dK !== undefined && scale !== undefined && Math.abs(scale * Math.sqrt(dK) - 1) < 1e-6 ? dK : null;
}

/** The stage, or the one of a decoder's first attention that it is the like of. */
const plain = (stage: Stage) => stage.replace(/^cross_/, "") as Stage;

// How each stage follows from the one before, as a formula beside its name.
function formula(step: InspectorStep, dK: number | null): Child[] {
  const sup = (text: string) => make("sup", text);
  const sub = (text: string) => make("sub", text);
  if (!("terms" in step)) return step.operation === "mean" ? [`Σ / ${step.parts.length}`] : [];
  if (isEmptyRow(step)) return [];
  switch (plain(step.stage)) {
    case "query":
      return ["x · W", sub("Q")];
    case "key":
      return ["x · W", sub("K")];
    case "value":
      return ["x · W", sub("V")];
    case "scores":
      return ["q · k"];
    case "scaled":
      return dK !== null ? ["s / √d", sub("k")] : ["s · scale"];
    case "weights":
      return ["e", sup("m − max"), " / Σ"];
    case "context":
      return ["Σ w · v"];
    case "output":
      return ["concat · W", sub("O")];
    case "hidden":
      return ["x · W", sub("1")];
    case "feed_forward":
      return ["a · W", sub("2")];
    default:
      return [];
  }
}

/** Whether a softmax had nothing to share out and gives 0. */
const isEmptyRow = ({ operation, constants }: Explanation) => operation === "softmax" && constants.sum === 0;

const parsed = (text: string) => Number(text.replaceAll("−", "-").replace("∞", "Infinity"));

const MOST_DECIMALS = 9;

/** Numbers with as many decimals as it takes for what is printed of them to give what is printed of the result. */
function computing(
  numbers: readonly number[],
  result: number,
  compute: (...numbers: number[]) => number,
): readonly string[] {
  for (let decimals = DECIMALS; ; decimals++) {
    const texts = numbers.map((each) => written(each, decimals, decimals > DECIMALS ? "~" : ""));
    if (decimals === MOST_DECIMALS || number(compute(...texts.map(parsed))) === number(result)) return texts;
  }
}

/** The decimals that factors need for their products to be right to a unit of the last digit. */
function decimalsOf(terms: readonly Term[]): number {
  const rounded = (value: number, decimals: number) => Math.round(value * 10 ** decimals) / 10 ** decimals;
  let decimals = DECIMALS;
  const isOff = ({ left, right, product }: Term) =>
    Math.abs(rounded(left, decimals) * rounded(right, decimals) - product) > 1e-3;
  while (decimals < DECIMALS + 2 && terms.some(isOff)) decimals++;
  return decimals;
}

/** A number behind an operator. */
const operand = (text: string) => (text.startsWith("−") ? `(${text})` : text);

const sum = (...numbers: number[]) => numbers.reduce((total, each) => total + each, 0);

function cells(tag: "th" | "td", texts: readonly Child[]): HTMLTableCellElement[] {
  return texts.map((text) => make(tag, text));
}

function table(label: string, head: readonly Child[], body: readonly HTMLTableRowElement[], foot: readonly string[]) {
  const headRow = make("tr", ...cells("th", head));
  for (const cell of headRow.cells) cell.scope = "col";
  const [footName = "", ...footRest] = foot;
  const footHead = make("th", footName);
  footHead.scope = "row";
  const frame = make(
    "div",
    make(
      "table",
      make("thead", headRow),
      make("tbody", ...body),
      make("tfoot", make("tr", footHead, ...cells("td", footRest))),
    ),
  );
  frame.className = "attn-terms";
  frame.tabIndex = 0;
  frame.setAttribute("role", "group");
  frame.setAttribute("aria-label", label);
  return frame;
}

function termRow(name: string, term: Term, values: readonly string[], current: boolean): HTMLTableRowElement {
  const head = make("th", visible(name));
  head.scope = "row";
  const row = make("tr", head, ...cells("td", values));
  if (term.product === 0) row.dataset.zero = "";
  if (current) row.setAttribute("aria-current", "true");
  return row;
}

// So many terms are listed; a longer sum shows its first ones and the selected one.
const MOST_TERMS = 120;

/** The terms to list, each with whether it stands at the selected place. */
function listed(terms: readonly Term[], selected: number | undefined): readonly { term: Term; isSelected: boolean }[] {
  return terms
    .map((term, i) => ({ term, i, isSelected: Number(term.label) === selected }))
    .filter(({ i, isSelected }) => i < MOST_TERMS || isSelected);
}

const OWN: readonly Rule[] = [
  ["a list of explanations", Array.isArray, "steps"],
  ["its words", (text: Partial<InspectorText> | null) => text?.stage, "text"],
];

const read = (options: CellInspectorOptions) => checked(options, ["steps", "keyLabels", "text"], ...OWN);

/**
 * The arithmetic that made one cell, step by step, with the numbers of the pass. It computes nothing itself.
 *
 * @throws AttnError `invalid_option`
 */
export function cellInspector(element: HTMLElement, start: CellInspectorOptions): View<CellInspectorOptions> {
  let options = read(start);
  adoptStyles(element);
  const list = document.createElement("ol");
  list.className = "attn-steps";
  element.append(list);

  function rest({ terms }: Explanation, shown: number, columns: number): HTMLTableRowElement[] {
    if (terms.length === shown) return [];
    const cell = make("td", options.text.more(terms.length - shown));
    cell.colSpan = columns;
    return [make("tr", cell)];
  }

  function dot(step: Explanation): Child[] {
    const { text, keyLabels } = options;
    const { over, left, right } = text.factors(step.stage);
    const decimals = decimalsOf(step.terms);
    const rows = listed(step.terms, undefined).map(({ term }) => {
      const name = plain(step.stage) === "context" ? (keyLabels[Number(term.label)] ?? term.label) : term.label;
      return termRow(
        name,
        term,
        [written(term.left, decimals), written(term.right, decimals), number(term.product)],
        false,
      );
    });
    rows.push(...rest(step, rows.length, 4));
    const { bias = 0, head_mask = 1 } = step.constants;
    const more = (name: string, what: string) =>
      rows.push(make("tr", make("th", name), ...cells("td", ["", "", what])));
    if (bias !== 0) more(text.bias, number(bias));
    if (head_mask !== 1) more(text.off, `× ${number(head_mask)}`);
    return [
      table(text.stage(step.stage), [over, left, right, text.product], rows, [text.sum, "", "", number(step.value)]),
    ];
  }

  function softmax(step: Explanation): Child[] {
    const { text, keyLabels } = options;
    if (isEmptyRow(step)) return [make("p", text.emptyRow)];
    const { max = 0, exp = 0, sum = 0 } = step.constants;
    const rows = listed(step.terms, step.index.at(-1)).map(({ term, isSelected }) =>
      termRow(keyLabels[Number(term.label)] ?? term.label, term, [number(term.left), number(term.product)], isSelected),
    );
    rows.push(...rest(step, rows.length, 3));
    const head = [text.key, "m", make("span", "e", make("sup", `m − ${operand(number(max))}`))];
    const [part, whole] = computing([exp, sum], step.value, (part, whole) => part / whole);
    return [
      table(text.stage(step.stage), head, rows, [text.sum, "", number(sum)]),
      make("p", `${part} / ${whole} = ${number(step.value)}`),
    ];
  }

  /** Numbers one under the other, each behind the sign and with what it is of. */
  function column(texts: readonly string[], sign: string, names: readonly string[]): HTMLElement[] {
    return texts.map((text, i) =>
      make("p", `${i > 0 ? `${sign} ${operand(text)}` : text} `, make("small", names[i] ?? "")),
    );
  }

  function combined({ operation, parts, value }: Combination): Child[] {
    const [names, numbers] = [parts.map(({ name }) => name), parts.map((part) => part.value)];
    if (operation === "difference") {
      return column(
        computing(numbers, value, (one, other) => one - other),
        "−",
        names,
      );
    }
    const [total] = computing([sum(...numbers)], value, (total) => total / parts.length);
    const texts = computing(numbers, parsed(total ?? ""), sum);
    return [...column(texts, "+", names), make("p", `${total} / ${parts.length} = ${number(value)}`)];
  }

  function body(step: InspectorStep, dK: number | null): Child[] {
    const { text } = options;
    if (!("terms" in step)) return combined(step);
    const { constants, terms, value } = step;
    const result = number(value);
    switch (step.operation) {
      case "dot":
        return dot(step);
      case "softmax":
        return softmax(step);
      case "scale":
        return terms.map(({ left, right, product }) => {
          if (plain(step.stage) === "scaled" && dK !== null) {
            return make("p", `${computing([left], product, (s) => s / Math.sqrt(dK))} / √${dK} = ${number(product)}`);
          }
          const [one, other = ""] = computing([left, right], product, (one, other) => one * other);
          return make("p", `${one} × ${operand(other)} = ${number(product)}`);
        });
      case "softcap": {
        const { x = 0, cap = 0 } = constants;
        const [by, of = ""] = computing([cap, x], value, (by, of) => by * Math.tanh(of / by));
        return [make("p", `${by} · tanh(${of} / ${by}) = ${result}`)];
      }
      case "mask": {
        const { allowed = 1, scaled = 0, bias = 0, fill = 0 } = constants;
        if (allowed === 0) return [make("p", text.hidden(number(fill)))];
        const [one, other = ""] = computing([scaled, bias], value, sum);
        return [make("p", bias === 0 ? text.allowed : `${one} + ${operand(other)} = ${result}`)];
      }
      case "sum": {
        const products = terms.map(({ product }) => product);
        const names = terms.map(({ label }) => text.stage(label as Stage));
        return column(computing(products, value, sum), "+", names);
      }
      case "layer_norm": {
        const { x = 0, mean = 0, variance = 0, eps = 0, weight = 1, bias = 0 } = constants;
        const [of, less, spread, more, times, plus] = computing(
          [x, mean, variance, eps, weight, bias],
          value,
          (of, less, spread, more, times, plus) => ((of - less) / Math.sqrt(spread + more)) * times + plus,
        ).map((each, i) => (i > 0 ? operand(each) : each));
        return [make("p", `(${of} − ${less}) / √(${spread} + ${more}) × ${times} + ${plus} = ${result}`)];
      }
      case "rms_norm": {
        const { x = 0, mean_square = 0, eps = 0, weight = 1 } = constants;
        const [of, square, more, times = ""] = computing(
          [x, mean_square, eps, weight],
          value,
          (of, square, more, times) => (of / Math.sqrt(square + more)) * times,
        );
        return [make("p", `${of} / √(${square} + ${more}) × ${operand(times)} = ${result}`)];
      }
      case "given":
        return [make("p", text.given)];
      default:
        return [make("p", `${step.operation}(${number(constants.x ?? 0)}) = ${result}`)];
    }
  }

  function show(): void {
    const dK = rootOf(options.steps);
    list.replaceChildren(
      ...options.steps.map((step) => {
        const symbols = formula(step, dK);
        const name = [options.text.stage(step.stage), step.title].filter(Boolean).join(", ");
        const title = make("span", name, ...(symbols.length > 0 ? [" = ", ...symbols] : []));
        const value = make("span", number(step.value));
        const item = make("li", make("h3", title, value), ...body(step, dK));
        item.dataset.stage = step.stage;
        value.dataset.value = String(step.value);
        return item;
      }),
    );
  }

  const drawing: Drawing = {
    measure() {},
    draw() {
      show();
      return true;
    },
  };

  show();
  return {
    update(change) {
      options = read({ ...options, ...change });
      request(drawing);
    },
    destroy() {
      cancel(drawing);
      list.remove();
    },
  };
}
