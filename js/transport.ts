// One way to call the engine, whether it lives in this thread or in a worker.
import { Backend, type BackendInfo, type BackendOption } from "./backend.ts";
import { AttnError, type PlainError } from "./errors.ts";
import { Host, type Request } from "./host.ts";
import type { WasmSource } from "./wasm.ts";
import type { Watch } from "./watch.ts";

export interface Transport {
  readonly info: BackendInfo;
  /** Requests are carried out in the order of the calls. */
  call<T>(request: Request, watch: Watch): Promise<T>;
  close(): void;
}

/** The engine in this thread. */
export class Local implements Transport {
  readonly #backend: Backend;
  readonly #host: Host;
  #isBusy = false;

  private constructor(backend: Backend, { maxBytes, filesWasm }: HostOptions) {
    this.#backend = backend;
    this.#host = new Host(backend, maxBytes, filesWasm);
  }

  /** @throws AttnError `gpu_unavailable` */
  static async start(options: HostOptions): Promise<Local> {
    return new Local(await Backend.start(options.backend, () => {}), options);
  }

  get info(): BackendInfo {
    return this.#backend.info;
  }

  // Carried out before the first await, so that the order is that of the calls; but what a pass calls to tell how far it is may
  // not enter the engine before that pass has left it.
  async call<T>(request: Request, { onProgress, signal }: Watch): Promise<T> {
    if (this.#isBusy) await null;
    signal?.throwIfAborted();
    this.#isBusy = true;
    try {
      const value = this.#host.handle(request, onProgress && reporting(onProgress));
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

export interface HostOptions {
  readonly backend: BackendOption;
  readonly maxBytes: number;
  readonly filesWasm: WasmSource | undefined;
}

/** What the page tells its worker first. */
export interface WorkerStart extends HostOptions {
  readonly module: WebAssembly.Module;
}

export type WorkerMessage = { start: WorkerStart } | { id: number; request: Request; isWatched: boolean };

export type WorkerReply =
  | { ready: true }
  | { failed: PlainError }
  | { info: BackendInfo }
  | { id: number; part: number }
  | { id: number; value: unknown }
  | { id: number; error: PlainError };

function typed({ code, message, details }: PlainError): AttnError {
  return new AttnError(code, message, details);
}

interface Call {
  readonly id: number;
  readonly request: Request;
  readonly watch: Watch;
  resolve(value: never): void;
  reject(reason: unknown): void;
}

/** The engine in a worker. */
export class Remote implements Transport {
  readonly #worker: Worker;
  info: BackendInfo = { backend: "cpu", adapter: null };
  /** What was not sent yet. */
  #queue: Call[] = [];
  /** What was sent and not answered yet. */
  readonly #sent = new Map<number, Call>();
  #next = 0;
  #dead: AttnError | null = null;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  /** @throws AttnError `gpu_unavailable` */
  static start(module: WebAssembly.Module, options: HostOptions): Promise<Remote> {
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "attnscope" });
    const remote = new Remote(worker);
    return new Promise((resolve, reject) => {
      const fail = (error: AttnError) => {
        worker.terminate();
        remote.#die(error);
        reject(error);
      };
      worker.onmessage = ({ data }: MessageEvent<WorkerReply>) => {
        if ("ready" in data) resolve(remote);
        else if ("failed" in data) fail(typed(data.failed));
        else if ("info" in data) remote.info = data.info;
        else remote.#hear(data);
      };
      worker.onerror = ({ message = "not loaded" }) => {
        fail(new AttnError("engine_crashed", `the engine's worker failed: ${message}`));
      };
      // An address is said in full: the worker's own is another.
      const { filesWasm } = options;
      const files = typeof filesWasm === "string" ? new URL(filesWasm, location.href).href : filesWasm;
      remote.#post({ start: { ...options, module, filesWasm: files instanceof URL ? files.href : files } });
    });
  }

  call<T>(request: Request, watch: Watch): Promise<T> {
    const { signal } = watch;
    if (this.#dead) return Promise.reject(this.#dead);
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise<T>((resolve, reject) => {
      const call = { id: this.#next++, request, watch, resolve, reject };
      const abort = () => {
        this.#queue = this.#queue.filter((queued) => queued !== call);
        reject(signal?.reason);
        this.#flush();
      };
      if (signal) {
        const settled = (settle: (value: never) => void) => (value: never) => {
          signal.removeEventListener("abort", abort);
          settle(value);
        };
        signal.addEventListener("abort", abort);
        Object.assign(call, { resolve: settled(resolve), reject: settled(reject) });
      }
      this.#queue.push(call);
      this.#flush();
    });
  }

  close(): void {
    this.#worker.terminate();
    this.#die(new AttnError("disposed", "the engine was destroyed"));
  }

  // The worker hears nothing while it computes: what can be given up is sent when nothing is before it.
  #flush(): void {
    for (let call = this.#queue[0]; call && !(call.watch.signal && this.#sent.size > 0); call = this.#queue[0]) {
      this.#queue.shift();
      this.#sent.set(call.id, call);
      try {
        this.#post({ id: call.id, request: call.request, isWatched: call.watch.onProgress !== undefined });
      } catch (reason) {
        this.#sent.delete(call.id);
        call.reject(reason);
      }
    }
  }

  #post(message: WorkerMessage): void {
    this.#worker.postMessage(message);
  }

  #hear(reply: Extract<WorkerReply, { id: number }>): void {
    const call = this.#sent.get(reply.id);
    if ("part" in reply) {
      if (!call?.watch.signal?.aborted) call?.watch.onProgress?.(reply.part);
      return;
    }
    this.#sent.delete(reply.id);
    if ("error" in reply) call?.reject(typed(reply.error));
    else call?.resolve(reply.value as never);
    this.#flush();
  }

  #die(error: AttnError): void {
    this.#dead = error;
    for (const { reject } of [...this.#sent.values(), ...this.#queue]) reject(error);
    this.#sent.clear();
    this.#queue = [];
  }
}
