import { ElementBase } from "./element-base.ts";
import { AttnError } from "./errors.ts";
import type { Place } from "./selection.ts";

const STYLE = `
  :host { display: block; block-size: 720px; }
  :host([hidden]) { display: none; }
  iframe { display: block; inline-size: 100%; block-size: 100%; border: 0; }
`;

/** What the page in the frame of an `<attn-scope>` tells. */
export type FrameMessage =
  | { attnscope: "ready" }
  | { attnscope: "state"; detail: string }
  | { attnscope: "select"; detail: Place }
  | { attnscope: "maskchange"; detail: { allowed: Uint8Array; shape: readonly number[] } }
  | { attnscope: "error"; detail: { code: "bad_file" | "invalid_option"; message: string; field?: string } };

/**
 * `<attn-scope>`: the whole bench. `src` is the address of the page as one file, `attnscope.html`, which any host serves; it runs in
 * a sandbox, without a way to the page around it or to anything stored. The element is as high as CSS says; its frame is
 * `::part(frame)`.
 *
 * Fires `select` with the place, `maskchange` with `{ allowed, shape }` (`[n_q, n_k]` or `[heads, n_q, n_k]`), `statechange` when
 * there is something new to keep, and `error` with an AttnError.
 */
export class AttnScope extends ElementBase {
  static readonly observedAttributes: readonly string[] = ["src", "state", "language", "theme"];
  #frame: HTMLIFrameElement | null = null;
  #isReady = false;
  #state: string | null = null;
  readonly #hear = ({ source, data }: MessageEvent<FrameMessage>) => {
    if (source && source === this.#frame?.contentWindow) this.#told(data);
  };

  /** The address of the page as one file. */
  get src(): string {
    return this.getAttribute("src") ?? "";
  }
  set src(src: string) {
    this.setAttribute("src", src);
  }

  /** What is on the bench: a saved state as JSON, or set as the part of a link after its #. Follows what is done there. */
  get state(): string | null {
    return this.#state;
  }
  set state(state: string | null) {
    this.#state = state;
    this.#ask({ state });
  }

  /** "en" or "zh"; without it, the browser's. */
  get language(): string | null {
    return this.getAttribute("language");
  }
  set language(language: string | null) {
    reflect(this, "language", language);
  }

  /** "light", "dark", or "system", the default. */
  get theme(): string | null {
    return this.getAttribute("theme");
  }
  set theme(theme: string | null) {
    reflect(this, "theme", theme);
  }

  connectedCallback(): void {
    addEventListener("message", this.#hear);
    this.#load();
  }

  disconnectedCallback(): void {
    removeEventListener("message", this.#hear);
    this.#unload();
  }

  attributeChangedCallback(name: string, before: string | null, text: string | null): void {
    if (name === "state") this.state = text;
    else if (before === text) return;
    else if (name === "src") this.#load();
    else this.#ask({ [name]: text });
  }

  #load(): void {
    if (!this.isConnected) return;
    this.#unload();
    if (this.src === "") {
      const expected = "the address of attnscope.html";
      this.#refuse(
        new AttnError("invalid_option", `src: found none, expected ${expected}`, { option: "src", expected }),
      );
      return;
    }
    const root = this.shadowRoot ?? this.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    const frame = document.createElement("iframe");
    frame.title = "attnscope";
    frame.part.add("frame");
    // Of an origin of its own: what is framed reaches neither this page nor what its host has stored.
    frame.sandbox.add("allow-scripts", "allow-downloads");
    frame.allow = "clipboard-write";
    const address = new URL(this.src, document.baseURI);
    // A link opens at once; JSON follows when the page listens.
    if (this.#state && !isJson(this.#state)) address.hash = this.#state;
    frame.src = address.href;
    root.append(frame);
    this.#frame = frame;
  }

  #unload(): void {
    this.#frame?.remove();
    this.#frame = null;
    this.#isReady = false;
  }

  #told(told: FrameMessage): void {
    switch (told?.attnscope) {
      case "ready": {
        this.#isReady = true;
        const { state, language, theme } = this;
        this.#ask({ language, theme, state: state && isJson(state) ? state : null });
        break;
      }
      case "state":
        this.#state = told.detail;
        this.dispatchEvent(new CustomEvent("statechange", { detail: { state: told.detail } }));
        break;
      case "error":
        this.#refuse(new AttnError(told.detail.code, told.detail.message, { field: told.detail.field }));
        break;
      case "select":
      case "maskchange":
        this.dispatchEvent(new CustomEvent(told.attnscope, { detail: told.detail }));
    }
  }

  /** Null asks for nothing. */
  #ask(wishes: { state?: string | null; language?: string | null; theme?: string | null }): void {
    if (this.#isReady) this.#frame?.contentWindow?.postMessage({ attnscope: wishes }, "*");
  }

  #refuse(error: AttnError): void {
    this.dispatchEvent(new CustomEvent("error", { detail: error }));
  }
}

function isJson(state: string): boolean {
  return state.trimStart().startsWith("{");
}

function reflect(element: Element, name: string, value: string | null): void {
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}
