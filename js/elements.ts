// What `import "attnscope/elements"` registers: the views as custom elements, which draw tensors from anywhere and need no engine, and
// the page.
import { AttnScope, type FrameMessage, type ScopeEvents } from "./attn-scope.ts";
import type { DeviceTensor } from "./device.ts";
import { type ElementEvents, elementBase, upgrade } from "./element-base.ts";
import { AttnError, invalidOption } from "./errors.ts";
import { Selection } from "./selection.ts";
import { type Tensor, type TensorLike, toTensor } from "./tensor.ts";
import { isOnDevice } from "./views/device-peaks.ts";
import { headGrid } from "./views/head-grid.ts";
import { headLines } from "./views/head-lines.ts";
import { heatmap } from "./views/heatmap.ts";
import { maskEditor } from "./views/mask-editor.ts";
import type { Cell } from "./views/matrix.ts";
import { number } from "./views/number.ts";
import type { View } from "./views/view.ts";
import { visible } from "./views/visible.ts";

const STYLE = ":host { display: block; } :host([hidden]) { display: none; } div { min-block-size: 1px; }";

/** What a property takes: its value, what its attribute holds, or nothing, which is as if it were not given. */
type Given<Value> = Value | string | null | undefined;

/** What every element draws: tokens, and numbers for pairs of them. */
interface Drawn {
  readonly tokens: readonly string[];
  readonly keyTokens: readonly string[];
  /** `[heads, n_q, n_k]` */
  readonly values: Tensor | DeviceTensor;
}

/**
 * An element that draws `weights` for `tokens`. Attributes and properties agree: the attributes hold JSON, `tokens` also plain
 * words; properties take arrays and tensors as well, and null or undefined for what is not given. Fires `select` with
 * `{ head, query, key }`, and `error` with an AttnError for what cannot be drawn, which leaves the last picture.
 */
abstract class AttnElement extends elementBase<ElementEvents>() {
  static readonly observedAttributes: readonly string[] = ["tokens", "key-tokens", "weights"];

  #selection = new Selection();
  #weights: TensorLike | DeviceTensor | null = null;
  /** Of the weights, made once. */
  #values: Tensor | DeviceTensor | null = null;
  #tokens: readonly string[] | null = null;
  #keyTokens: readonly string[] | null = null;
  #home: HTMLElement | null = null;
  #drawn: Drawn | null = null;
  #isDue = false;
  #view: View<never> | null = null;
  readonly #moved = () => {
    const { head, query, key } = this.#selection.place;
    this.dispatchEvent(new CustomEvent("select", { detail: { head, query, key } }));
    if (this.#drawn) this.change(this.following(this.#drawn));
  };

