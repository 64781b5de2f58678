// WebAssembly's binary format: sections, each a list of entries, with numbers in LEB128.

/** Sections by number. */
export const [CUSTOM, IMPORTS, EXPORTS, CODE] = [0, 2, 7, 10];

/** The module with each section made anew; `make` is given its number and contents, and gives contents. */
export function withSections(wasm, make) {
  const parts = [wasm.subarray(0, 8)];
  for (let at = 8; at < wasm.length; ) {
    const id = wasm[at];
    const [size, start] = numberAt(wasm, at + 1);
    const section = make(id, wasm.subarray(start, start + size));
    parts.push(Buffer.from([id]), bytesOf(section.length), section);
    at = start + size;
  }
  return Buffer.concat(parts);
}

/** Visits a list of entries, which begins with their count; `visit` is told where one begins, and its number, and gives where it ends. */
export function eachEntry(bytes, start, visit) {
  let [count, at] = numberAt(bytes, start);
  for (let number = 0; number < count; number++) at = visit(at, number);
  return count;
}

/** A section of entries, each made anew: `make` is told where one begins, and its number, and gives its bytes and where the old ones end. */
export function withEntries(section, make) {
  const made = [];
  const count = eachEntry(section, 0, (at, number) => {
    const [bytes, end] = make(at, number);
    made.push(bytes);
    return end;
  });
  return Buffer.concat([bytesOf(count), ...made]);
}

/** Kinds of what is imported. */
export const [FUNCTION, MEMORY] = [0, 2];

/** What is imported: its name, its kind and where that stands, and where the next begins. */
export function importAt(section, at) {
  const [, nameAt] = textAt(section, at);
  const [name, kindAt] = textAt(section, nameAt);
  const kind = section[kindAt];
  if (kind !== FUNCTION && kind !== MEMORY) throw new Error(`an import of kind ${kind}: ${name}`);
  // A function's type; a memory's flags, least and most pages.
  let end = kindAt + 1;
  for (let numbers = kind === FUNCTION ? 1 : 3; numbers > 0; numbers--) end = numberAt(section, end)[1];
  return { name, kind, kindAt, end };
}

/** An unsigned LEB128 number, and where it ends. */
export function numberAt(bytes, at) {
  let number = 0;
  for (let shift = 0; ; shift += 7) {
    number += (bytes[at] & 127) * 2 ** shift;
    if (bytes[at++] < 128) return [number, at];
  }
}

export function bytesOf(number) {
  return Buffer.from(number < 128 ? [number] : [(number % 128) + 128, ...bytesOf(Math.floor(number / 128))]);
}

export function textAt(bytes, at) {
  const [length, start] = numberAt(bytes, at);
  return [Buffer.from(bytes.subarray(start, start + length)).toString(), start + length];
}

export function text(string) {
  return Buffer.concat([bytesOf(Buffer.byteLength(string)), Buffer.from(string)]);
}
