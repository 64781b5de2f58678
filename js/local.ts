import { Backend } from "./backend.ts";
import type { BackendInfo } from "./backend-info.ts";
import { Host, type Request } from "./host.ts";
import { moved } from "./reuse.ts";
import type { MakeHelper } from "./threads.ts";
import { type HostOptions, type Transport, withCopies } from "./transport.ts";
import type { Watch } from "./watch.ts";

/** The engine in this thread. */
export class Local implements Transport {
  readonly #backend: Backend;
  readonly #host: Host;
  #isBusy = false;

  private constructor(backend: Backend, options: HostOptions) {
    this.#backend = backend;
    this.#host = new Host(backend, options.maxBytes, options, moved);
  }

  /** @throws AttnError `gpu_unavailable` */
  static async start(options: HostOptions, make: MakeHelper | undefined): Promise<Local> {
    return new Local(await Backend.start(options, make, () => {}), options);
  }

  get info(): BackendInfo {
    return this.#backend.info;
  }

  // Carried out before the first await, so that the order is that of the calls; but what a pass calls to tell how far it is may
  // not enter the engine before that pass has left it.
  async call<T>(request: Request, { onProgress, signal }: Watch): Promise<T> {
    const isLater = this.#isBusy || this.#host.isBusy;
    const held = isLater ? withCopies(request) : request;
    if (this.#isBusy) await null;
    signal?.throwIfAborted();
    this.#isBusy = true;
    try {
      const value = this.#host.handle(held, onProgress && reporting(onProgress));
      return (value instanceof Promise && signal ? unlessAborted(value, signal) : value) as T;
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

/** What comes later, unless the signal comes first. */
function unlessAborted(value: Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort);
    value.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
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
