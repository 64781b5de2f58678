// A widget of Jupyter notebooks, as anywidget loads it: bundled/attnscope.anywidget.js is made of this.
import "./elements.ts";

/** The synchronised values of a Python object, as anywidget gives them. */
interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, listener: () => void): void;
  off(event: string, listener: () => void): void;
}

const TAKEN = ["weights", "shape", "tokens", "key_tokens"];

/**
 * Draws `weights`, the bytes of float32 numbers of `shape` `[heads, n_q, n_k]`, for `tokens` (and `key_tokens`), as `look` says
 * ("heads" or "lines"). What is selected is written to `selected`.
 */
function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  // Every widget of a notebook loads this script anew, and only what the first one defined are elements of the page.
  const view = document.createElement(model.get("look") === "lines" ? "attn-lines" : "attn-heads");
  const update = () => {
    const tokens = (name: string) => (model.get(name) ?? []) as string[];
    const { buffer, byteOffset, byteLength } = model.get("weights") as DataView<ArrayBuffer>;
    view.tokens = tokens("tokens");
    view.keyTokens = tokens("key_tokens");
    // Copied: float32 must lie at multiples of four bytes.
    const data = new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength));
    view.weights = { data, shape: model.get("shape") as number[] };
  };
  view.addEventListener("select", (event: Event) => {
    model.set("selected", (event as CustomEvent).detail);
    model.save_changes();
  });
  view.addEventListener("error", (event: Event) => console.error((event as CustomEvent).detail));
  for (const name of TAKEN) model.on(`change:${name}`, update);
  update();
  el.append(view);
  return () => {
    for (const name of TAKEN) model.off(`change:${name}`, update);
    view.remove();
  };
}

export default { render };
