import { Host, type Request } from "./host.ts";
import type { Transport } from "./transport.ts";
import type { WasmSource } from "./wasm.ts";
import type { Watch } from "./watch.ts";

/** The engine in this thread. */
export class Local implements Transport {
  readonly #host: Host;
  #isBusy = false;

  constructor(maxBytes: number, filesWasm?: WasmSource) {
    this.#host = new Host(maxBytes, filesWasm);
  }

  // Carried out before the first await, so that the order is that of the calls; but what a pass calls to tell how far it is may
  // not enter the engine before that pass has left it.
  async call<T>(request: Request, { onProgress, signal }: Watch): Promise<T> {
    if (this.#isBusy) await null;
    signal?.throwIfAborted();
    this.#isBusy = true;
    try {
      return this.#host.handle(request, onProgress && reporting(onProgress)) as T;
    } finally {
      this.#isBusy = false;
      signal?.throwIfAborted();
    }
  }

  close(): void {
    if (this.#isBusy) queueMicrotask(() => this.#host.close());
    else this.#host.close();
  }
}

/** As a listener is called: what it throws is nobody's to catch. */
function reporting(listener: (part: number) => void): (part: number) => void {
  return (part) => {
    try {
      listener(part);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  };
}