  /** What is selected; give several elements the same one and they move together. */
  get selection(): Selection {
    return this.#selection;
  }
  set selection(selection: Selection | null | undefined) {
    this.take(() => {
      const next = selection ?? new Selection();
      if (!next.place) throw invalidOption("selection", selection, "a Selection");
      this.#selection.removeEventListener("change", this.#moved);
      this.#selection = next;
      if (this.isConnected) next.addEventListener("change", this.#moved);
    });
  }

  /** The queries' tokens, and the keys' where `keyTokens` says no others. */
  get tokens(): readonly string[] {
    return this.#tokens ?? [];
  }
  set tokens(tokens: Given<readonly string[]>) {
    this.take(() => {
      this.#tokens = words("tokens", tokens);
    });
  }

  /** The keys' tokens, where they are not the queries'. */
  get keyTokens(): readonly string[] {
    return this.#keyTokens ?? this.tokens;
  }
  set keyTokens(tokens: Given<readonly string[]>) {
    this.take(() => {
      this.#keyTokens = words("keyTokens", tokens);
    });
  }

  /**
   * `[heads, n_q, n_k]`, or `[n_q, n_k]` for one head; give them again where their numbers changed. `<attn-heads>` and `<attn-heatmap>`
   * also take what `trace.drawable` gives, of as many axes, and draw it on the graphics processor.
   */
  get weights(): TensorLike | DeviceTensor | null {
    return this.#weights;
  }
  set weights(weights: Given<TensorLike | DeviceTensor>) {
    this.take(() => {
      this.#weights = parsed("weights", weights);
      this.#values = null;
    });
  }

  connectedCallback(): void {
    upgrade(this);
    if (!this.shadowRoot) {
      const root = this.attachShadow({ mode: "open" });
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(STYLE);
      root.adoptedStyleSheets = [sheet];
      this.#home = document.createElement("div");
      this.#home.part.add("view");
      root.append(this.#home);
    }
    this.#selection.addEventListener("change", this.#moved);
    this.due();
  }

  disconnectedCallback(): void {
    this.#selection.removeEventListener("change", this.#moved);
    this.#clear();
  }

  attributeChangedCallback(name: string, _: string | null, text: string | null): void {
    // By the setter, also where a property that was set before still hides it.
    Reflect.set(Object.getPrototypeOf(this), name === "key-tokens" ? "keyTokens" : name, text, this);
  }

  /** Takes what was given and draws it, or tells why it cannot be taken. */
  protected take(read: () => void): void {
    try {
      read();
      this.due();
    } catch (error) {
      this.#refuse(error);
    }
  }

  /** Draws once the turn is over, however much was changed in it. */
  protected due(): void {
    if (this.#isDue || !this.isConnected) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      if (this.isConnected) this.#draw();
    });
  }

  /** The options of the element's view. */
  protected abstract options(drawn: Drawn): object;
  /** Those of them that change with the selection, where the view does not follow it by itself. */
  protected following(_: Drawn): object {
    return {};
  }
  /** Gives the view what changed. */
  protected change(options: object): void {
    if (Object.keys(options).length > 0) this.#view?.update(options as never);
  }
  /** Makes the element's view. */
  protected abstract create(home: HTMLElement, options: object): View<never>;
  /** The numbers, as far as they are known. */
  protected values(): Tensor | DeviceTensor | null {
    if (this.#weights !== null) this.#values ??= headed(this.#weights);
    return this.#values;
  }

  /** The selected cell, where the matrix has it. */
  protected selected({ values }: Drawn): Cell | null {
    const [, rows = 1, columns = 1] = values.shape;
    const { query, key } = this.selection.place;
    return query < rows && key < columns ? { row: query, column: key } : null;
  }

  #draw(): void {
    try {
      const values = this.values();
      if (!values || !this.#home) {
        this.#clear();
        return;
      }
      const [, queries = 0, keys = 0] = values.shape;
      const drawn = {
        values,
        tokens: labels("tokens", this.#tokens, queries, "row"),
        keyTokens: labels("keyTokens", this.#keyTokens ?? (queries === keys ? this.#tokens : null), keys, "column"),
      };
      const options = this.options(drawn);
      if (this.#view) this.change(options);
      else this.#view = this.create(this.#home, options);
      this.#drawn = drawn;
    } catch (error) {
      this.#refuse(error);
    }
  }

  #clear(): void {
    this.#view?.destroy();
    this.#view = null;
    this.#drawn = null;
  }

  #refuse(error: unknown): void {
    this.dispatchEvent(new CustomEvent("error", { detail: error }));
  }
}

/** With an axis of heads. */
function headed(weights: TensorLike | DeviceTensor): Tensor | DeviceTensor {
  const values = onDevice(weights) ?? toTensor(weights as TensorLike, "weights");
  const { shape } = values;
  if (shape.length === 3) return values;
  if (shape.length === 2 && "data" in values) return { ...values, shape: [1, ...shape] };
  const expected = "data" in values ? "[n_q, n_k] or [heads, n_q, n_k]" : "[heads, n_q, n_k]";
  const message = `weights: found shape [${shape.join(", ")}], expected ${expected}`;
  throw new AttnError("shape_mismatch", message, { argument: "weights", found: shape, expected });
}

function onDevice(values: unknown): DeviceTensor | null {
  return typeof values === "object" && values !== null && isOnDevice(values) ? values : null;
}

/** The numbers of what is drawn. @throws AttnError where they lie on a graphics processor */
function numbersOf({ values }: Drawn): Tensor {
  if ("data" in values) return values;
  const [found, expected] = ["numbers on a graphics processor", "a tensor, such as trace.read gives"];
  const message = `weights: found ${found}, expected ${expected}`;
  throw new AttnError("invalid_tensor", message, { argument: "weights", found, expected });
}

/** What was given, or what the text of an attribute holds. */
function parsed<Value>(name: string, given: Given<Value>): Value | null {
  if (typeof given !== "string") return given ?? null;
  if (given.trim() === "") return null;
  try {
    return JSON.parse(given);
  } catch (reason) {
    const message = `${name}: ${(reason as Error).message}, expected JSON`;
    throw new AttnError("invalid_tensor", message, { argument: name, found: given.slice(0, 80), expected: "JSON" });
  }
}

const isTokens = (tokens: unknown): tokens is readonly string[] =>
  Array.isArray(tokens) && tokens.every((token) => typeof token === "string");

/** A list of tokens, JSON of one, or words between spaces; null where there are none. */
function words(name: string, given: Given<readonly string[]>): readonly string[] | null {
  const tokens = typeof given === "string" ? (listIn(given) ?? given.split(/\s+/u).filter(Boolean)) : (given ?? []);
  if (!isTokens(tokens)) throw invalidOption(name, given, "words, or a list of strings");
  return tokens.length > 0 ? tokens : null;
}

/** The list of tokens that a text is as JSON: `[CLS] cat [SEP]` is none, but words. */
function listIn(text: string): readonly string[] | null {
  try {
    const list: unknown = JSON.parse(text);
    return isTokens(list) ? list : null;
  } catch {
    return null;
  }
}

/** Tokens as labels; numbers where there are none. */
function labels(name: string, tokens: readonly string[] | null, count: number, each: string): readonly string[] {
  if (tokens === null) return Array.from({ length: count }, (_, i) => String(i));
  if (tokens.length === count) return tokens.map(visible);
  const message = `${name}: found ${tokens.length} tokens, expected ${count}, one for each ${each}`;
  throw new AttnError("shape_mismatch", message, { argument: name, found: [tokens.length], expected: String(count) });
}

function described({ tokens, keyTokens }: Drawn) {
  return (head: number, { row, column }: Cell, value: number) =>
    `head ${head + 1}, query ${tokens[row]}, key ${keyTokens[column]}, ${number(value)}`;
}

function titles({ values }: Drawn) {
  return Array.from({ length: values.shape[0] ?? 0 }, (_, head) => ({ name: `head ${head + 1}`, note: "" }));
}

/**
 * `<attn-heads>`: every head's matrix side by side.
 *
 * ```html
 * <attn-heads tokens="the cat sat" weights="[[[1,0,0],[0.5,0.5,0],[0.2,0.3,0.5]]]"></attn-heads>
 * ```
 *
 * Attributes and properties agree: attributes hold JSON, `tokens` also plain words; properties take the same, arrays and tensors, and null
 * or undefined for what is not given. Without weights it is empty. It fires `select` with `{ head, query, key }`, and `error` with an
 * AttnError for what cannot be drawn, which leaves the last picture.
 */
export class AttnHeads extends AttnElement {
  protected override options(drawn: Drawn): object {
    return {
      values: drawn.values,
      rowLabels: drawn.tokens,
      columnLabels: drawn.keyTokens,
      titles: titles(drawn),
      axes: { row: "query", column: "key" },
      selection: this.selection,
      domain: [0, 1],
      label: (head: number) => `head ${head + 1}`,
      describe: described(drawn),
    };
  }
  protected override create(home: HTMLElement, options: object): View<never> {
    return headGrid(home, options as never);
  }
}

/**
 * `<attn-lines>`: lines from queries to keys, a colour for each head. Attributes and events are those of {@link AttnHeads}.
 *
 * ```html
 * <attn-lines tokens="the cat sat" weights="[[[1,0,0],[0.5,0.5,0],[0.2,0.3,0.5]]]"></attn-lines>
 * ```
 */
export class AttnLines extends AttnElement {
  protected override options(drawn: Drawn): object {
    return {
      values: numbersOf(drawn),
      rowLabels: drawn.tokens,
      columnLabels: drawn.keyTokens,
      titles: titles(drawn),
      selection: this.selection,
      label: "attention",
      describe: described(drawn),
    };
  }
  protected override create(home: HTMLElement, options: object): View<never> {
    return headLines(home, options as never);
  }
}

/**
 * `<attn-heatmap>`: one matrix, of several heads the one that `head` names. Other attributes and events are those of {@link AttnHeads}.
 *
 * ```html
 * <attn-heatmap tokens="we like tea" weights="[[1,0,0],[0.5,0.5,0],[0.2,0.3,0.5]]"></attn-heatmap>
 * ```
 */
export class AttnHeatmap extends AttnElement {
  static override readonly observedAttributes = [...AttnElement.observedAttributes, "head"];
  #head = 0;
  #onDevice: { values: DeviceTensor; head: number; matrix: DeviceTensor } | null = null;

  /** Which head of several is drawn, counted from 0; the first by default. */
  get head(): number {
    return this.#head;
  }
  set head(head: Given<number>) {
    this.take(() => {
      this.#head = Number(head ?? 0);
    });
  }

  protected override options(drawn: Drawn): object {
    const heads = drawn.values.shape[0] ?? 1;
    const head = this.#head;
    if (!(Number.isInteger(head) && head >= 0 && head < heads)) {
      const expected = `a whole number from 0 to ${heads - 1}`;
      const message = `head: found ${head}, expected ${expected}`;
      throw new AttnError("invalid_option", message, { option: "head", found: String(head), expected });
    }
    return {
      matrix: this.#matrixOf(drawn.values, head),
      rowLabels: drawn.tokens,
      columnLabels: drawn.keyTokens,
      domain: [0, 1],
      ...this.following(drawn),
      label: `head ${head + 1}`,
      describe: (cell: Cell, value: number) => described(drawn)(head, cell, value),
      onSelect: ({ row, column }: Cell) => this.selection.set({ head, query: row, key: column }),
    };
  }
  protected override following(drawn: Drawn): object {
    return { selected: this.selected(drawn) };
  }
  protected override create(home: HTMLElement, options: object): View<never> {
    return heatmap(home, options as never);
  }

  /** On a graphics processor the same one as before, where it is, so that it is not made ready anew. */
  #matrixOf(values: Drawn["values"], head: number) {
    if ("data" in values) {
      const [, rows = 1, columns = 1] = values.shape;
      const size = rows * columns;
      return { rows, columns, data: values.data.subarray(head * size, (head + 1) * size) };
    }
    if (this.#onDevice?.values !== values || this.#onDevice.head !== head) {
      this.#onDevice = { values, head, matrix: values.at(head) };
    }
    return this.#onDevice.matrix;
  }
}

/**
 * `<attn-mask>`: a mask that is painted. `allowed` `[n_q, n_k]` is nonzero where a query may attend to a key; without it, all
 * of the tokens. Fires `maskchange` with `{ allowed, shape }`; `mask.fromKeep` takes them.
 *
 * ```html
 * <attn-mask tokens="the cat sat" allowed="[[1,0,0],[1,1,0],[1,1,1]]"></attn-mask>
 * ```
 */
export class AttnMask extends AttnElement {
  static override readonly observedAttributes = ["tokens", "key-tokens", "allowed"];
  #allowed: TensorLike | null = null;

