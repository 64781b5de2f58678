// Shortens the names by which a .wasm and its glue call each other: of several builds that share a glue alike.

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
/** Names that scripts of ours say. */
const KEPT = ["memory", "__wbindgen_thread_destroy"];
const [IMPORTS, EXPORTS] = [2, 7];
const [FUNCTION, MEMORY] = [0, 2];

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
  const parts = [wasm.subarray(0, 8)];
  for (let at = 8; at < wasm.length; ) {
    const id = wasm[at];
    const [size, start] = numberAt(wasm, at + 1);
    let section = wasm.subarray(start, start + size);
    if (id === IMPORTS) section = entries(section, (entry) => importOf(entry, names));
    if (id === EXPORTS) section = entries(section, (entry) => exportOf(entry, names));
    parts.push(Buffer.from([id]), bytesOf(section.length), section);
    at = start + size;
  }
  return Buffer.concat(parts);
}

/** A section of so many entries, each made anew: `make` gives its bytes and where the next begins. */
function entries(section, make) {
  let [count, at] = numberAt(section, 0);
  const made = [bytesOf(count)];
  for (; count > 0; count--) {
    const [bytes, end] = make({ section, at });
    made.push(bytes);
    at = end;
  }
  return Buffer.concat(made);
}

function importOf({ section, at }, names) {
  const [, nameAt] = textAt(section, at);
  const [name, kindAt] = textAt(section, nameAt);
  const kind = section[kindAt];
  if (kind !== FUNCTION && kind !== MEMORY) throw new Error(`an import of kind ${kind}: ${name}`);
  // A function's type; a memory's flags, least and most pages.
  let end = kindAt + 1;
  for (let numbers = kind === FUNCTION ? 1 : 3; numbers > 0; numbers--) end = numberAt(section, end)[1];
  return [Buffer.concat([text("a"), text(names.give(name)), section.subarray(kindAt, end)]), end];
}

function exportOf({ section, at }, names) {
  const [name, kindAt] = textAt(section, at);
  const [, end] = numberAt(section, kindAt + 1);
  return [Buffer.concat([text(names.give(name)), section.subarray(kindAt, end)]), end];
}

/** An unsigned LEB128 number, and where it ends. */
function numberAt(bytes, at) {
  let number = 0;
  for (let shift = 0; ; shift += 7) {
    number += (bytes[at] & 127) * 2 ** shift;
    if (bytes[at++] < 128) return [number, at];
  }
}

function bytesOf(number) {
  return Buffer.from(number < 128 ? [number] : [(number % 128) + 128, ...bytesOf(Math.floor(number / 128))]);
}

function textAt(bytes, at) {
  const [length, start] = numberAt(bytes, at);
  return [Buffer.from(bytes.subarray(start, start + length)).toString(), start + length];
}

function text(string) {
  return Buffer.concat([bytesOf(Buffer.byteLength(string)), Buffer.from(string)]);
}
