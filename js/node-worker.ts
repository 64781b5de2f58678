// Threads of Node.js, which has no workers of the web.

/** What of a thread is used here. */
export interface Thread {
  postMessage(message: unknown): void;
  terminate(): unknown;
  ref(): void;
  unref(): void;
  on(event: "message" | "error", listener: (reason: unknown) => void): unknown;
}

/** A thread of a script of this package; undefined where there is no Node.js. */
export function nodeThread(script: URL | string): Thread | undefined {
  const threads = threadsOfNode();
  // What the process was started with may be for its own script alone.
  return threads && new threads.Worker(script, { execArgv: [] });
}

/** The way to make one in the manner of a browser's worker. */
export function nodeWorkers(script: URL): (() => Worker)[] | undefined {
  return threadsOfNode() && [() => asWorker(nodeThread(script) as Thread)];
}

const threadsOfNode = () => globalThis.process?.getBuiltinModule?.("node:worker_threads");

function asWorker(thread: Thread): Worker {
  const worker = {
    onmessage(_: { data: unknown }) {},
    onerror(_: { message: string }) {},
    postMessage: thread.postMessage.bind(thread),
    terminate: () => void thread.terminate(),
    ref: () => thread.ref(),
    unref: () => thread.unref(),
  };
  thread.on("message", (data) => worker.onmessage({ data }));
  thread.on("error", (reason) => worker.onerror({ message: String(reason) }));
  return worker as unknown as Worker;
}
