// One way to call the engine, whether it lives in this thread or in a worker.
import { AttnError, type PlainError } from "./errors.ts";
import { Host, type Request } from "./host.ts";
import type { WasmSource } from "./wasm.ts";

export interface Transport {
  /** Requests are carried out in the order of the calls. */
  call<T>(request: Request): Promise<T>;
  close(): void;
}

/** The engine in this thread. */
export class Local implements Transport {
  readonly #host: Host;

  constructor(maxBytes: number, filesWasm?: WasmSource) {
    this.#host = new Host(maxBytes, filesWasm);
  }

  // Carried out before the first await, so that the order is that of the calls.
  async call<T>(request: Request): Promise<T> {
    return this.#host.handle(request) as T;
  }

  close(): void {
    this.#host.close();
  }
}

/** What the page tells its worker first. */
export interface WorkerStart {
  readonly module: WebAssembly.Module;
  readonly maxBytes: number;
  readonly filesWasm: WasmSource | undefined;
}

export type WorkerMessage = { start: WorkerStart } | { id: number; request: Request };

export type WorkerReply =
  | { ready: true }
  | { failed: PlainError }
  | { id: number; value: unknown }
  | { id: number; error: PlainError };

interface Waiting {
  resolve(value: never): void;
  reject(reason: AttnError): void;
}

/** The package's own worker. */
export function ownWorker(): Worker {
  return new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "attnscope" });
}

/** The engine in a worker. */
export class Remote implements Transport {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #next = 0;
  #dead: AttnError | null = null;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  static start(worker: Worker, module: WebAssembly.Module, maxBytes: number, filesWasm?: WasmSource): Promise<Remote> {
    const remote = new Remote(worker);
    return new Promise((resolve, reject) => {
      const fail = (message: string) => {
        const error = new AttnError("engine_crashed", `the engine's worker failed: ${message}`);
        worker.terminate();
        remote.#die(error);
        reject(error);
      };
      worker.onmessage = ({ data }: MessageEvent<WorkerReply>) => {
        if ("ready" in data) resolve(remote);
        else if ("failed" in data) fail(data.failed.message);
        else remote.#settle(data);
      };
      worker.onerror = (event) => fail(event.message ?? "not loaded");
      // An address is said in full: the worker's own is another.
      const files = typeof filesWasm === "string" ? new URL(filesWasm, location.href).href : filesWasm;
      remote.#post({ start: { module, maxBytes, filesWasm: files instanceof URL ? files.href : files } });
    });
  }

  call<T>(request: Request): Promise<T> {
    if (this.#dead) return Promise.reject(this.#dead);
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      this.#waiting.set(id, { resolve, reject });
      this.#post({ id, request });
    });
  }

  close(): void {
    this.#worker.terminate();
    this.#die(new AttnError("disposed", "the engine was destroyed"));
  }

  #post(message: WorkerMessage): void {
    this.#worker.postMessage(message);
  }

  #settle(reply: Extract<WorkerReply, { id: number }>): void {
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if ("error" in reply) {
      const { code, message, details } = reply.error;
      waiting?.reject(new AttnError(code, message, details));
    } else waiting?.resolve(reply.value as never);
  }

  #die(error: AttnError): void {
    this.#dead = error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
