// What lies beside this package's scripts. Addresses are written out so that bundlers see the files; attnscope/slim has none of them.
import { nodeThread, nodeWorkers } from "./node-worker.ts";
import type { Helper } from "./threads.ts";

/** The package's own engine, analysis, files, script for graphics processors, and worker. */
export interface Beside {
  engine(): URL | undefined;
  analysis(): URL | undefined;
  files(): URL | undefined;
  gpu(): URL | undefined;
  /** The ways to make a worker, the next where one does not load; undefined where there are none. */
  workers(): readonly (() => Worker)[] | undefined;
  /** Where the worker's script lies, unless a bundler moved it. */
  workerAddress(): string | undefined;
  /** A worker that helps the engine in this thread. */
  helper(): Helper;
}

// Bundlers do not follow an address that is made so. In Node.js what is beside stays beside.
const here = import.meta.url;

// Asked for late: a script out of a Blob has no address that another file could stand beside.
export const beside: Beside = {
  engine: () => {
    if (!URL.canParse(".", import.meta.url)) return undefined;
    return hasRelaxedSimd() && hasSharedMemory()
      ? new URL("./wasm/attnscope_relaxed.wasm", import.meta.url)
      : new URL("./wasm/attnscope_simd128.wasm", import.meta.url);
  },
  analysis: () =>
    URL.canParse(".", import.meta.url) ? new URL("./wasm/attnscope_analysis.wasm", import.meta.url) : undefined,
  files: () =>
    URL.canParse(".", import.meta.url) ? new URL("./wasm/attnscope_files.wasm", import.meta.url) : undefined,
  gpu: () => (URL.canParse(".", import.meta.url) ? new URL("../bundled/attnscope.gpu.js", import.meta.url) : undefined),
  workers: () => {
    if (typeof Worker === "undefined") return nodeWorkers(new URL("./worker.js", here));
    return isElsewhere() ? [worker, importing] : [worker];
  },
  workerAddress: () => (URL.canParse(".", here) ? new URL("./worker.js", here).href : undefined),
  helper: () => nodeThread(new URL("./worker.js", here)) ?? (isElsewhere() ? importing() : worker()),
};

const worker = () => new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "attnscope" });

/** Whether this script is of another origin than the page, as from a CDN. What webpack takes for its address is none. */
function isElsewhere(): boolean {
  return URL.canParse(here) && !here.startsWith("file:") && new URL(here).origin !== globalThis.origin;
}

/** The script of the workers below. They make their helpers of it, so that it stays. */
let importer: string | undefined;

/** A worker's own script must be of the page's origin; what it imports need not. */
function importing(): Worker {
  const text = `import ${JSON.stringify(beside.workerAddress())};`;
  importer ??= URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  return new Worker(importer, { type: "module", name: "attnscope" });
}

let isThere: boolean | undefined;

/** Whether there is memory that may be shared, as far as the engine's may grow; sharing it is for isolated pages alone. */
function hasSharedMemory(): boolean {
  try {
    isThere ??= Boolean(new WebAssembly.Memory({ initial: 1, maximum: 65536, shared: true }));
  } catch {
    isThere = false;
  }
  return isThere;
}

/** Whether the runtime has relaxed SIMD: a module whose one function is a relaxed swizzle of two constants is valid. */
function hasRelaxedSimd(): boolean {
  const body = [65, 1, 253, 15, 65, 2, 253, 15, 253, 128, 2, 11];
  const types = [1, 5, 1, 96, 0, 1, 123];
  const functions = [3, 2, 1, 0];
  const code = [10, body.length + 3, 1, body.length + 1, 0, ...body];
  return WebAssembly.validate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, ...types, ...functions, ...code]));
}
