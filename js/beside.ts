// What lies beside this package's scripts. Addresses are written out so that bundlers see the files; attnscope/slim has none of them.

/** The package's own engine, files, script for graphics processors, and worker. */
export interface Beside {
  engine(): URL;
  files(): URL | undefined;
  gpu(): URL | undefined;
  worker(): Worker;
}

// Asked for late: a script out of a Blob has no address that another file could stand beside.
export const beside: Beside = {
  engine: () =>
    hasRelaxedSimd()
      ? new URL("./wasm/attnscope_relaxed.wasm", import.meta.url)
      : new URL("./wasm/attnscope_simd128.wasm", import.meta.url),
  files: () =>
    URL.canParse(".", import.meta.url) ? new URL("./wasm/attnscope_files.wasm", import.meta.url) : undefined,
  gpu: () => (URL.canParse(".", import.meta.url) ? new URL("../bundled/attnscope.gpu.js", import.meta.url) : undefined),
  worker: () => new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "attnscope" }),
};

/** Whether the runtime has relaxed SIMD: a module whose one function is a relaxed swizzle of two constants is valid. */
function hasRelaxedSimd(): boolean {
  const body = [65, 1, 253, 15, 65, 2, 253, 15, 253, 128, 2, 11];
  const types = [1, 5, 1, 96, 0, 1, 123];
  const functions = [3, 2, 1, 0];
  const code = [10, body.length + 3, 1, body.length + 1, 0, ...body];
  return WebAssembly.validate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, ...types, ...functions, ...code]));
}
