// One way to call the engine, whether it lives in a worker, as here, or in this thread, as in local.ts.
import { type BackendInfo, type BackendOption, CPU } from "./backend-info.ts";
import { AttnError, type PlainError } from "./errors.ts";
import type { Request } from "./host.ts";
import type { PartSources } from "./parts.ts";
import { copied, isTensor } from "./tensor.ts";
import type { Join } from "./threads.ts";
import type { WasmSource } from "./wasm.ts";
import type { Watch } from "./watch.ts";

export interface Transport {
  readonly info: BackendInfo;
  /** Requests are carried out in the order of the calls. A pass's inputs are lent: they may change when the call returns. */
  call<T>(request: Request, watch: Watch): Promise<T>;
  close(): void;
}

/** What the engine's side is made of. */
export interface HostOptions extends PartSources {
  readonly backend: BackendOption;
  /** The address of the script for graphics processors. */
  readonly gpu: string | undefined;
  readonly threads: number;
  readonly maxBytes: number;
}

/** What the page tells its worker first. */
export interface WorkerStart extends HostOptions {
  readonly module: WebAssembly.Module;
}

export type WorkerMessage =
  | { start: WorkerStart }
  | { join: Join }
  | { id: number; request: Request; isWatched: boolean };

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
  info = CPU;
  /** What was not sent yet. */
  #queue: Call[] = [];
  /** What was sent and not answered yet. */
  readonly #sent = new Map<number, Call>();
  #next = 0;
  #dead: AttnError | null = null;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  /** @throws AttnError `gpu_unavailable`, and what stopped the WebAssembly from loading */
  static start(worker: Worker, loading: Promise<WebAssembly.Module>, options: HostOptions): Promise<Remote> {
    const remote = new Remote(worker);
    return new Promise((resolve, reject) => {
      const stop = (reason: unknown) => {
        worker.terminate();
        reject(reason);
      };
      const fail = (error: AttnError) => {
        remote.#die(error);
        stop(error);
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
      const [analysisWasm, filesWasm] = [options.analysisWasm, options.filesWasm].map(inFull);
      loading.then((module) => remote.#post({ start: { ...options, module, analysisWasm, filesWasm } }), stop);
    });
  }

  call<T>(request: Request, watch: Watch): Promise<T> {
    const { signal } = watch;
    if (this.#dead) return Promise.reject(this.#dead);
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise<T>((resolve, reject) => {
      const call = { id: this.#next++, request: withCopies(request), watch, resolve, reject };
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
        const { id, request, watch } = call;
        this.#post({ id, request, isWatched: watch.onProgress !== undefined }, movedWith(request));
      } catch (reason) {
        this.#sent.delete(call.id);
        call.reject(reason);
      }
    }
  }

  #post(message: WorkerMessage, transfer: Transferable[] = []): void {
    this.#worker.postMessage(message, transfer);
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

/** An address said in full, for the worker's own is another; bytes and modules as they are. */
function inFull(source: WasmSource | undefined): WasmSource | undefined {
  return typeof source === "string" || source instanceof URL ? new URL(source, location.href).href : source;
}

/** The request with copies of a pass's inputs, for later. */
export function withCopies(request: Request): Request {
  if (!("inputs" in request)) return request;
  const inputs = Object.entries(request.inputs).map(([name, value]) => [name, isTensor(value) ? copied(value) : value]);
  return { ...request, inputs: Object.fromEntries(inputs) };
}

/** The memory that nobody here needs any more: that of a pass's inputs, which are copies of what the caller gave, and what it gave up. */
function movedWith(request: Request): Transferable[] {
  if (!("inputs" in request)) return [];
  const copies = Object.values(request.inputs).filter(isTensor);
  const spares = "spares" in request ? (request.spares ?? []) : [];
  // An array may have been given up twice; what was moved has no length.
  const given = new Set(spares.filter(({ length }) => length > 0).map(({ buffer }) => buffer));
  return [...copies.map(({ data }) => data.buffer), ...given] as ArrayBuffer[];
}
