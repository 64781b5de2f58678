import type { Explanation, Stage, Term } from "../generated.ts";
import { checked, type Rule } from "./checked.ts";
import { cancel, type Drawing, request } from "./frames.ts";
import { number } from "./number.ts";
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
  /** The word for a number that was given, not computed. */
  readonly given: string;
  /** Terms that are not listed, where there are very many. */
  readonly more: (count: number) => string;
}

/** Options of {@link cellInspector}. */
export interface CellInspectorOptions {
  /** The steps to the cell, in order; each as the engine explains it. */
  readonly steps: readonly Explanation[];
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

/** Whether scores are divided by √d_k, as far as the steps tell. */
function isRootScale(steps: readonly Explanation[]): boolean {
  const dK = steps.find(({ stage }) => plain(stage) === "scores")?.terms.length;
  const scale = steps.find(({ stage }) => plain(stage) === "scaled")?.terms[0]?.right;
  return dK === undefined || scale === undefined || Math.abs(scale * Math.sqrt(dK) - 1) < 1e-6;
}

/** The stage, or the one of a decoder's first attention that it is the like of. */
const plain = (stage: Stage) => stage.replace(/^cross_/, "") as Stage;

// How each stage follows from the one before, as a formula beside its name.
function formula(stage: Stage, isRoot: boolean): Child[] {
  const sup = (text: string) => make("sup", text);
  const sub = (text: string) => make("sub", text);
  switch (plain(stage)) {
    case "query":
      return ["x · W", sub("Q")];
    case "key":
      return ["x · W", sub("K")];
    case "value":
      return ["x · W", sub("V")];
    case "scores":
      return ["q · k"];
    case "scaled":
      return isRoot ? ["s / √d", sub("k")] : ["s · scale"];
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

function termRow(name: string, term: Term, values: readonly number[], current: boolean): HTMLTableRowElement {
  const head = make("th", visible(name));
  head.scope = "row";
  const row = make("tr", head, ...cells("td", values.map(number)));
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
    const rows = listed(step.terms, undefined).map(({ term }) => {
      const name = plain(step.stage) === "context" ? (keyLabels[Number(term.label)] ?? term.label) : term.label;
      return termRow(name, term, [term.left, term.right, term.product], false);
    });
    rows.push(...rest(step, rows.length, 4));
    const { bias = 0 } = step.constants;
    if (bias !== 0) rows.push(make("tr", make("th", text.bias), ...cells("td", ["", "", number(bias)])));
    return [
      table(text.stage(step.stage), [over, left, right, text.product], rows, [text.sum, "", "", number(step.value)]),
    ];
  }

  function softmax(step: Explanation): Child[] {
    const { text, keyLabels } = options;
    const { max = 0, exp = 0, sum = 0 } = step.constants;
    const rows = listed(step.terms, step.index.at(-1)).map(({ term, isSelected }) =>
      termRow(keyLabels[Number(term.label)] ?? term.label, term, [term.left, term.product], isSelected),
    );
    rows.push(...rest(step, rows.length, 3));
    const head = [text.key, "m", make("span", "e", make("sup", `m − ${number(max)}`))];
    return [
      table(text.stage(step.stage), head, rows, [text.sum, "", number(sum)]),
      make("p", `${number(exp)} / ${number(sum)} = ${number(step.value)}`),
    ];
  }

  function body(step: Explanation): Child[] {
    const { text } = options;
    const { constants, terms, value } = step;
    switch (step.operation) {
      case "dot":
        return dot(step);
      case "softmax":
        return softmax(step);
      case "scale":
        return terms.map(({ left, right, product }) =>
          make("p", `${number(left)} × ${number(right)} = ${number(product)}`),
        );
      case "softcap": {
        const { x = 0, cap = 0 } = constants;
        return [make("p", `${number(cap)} · tanh(${number(x)} / ${number(cap)}) = ${number(value)}`)];
      }
      case "mask": {
        const { allowed = 1, scaled = 0, bias = 0, fill = 0 } = constants;
        if (allowed === 0) return [make("p", text.hidden(number(fill)))];
        return [make("p", bias === 0 ? text.allowed : `${number(scaled)} + ${number(bias)} = ${number(value)}`)];
      }
      case "sum":
        return terms.map(({ label, product }, i) =>
          make("p", `${i > 0 ? "+ " : ""}${number(product)} `, make("small", text.stage(label as Stage))),
        );
      case "layer_norm": {
        const { x = 0, mean = 0, variance = 0, eps = 0, weight = 1, bias = 0 } = constants;
        const sum = `(${number(x)} − ${number(mean)}) / √(${number(variance)} + ${number(eps)})`;
        return [make("p", `${sum} × ${number(weight)} + ${number(bias)} = ${number(value)}`)];
      }
      case "rms_norm": {
        const { x = 0, mean_square = 0, eps = 0, weight = 1 } = constants;
        const norm = `${number(x)} / √(${number(mean_square)} + ${number(eps)})`;
        return [make("p", `${norm} × ${number(weight)} = ${number(value)}`)];
      }
      case "given":
        return [make("p", text.given)];
      default:
        return [make("p", `${step.operation}(${number(constants.x ?? 0)}) = ${number(value)}`)];
    }
  }

  function show(): void {
    const isRoot = isRootScale(options.steps);
    list.replaceChildren(
      ...options.steps.map((step) => {
        const symbols = formula(step.stage, isRoot);
        const title = make("span", options.text.stage(step.stage), ...(symbols.length > 0 ? [" = ", ...symbols] : []));
        const value = make("span", number(step.value));
        const item = make("li", make("h3", title, value), ...body(step));
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