  /** `[n_q, n_k]`, nonzero where a query may attend to a key; null for everywhere. */
  get allowed(): TensorLike | null {
    return this.#allowed;
  }
  set allowed(allowed: Given<TensorLike>) {
    this.take(() => {
      this.#allowed = parsed("allowed", allowed);
    });
  }

  protected override values(): Tensor | null {
    const [queries, keys] = [this.tokens.length, this.keyTokens.length];
    if (this.#allowed === null && queries === 0) return null;
    const everywhere = { data: new Float32Array(queries * keys).fill(1), shape: [queries, keys] };
    const { data, shape } = toTensor(this.#allowed ?? everywhere, "allowed", ["number", "boolean"]);
    if (shape.length !== 2) {
      const message = `allowed: found shape [${shape.join(", ")}], expected [n_q, n_k]`;
      throw new AttnError("shape_mismatch", message, { argument: "allowed", found: shape, expected: "[n_q, n_k]" });
    }
    return { data, shape: [1, ...shape] };
  }

  protected override options(drawn: Drawn): object {
    const [, rows = 0, columns = 0] = drawn.values.shape;
    const { tokens, keyTokens } = drawn;
    return {
      rows,
      columns,
      allowed: Uint8Array.from(numbersOf(drawn).data, (cell) => Number(cell !== 0)),
      rowLabels: tokens,
      columnLabels: keyTokens,
      ...this.following(drawn),
      label: "mask",
      describe: ({ row, column }: Cell, allowed: boolean) =>
        `query ${tokens[row]}, key ${keyTokens[column]}, ${allowed ? "allowed" : "hidden"}`,
      onSelect: ({ row, column }: Cell) => this.selection.set({ query: row, key: column }),
      onPaint: (allowed: Uint8Array) => {
        this.#allowed = { data: Float32Array.from(allowed), shape: [rows, columns] };
        this.change({ allowed });
        this.dispatchEvent(new CustomEvent("maskchange", { detail: { allowed, shape: [rows, columns] } }));
      },
    };
  }
  protected override following(drawn: Drawn): object {
    return { selected: this.selected(drawn) };
  }
  protected override create(home: HTMLElement, options: object): View<never> {
    return maskEditor(home, options as never);
  }
}

export { AttnScope, type ElementEvents, type FrameMessage, type ScopeEvents };

const ELEMENTS = {
  "attn-heads": AttnHeads,
  "attn-lines": AttnLines,
  "attn-heatmap": AttnHeatmap,
  "attn-mask": AttnMask,
  "attn-scope": AttnScope,
};

for (const [name, element] of Object.entries(ELEMENTS)) {
  if (globalThis.customElements && !customElements.get(name)) customElements.define(name, element);
}

declare global {
  interface HTMLElementTagNameMap {
    "attn-heads": AttnHeads;
    "attn-lines": AttnLines;
    "attn-heatmap": AttnHeatmap;
    "attn-mask": AttnMask;
    "attn-scope": AttnScope;
  }
}
