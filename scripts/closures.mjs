// Empties what JavaScript would call Rust closures by. js-sys tells of functions that take closures, and so these are called from a table,
// though nothing here hands one over; the optimizer then drops what they alone needed.
import {
  CODE,
  CUSTOM,
  eachEntry,
  FUNCTION,
  IMPORTS,
  importAt,
  numberAt,
  textAt,
  withEntries,
  withSections,
} from "./binary.mjs";

const FUNCTION_NAMES = 1;
const CALLS_CLOSURE = /^wasm_bindgen\S*::convert::closures::_::invoke::/;
/** Three bytes: no locals, unreachable, end. */
const EMPTY = Buffer.from([3, 0, 0x00, 0x0b]);

/** A WebAssembly module, which still has its names, without what calls closures. */
export function withoutClosures(wasm) {
  const calls = new Set();
  let imported = 0;
  withSections(wasm, (id, section) => {
    if (id === IMPORTS) {
      eachEntry(section, 0, (at) => {
        const { kind, end } = importAt(section, at);
        if (kind === FUNCTION) imported++;
        return end;
      });
    }
    if (id === CUSTOM) {
      eachName(section, (number, name) => {
        if (CALLS_CLOSURE.test(name)) calls.add(number);
      });
    }
    return section;
  });
  return withSections(wasm, (id, section) => {
    if (id !== CODE) return section;
    return withEntries(section, (at, number) => {
      const [size, start] = numberAt(section, at);
      return [calls.has(imported + number) ? EMPTY : section.subarray(at, start + size), start + size];
    });
  });
}

/** Of a section of names the numbers and names of functions. */
function eachName(section, tell) {
  const [title, start] = textAt(section, 0);
  if (title !== "name") return;
  for (let at = start; at < section.length; ) {
    const [size, inner] = numberAt(section, at + 1);
    if (section[at] === FUNCTION_NAMES) {
      eachEntry(section, inner, (entry) => {
        const [number, nameAt] = numberAt(section, entry);
        const [name, end] = textAt(section, nameAt);
        tell(number, name);
        return end;
      });
    }
    at = inner + size;
  }
}
