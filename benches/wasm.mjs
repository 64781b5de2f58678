/** A WebAssembly module of this repository, in a page or in Node.js. */
export async function compiled(path) {
  const url = new URL(`../${path}`, import.meta.url);
  if (url.protocol !== "file:") return WebAssembly.compileStreaming(fetch(url));
  const { readFile } = await import("node:fs/promises");
  return WebAssembly.compile(await readFile(url));
}
