// The engine in a worker: messages in, replies out, numbers as transferables.
import { Backend } from "./backend.ts";
import { type PlainError, plainError } from "./errors.ts";
import { Host } from "./host.ts";
import { nodeThread } from "./node-worker.ts";
import type { Helper } from "./threads.ts";
import type { WorkerMessage, WorkerReply } from "./transport.ts";
import { help, load } from "./wasm.ts";

const scope = (globalThis.process?.getBuiltinModule?.("node:worker_threads")?.parentPort ?? globalThis) as unknown as {
  onmessage: ((event: MessageEvent<WorkerMessage>) => void) | null;
  postMessage(reply: WorkerReply, transfer?: Transferable[]): void;
  close?(): void;
};

let host: Host | undefined;

scope.onmessage = async ({ data }) => {
  if ("start" in data) {
    try {
      await load(data.start.module, false);
      const backend = await Backend.start(data.start, again, (info) => scope.postMessage({ info }));
      host = new Host(backend, data.start.maxBytes, data.start);
      scope.postMessage({ ready: true });
    } catch (thrown) {
      scope.postMessage({ failed: errorOf(thrown) });
    }
    return;
  }
  if ("join" in data) {
    help(data.join, data.join.number, () => scope.postMessage({ ready: true }));
    // Deno's port has none.
    return scope.close ? scope.close() : globalThis.close();
  }
  const { id, request, isWatched } = data;
  try {
    const value = await host?.handle(request, isWatched ? (part) => scope.postMessage({ id, part }) : undefined);
    scope.postMessage({ id, value }, [...movable(value)]);
  } catch (thrown) {
    scope.postMessage({ id, error: errorOf(thrown) });
  }
};

/** A worker of the same script, which helps this one. */
function again(): Helper {
  if (typeof Worker !== "undefined") {
    return new Worker(location.href, { type: isModule() ? "module" : "classic", name: "attnscope helper" });
  }
  // Of a thread of Node.js this is the script.
  return nodeThread(process.argv[1] as string) as Helper;
}

/** Some bundlers make a classic script of this. One that imports what has no address is told so; a module, that it may not. */
function isModule(): boolean {
  try {
    (globalThis as unknown as { importScripts(address: string): void }).importScripts("http://");
  } catch (reason) {
    return reason instanceof TypeError;
  }
  return false;
}

function errorOf(thrown: unknown): PlainError {
  return (
    plainError(thrown) ?? { code: "engine_crashed", message: `the engine's worker failed: ${thrown}`, details: {} }
  );
}

/** The memory behind every typed array in a reply, and pictures. */
function movable(value: unknown, found = new Set<Transferable>()): Set<Transferable> {
  if (ArrayBuffer.isView(value)) found.add(value.buffer as ArrayBuffer);
  else if (globalThis.ImageBitmap && value instanceof ImageBitmap) found.add(value);
  else if (typeof value === "object" && value !== null) {
    for (const inner of Object.values(value)) movable(inner, found);
  }
  return found;
}
