// Shortens the names by which a .wasm and its glue call each other: of several builds that share a glue alike.
import { EXPORTS, IMPORTS, importAt, numberAt, text, textAt, withEntries, withSections } from "./binary.mjs";

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
/** Names that scripts of ours say. */
const KEPT = ["memory", "__wbindgen_thread_destroy"];

/** Short names for long ones, given as they are asked for. */
export class Names {
  #short = new Map(KEPT.map((name) => [name, name]));

  /** The short name; undefined for one that was never given. */
  of(name) {
    return this.#short.get(name);
  }

  give(name) {
    if (!this.#short.has(name)) this.#short.set(name, shortened(this.#short.size));
    return this.#short.get(name);
  }
}

function shortened(number) {
  const rest = Math.floor(number / LETTERS.length);
  return (rest > 0 ? shortened(rest - 1) : "") + LETTERS[number % LETTERS.length];
}

/** A WebAssembly module that is called, and calls its imports, by short names; it imports all from `a`. */
export function renamed(wasm, names) {
  return withSections(wasm, (id, section) => {
    if (id === IMPORTS) return withEntries(section, (at) => importOf(section, at, names));
    if (id === EXPORTS) return withEntries(section, (at) => exportOf(section, at, names));
    return section;
  });
}

function importOf(section, at, names) {
  const { name, kindAt, end } = importAt(section, at);
  return [Buffer.concat([text("a"), text(names.give(name)), section.subarray(kindAt, end)]), end];
}

function exportOf(section, at, names) {
  const [name, kindAt] = textAt(section, at);
  const [, end] = numberAt(section, kindAt + 1);
  return [Buffer.concat([text(names.give(name)), section.subarray(kindAt, end)]), end];
}
