import { type ElementEvents, elementBase, upgrade } from "./element-base.ts";
import { AttnError, invalidOption } from "./errors.ts";
import type { Place } from "./selection.ts";

const STYLE = `
  :host { display: block; block-size: 720px; }
  :host([hidden]) { display: none; }
  iframe { display: block; inline-size: 100%; block-size: 100%; border: 0; }
`;

/** A state that says nothing: what the page begins with. */
const START = '{"attnscope":1}';

/** How long the page in the frame may take until it says that it is there, in milliseconds. */
const PATIENCE = 20_000;

/** What `<attn-scope>` fires: of each event its `detail`. */
export interface ScopeEvents extends ElementEvents {
  /** Something else is selected. */
  readonly select: Place;
  /** There is something new to keep: what `state` takes. */
  readonly statechange: { readonly state: string };
}

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
 * there is something new to keep, and `error` with an AttnError, also where the page in the frame does not come within 20 seconds.
 */
export class AttnScope extends elementBase<ScopeEvents>() {
  static readonly observedAttributes: readonly string[] = ["src", "state", "language", "theme"];
  #frame: HTMLIFrameElement | null = null;
  #isReady = false;
  #isDue = false;
  #state: string | null = null;
  /** The state that the frame was opened with. */
  #opened: string | null = null;
  readonly #hear = ({ source, data }: MessageEvent<FrameMessage>) => {
    if (source && source === this.#frame?.contentWindow) this.#told(data);
  };

  /** The address of the page as one file. */
  get src(): string {
    return this.getAttribute("src") ?? "";
  }
  set src(src: string | null | undefined) {
    reflect(this, "src", src);
  }

  /** What is on the bench: a saved state as JSON, or set as the part of a link after its #. Follows what is done there; null for the start. */
  get state(): string | null {
    return this.#state;
  }
  set state(state: string | null | undefined) {
    this.#state = state || null;
    this.#ask({ state: this.#state ?? START });
  }

  /** "en" or "zh"; without it, the browser's. */
  get language(): string | null {
    return this.getAttribute("language");
  }
  set language(language: string | null | undefined) {
    reflect(this, "language", language);
  }

  /** "light", "dark", or "system", the default. */
  get theme(): string | null {
    return this.getAttribute("theme");
  }
  set theme(theme: string | null | undefined) {
    reflect(this, "theme", theme);
  }

  connectedCallback(): void {
    upgrade(this);
    addEventListener("message", this.#hear);
    this.#due();
  }

  disconnectedCallback(): void {
    removeEventListener("message", this.#hear);
    this.#unload();
  }

  attributeChangedCallback(name: string, before: string | null, text: string | null): void {
    if (name === "state") this.state = text;
    else if (before === text) return;
    else if (name === "src") this.#due();
    else this.#ask({ [name]: text });
  }

  /** Loads once the turn is over, however much was changed in it. */
  #due(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      if (this.isConnected) this.#load();
    });
  }

  #load(): void {
    this.#unload();
    const address = addressOf(this.src);
    if (!address) {
      this.#refuse(invalidOption("src", this.src, "the address of attnscope.html"));
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
    // A link opens at once; JSON follows when the page listens.
    this.#opened = this.#state?.trimStart().startsWith("{") ? null : this.#state;
    if (this.#opened) address.hash = this.#opened;
    frame.src = address.href;
    root.append(frame);
    this.#frame = frame;
    setTimeout(() => {
      if (frame !== this.#frame || this.#isReady) return;
      const expected = `attnscope.html, with its scripts allowed, to be ready within ${PATIENCE / 1000} seconds`;
      this.#refuse(invalidOption("src", address.href, expected));
    }, PATIENCE);
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
        this.#ask({ language, theme, state: state === this.#opened ? null : (state ?? START) });
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

  /** A state that is null asks for nothing, and other wishes that are null for what the page does by itself. */
  #ask(wishes: { state?: string | null; language?: string | null; theme?: string | null }): void {
    if (this.#isReady) this.#frame?.contentWindow?.postMessage({ attnscope: wishes }, "*");
  }

  #refuse(error: AttnError): void {
    this.dispatchEvent(new CustomEvent("error", { detail: error }));
  }
}

function addressOf(src: string): URL | null {
  try {
    return src === "" ? null : new URL(src, document.baseURI);
  } catch {
    return null;
  }
}

function reflect(element: Element, name: string, value: string | null | undefined): void {
  if (value == null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}
