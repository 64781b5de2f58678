// What `import "attnscope/elements"` registers: the views as custom elements, which draw tensors from anywhere and need no engine, and
// the page.
import { AttnScope, type FrameMessage } from "./attn-scope.ts";
import type { DeviceTensor } from "./device.ts";
import { ElementBase } from "./element-base.ts";
import { AttnError } from "./errors.ts";
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

/** What every element draws: tokens, and numbers for pairs of them. */
interface Drawn {
  readonly tokens: readonly string[];
  readonly keyTokens: readonly string[];
  /** `[heads, n_q, n_k]` */
  readonly values: Tensor | DeviceTensor;
}

/**
 * An element that draws `weights` for `tokens`. Attributes and properties agree: the attributes hold JSON, `tokens` also plain
 * words; properties take arrays and tensors. Fires `select` with `{ head, query, key }`, and `error` with an AttnError for what
 * cannot be drawn, which leaves the last picture.
 */
abstract class AttnElement extends ElementBase {
  static readonly observedAttributes: readonly string[] = ["tokens", "key-tokens", "weights"];

  #selection = new Selection();
  #values: TensorLike | DeviceTensor | null = null;
  #tokens: readonly string[] | null = null;
  #keyTokens: readonly string[] | null = null;
  #home: HTMLElement | null = null;
  #view: View<never> | null = null;
  #isDue = false;
  readonly #changed = () => {
    const { head, query, key } = this.#selection.place;
    this.dispatchEvent(new CustomEvent("select", { detail: { head, query, key } }));
    this.due();
  };

  /** What is selected; give several elements the same one and they move together. */
  get selection(): Selection {
    return this.#selection;
  }
  set selection(selection: Selection) {
    if (this.isConnected) this.#selection.removeEventListener("change", this.#changed);
    this.#selection = selection;
    if (this.isConnected) selection.addEventListener("change", this.#changed);
    this.#remake();
  }

  /** The queries' tokens, and the keys' where `keyTokens` says no others. */
  get tokens(): readonly string[] {
    return this.#tokens ?? [];
  }
  set tokens(tokens: readonly string[]) {
    this.#tokens = tokens;
    this.due();
  }

  /** The keys' tokens, where they are not the queries'. */
  get keyTokens(): readonly string[] {
    return this.#keyTokens ?? this.tokens;
  }
  set keyTokens(tokens: readonly string[]) {
    this.#keyTokens = tokens;
    this.due();
  }

  /**
   * `[heads, n_q, n_k]`, or `[n_q, n_k]` for one head. `<attn-heads>` and `<attn-heatmap>` also take what `trace.drawable` gives, of as many
   * axes, and draw it on the graphics processor.
   */
  get weights(): TensorLike | DeviceTensor | null {
    return this.#values;
  }
  set weights(weights: TensorLike | DeviceTensor | null) {
    this.#values = weights;
    this.due();
  }

  connectedCallback(): void {
    if (!this.shadowRoot) {
      const root = this.attachShadow({ mode: "open" });
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(STYLE);
      root.adoptedStyleSheets = [sheet];
      this.#home = document.createElement("div");
      this.#home.part.add("view");
      root.append(this.#home);
    }
    this.#selection.addEventListener("change", this.#changed);
    this.due();
  }

  disconnectedCallback(): void {
    this.#selection.removeEventListener("change", this.#changed);
    this.#view?.destroy();
    this.#view = null;
  }

  attributeChangedCallback(name: string, _: string | null, text: string | null): void {
    try {
      this.read(name, text);
    } catch (error) {
      this.#refuse(error);
    }
  }

  /** Takes an attribute's text. */
  protected read(name: string, text: string | null): void {
    if (name === "tokens") this.#tokens = words(text);
    if (name === "key-tokens") this.#keyTokens = words(text);
    if (name === "weights") this.#values = json(name, text) as TensorLike | null;
    this.due();
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
  /** Makes the element's view. */
  protected abstract create(home: HTMLElement, options: object): View<never>;
  /** The numbers, as far as they are known. */
  protected values(): Tensor | DeviceTensor | null {
    if (this.#values === null) return null;
    const values = onDevice(this.#values) ?? toTensor(this.#values as TensorLike, "weights");
    const { shape } = values;
    if (shape.length === 3) return values;
    if (shape.length === 2 && "data" in values) return { ...values, shape: [1, ...shape] };
    const expected = "data" in values ? "[n_q, n_k] or [heads, n_q, n_k]" : "[heads, n_q, n_k]";
    const message = `weights: found shape [${shape.join(", ")}], expected ${expected}`;
    throw new AttnError("shape_mismatch", message, { argument: "weights", found: shape, expected });
  }

  #draw(): void {
    try {
      const values = this.values();
      if (!values || !this.#home) return;
      const [, queries = 0, keys = 0] = values.shape;
      const drawn = {
        values,
        tokens: labels("tokens", this.#tokens, queries),
        keyTokens: labels("keyTokens", this.#keyTokens ?? (queries === keys ? this.#tokens : null), keys),
      };
      const options = this.options(drawn);
      if (this.#view) this.#view.update(options as never);
      else this.#view = this.create(this.#home, options);
    } catch (error) {
      this.#refuse(error);
    }
  }

  #remake(): void {
    this.#view?.destroy();
    this.#view = null;
    this.due();
  }

  #refuse(error: unknown): void {
    this.dispatchEvent(new CustomEvent("error", { detail: error }));
  }
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

function json(name: string, text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch (reason) {
    const message = `attribute ${name}: ${(reason as Error).message}, expected JSON`;
    throw new AttnError("invalid_tensor", message, { argument: name, found: text.slice(0, 80), expected: "JSON" });
  }
}

/** A JSON list of tokens, or words between spaces. */
function words(text: string | null): readonly string[] | null {
  if (text === null) return null;
  return text.trimStart().startsWith("[") ? (json("tokens", text) as string[]).map(String) : text.trim().split(/\s+/u);
}

/** Tokens as labels; numbers where there are none. */
function labels(name: string, tokens: readonly string[] | null, count: number): readonly string[] {
  if (tokens === null || tokens.length === 0) return Array.from({ length: count }, (_, i) => String(i));
  if (tokens.length === count) return tokens.map(visible);
  const message = `${name}: found ${tokens.length} tokens, expected ${count}, one for each row`;
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
 * Attributes and properties agree: attributes hold JSON, `tokens` also plain words; properties take arrays and tensors. It fires
 * `select` with `{ head, query, key }`, and `error` with an AttnError for what cannot be drawn, which leaves the last picture.
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
  #drawn: { values: DeviceTensor; head: number; matrix: DeviceTensor } | null = null;

  /** Which head of several is drawn, counted from 0. */
  get head(): number {
    return this.#head;
  }
  set head(head: number) {
    this.#head = head;
    this.due();
  }

  protected override read(name: string, text: string | null): void {
    if (name === "head") this.#head = Number(text ?? 0);
    super.read(name, text);
  }

  protected override options(drawn: Drawn): object {
    const [heads = 1, rows = 1, columns = 1] = drawn.values.shape;
    const head = this.#head;
    if (!(Number.isInteger(head) && head >= 0 && head < heads)) {
      const expected = `a whole number from 0 to ${heads - 1}`;
      const message = `head: found ${head}, expected ${expected}`;
      throw new AttnError("invalid_option", message, { option: "head", found: String(head), expected });
    }
    const { query, key } = this.selection.place;
    return {
      matrix: this.#matrixOf(drawn.values, head),
      rowLabels: drawn.tokens,
      columnLabels: drawn.keyTokens,
      domain: [0, 1],
      selected: query < rows && key < columns ? { row: query, column: key } : null,
      label: `head ${head + 1}`,
      describe: (cell: Cell, value: number) => described(drawn)(head, cell, value),
      onSelect: ({ row, column }: Cell) => this.selection.set({ head, query: row, key: column }),
    };
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
    if (this.#drawn?.values !== values || this.#drawn.head !== head) {
      this.#drawn = { values, head, matrix: values.at(head) };
    }
    return this.#drawn.matrix;
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
  set allowed(allowed: TensorLike | null) {
    this.#allowed = allowed;
    this.due();
  }

  protected override read(name: string, text: string | null): void {
    if (name === "allowed") this.#allowed = json(name, text) as TensorLike | null;
    super.read(name, text);
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
    const { query, key } = this.selection.place;
    const { tokens, keyTokens } = drawn;
    return {
      rows,
      columns,
      allowed: Uint8Array.from(numbersOf(drawn).data, (cell) => Number(cell !== 0)),
      rowLabels: tokens,
      columnLabels: keyTokens,
      selected: query < rows && key < columns ? { row: query, column: key } : null,
      label: "mask",
      describe: ({ row, column }: Cell, allowed: boolean) =>
        `query ${tokens[row]}, key ${keyTokens[column]}, ${allowed ? "allowed" : "hidden"}`,
      onSelect: ({ row, column }: Cell) => this.selection.set({ query: row, key: column }),
      onPaint: (allowed: Uint8Array) => {
        this.#allowed = { data: Float32Array.from(allowed), shape: [rows, columns] };
        this.due();
        this.dispatchEvent(new CustomEvent("maskchange", { detail: { allowed, shape: [rows, columns] } }));
      },
    };
  }
  protected override create(home: HTMLElement, options: object): View<never> {
    return maskEditor(home, options as never);
  }
}

export { AttnScope, type FrameMessage };

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
