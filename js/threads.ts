// The threads that help the engine with a pass: workers with the same WebAssembly and the same memory, started when the first
// pass comes for which they pay.
import type { Thread } from "./node-worker.ts";
import { glue, hasCrashed, instance, type Shared, shared } from "./wasm.ts";

/** Makes a worker that runs js/worker.ts. */
export type MakeHelper = () => Helper;

/** What such a worker is told to become a helper. */
export interface Join extends Shared {
  /** Helpers are dismissed up to a number. */
  readonly number: number;
}

/** A worker of a browser, or of Node.js. */
export type Helper = Worker | Thread;

/** Whoever is not there by then is not waited for. */
const PATIENCE = 5000;

/** The helpers of this realm's engines: these share the WebAssembly. */
const crew = { engines: new Set<Threads>(), helpers: [] as Helper[], hired: 0, instance: 0 };

/** The threads of one engine. */
export class Threads {
  /** How many share a pass, the engine's own among them. */
  count: number;
  readonly #make: MakeHelper | undefined;
  #isAsked = false;

  constructor(count: number, make: MakeHelper | undefined) {
    // Browsers let memory be shared in pages that are isolated from other origins.
    this.count = make && shared() && globalThis.crossOriginIsolated !== false ? count : 1;
    this.#make = make;
  }

  /** What is to be waited for before the first pass that pays; null where there is nothing. */
  start(): Promise<void> | null {
    if (this.count === 1 || this.#isAsked || !this.#make) return null;
    this.#isAsked = true;
    return this.#hire(this.#make).catch(() => {
      this.count = 1;
      if (crew.engines.delete(this)) leave();
    });
  }

  close(): void {
    if (crew.engines.delete(this)) leave();
  }

  async #hire(make: MakeHelper): Promise<void> {
    // Helpers of an instance that crashed wait in its memory for ever.
    if (crew.instance !== instance()) for (const helper of crew.helpers.splice(0)) helper.terminate();
    crew.instance = instance();
    crew.engines.add(this);
    const memory = shared();
    if (!memory) return;
    // All are made before the first one joins: a Firefox that is automated may make no worker more while one sleeps in WebAssembly.
    const before = crew.helpers.length;
    while (crew.helpers.length < this.count - 1) crew.helpers.push(make());
    const made = crew.helpers.slice(before);
    await Promise.all(made.map((helper) => joined(helper, { ...memory, number: crew.hired++ })));
  }
}

/** The last engine sends the helpers away. They go by themselves: whoever is ended from outside may hold what others wait for. */
function leave(): void {
  if (crew.engines.size > 0) return;
  const helpers = crew.helpers.splice(0);
  if (hasCrashed() || crew.instance !== instance()) for (const helper of helpers) helper.terminate();
  else glue().dismiss(crew.hired);
}

function joined(helper: Helper, join: Join): Promise<void> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("a helper did not come")), PATIENCE);
    const settle = (act: (reason?: unknown) => void) => (reason?: unknown) => {
      clearTimeout(late);
      // A process does not stay for its helpers.
      if ("unref" in helper) helper.unref();
      act(reason);
    };
    const [there, failed] = [settle(resolve as () => void), settle(reject)];
    if ("on" in helper) {
      helper.on("message", there);
      helper.on("error", failed);
    } else {
      helper.onmessage = there;
      helper.onerror = failed;
    }
    helper.postMessage({ join });
  });
}
