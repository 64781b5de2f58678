// One way to call the engine, whether it lives in a worker, as here, or in this thread, as in local.ts.
import { type BackendInfo, type BackendOption, CPU } from "./backend-info.ts";
import { AttnError, invalidOption, notLoaded, type PlainError } from "./errors.ts";
import type { Request } from "./host.ts";
import type { PartSources } from "./parts.ts";
import { copied, isTensor } from "./tensor.ts";
import type { Join } from "./threads.ts";
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

/** What errors call it. */
export const WORKER = "the engine's worker";

interface Call {
  readonly id: number;
  readonly request: Request;
  readonly watch: Watch;
  resolve(value: never): void;
  reject(reason: unknown): void;
}

/** For a script that is slow to come; one that answers nothing by then runs something else. */
const PATIENCE = 60_000;

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

  /**
   * In the first worker that loads: of a script of another origin some browsers throw, and some tell later. `from` is the address of the
   * script, where it is known.
   *
   * @throws AttnError `no_engine`, `gpu_unavailable`
   */
  static async start(
    makers: readonly (() => Worker)[],
    from: string | undefined,
    loading: Promise<WebAssembly.Module>,
    options: HostOptions,
  ): Promise<Remote> {
    const [make, ...others] = makers as [() => Worker];
    try {
      return await Remote.#in(make(), from, loading, options);
    } catch (reason) {
      const isUnloaded = reason instanceof AttnError && reason.details.part === WORKER;
      if (isUnloaded && others.length > 0) return Remote.start(others, from, loading, options);
      throw reason;
    }
  }

  static #in(
    worker: Worker,
    from: string | undefined,
    loading: Promise<WebAssembly.Module>,
    options: HostOptions,
  ): Promise<Remote> {
    const remote = new Remote(worker);
    return new Promise((resolve, reject) => {
      let late: ReturnType<typeof setTimeout> | undefined;
      let isReady = false;
      const stop = (error: AttnError) => {
        clearTimeout(late);
        worker.terminate();
        remote.#die(error);
        reject(error);
      };
      const unloaded = (reason: string) => stop(notLoaded(WORKER, from, reason));
      worker.onmessage = ({ data: said }: MessageEvent<unknown>) => {
        // Another script may say anything.
        const data: WorkerReply = Object(said);
        if ("ready" in data) {
          clearTimeout(late);
          isReady = true;
          remote.#hold();
          resolve(remote);
        } else if ("failed" in data) stop(typed(data.failed));
        else if ("info" in data) remote.info = data.info;
        else remote.#hear(data);
      };
      worker.onerror = ({ message }) => {
        if (isReady) stop(new AttnError("engine_crashed", `${WORKER} failed: ${message}`));
        else unloaded(message ?? "its script is not there, or a policy forbids it");
      };
      const start = (module: WebAssembly.Module) => {
        remote.#post({ start: { ...options, module } });
        late = setTimeout(unloaded, PATIENCE, "it does not answer, as attnscope/worker does");
      };
      loading.then(start).catch(stop);
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
        call.reject(invalidOption("options", String(reason), "what can be sent to a worker"));
      }
    }
    this.#hold();
  }

  /** A process of Node.js stays for what it waits for, and not for an idle worker. */
  #hold(): void {
    const worker: Worker & { ref?(): void; unref?(): void } = this.#worker;
    if (this.#sent.size > 0) worker.ref?.();
    else worker.unref?.();
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

/** The request with copies of a pass's inputs, for later. */
export function withCopies(request: Request): Request {
  if (!("inputs" in request)) return request;
  const inputs = Object.entries(request.inputs).map(([name, value]) => [name, isTensor(value) ? copied(value) : value]);
  return { ...request, inputs: Object.fromEntries(inputs) };
}

/**
 * The memory that nobody here needs any more: that of a file's bytes and of a pass's inputs, which are copies of what the caller gave, and
 * what it gave up.
 */
function movedWith(request: Request): Transferable[] {
  if (request.op === "readTensors") return [request.bytes.buffer as ArrayBuffer];
  if (!("inputs" in request)) return [];
  const copies = Object.values(request.inputs).filter(isTensor);
  const spares = "spares" in request ? (request.spares ?? []) : [];
  // An array may have been given up twice; what was moved has no length.
  const given = new Set(spares.filter(({ length }) => length > 0).map(({ buffer }) => buffer));
  return [...copies.map(({ data }) => data.buffer), ...given] as ArrayBuffer[];
}
