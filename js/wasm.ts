// The only importer of the generated glue. The engine's WebAssembly is instantiated once a realm, and again after a crash.
import { isAddress } from "./address.ts";
import { AttnError, notLoaded, plainError, refusedOption } from "./errors.ts";
import { BUILD } from "./generated.ts";
import { kindOf } from "./shown.ts";
import init, * as bindings from "./wasm/attnscope.js";

/** @internal */
export type Glue = typeof bindings;

/** Where the engine's WebAssembly comes from: an address, its bytes, or a compiled module. */
export type WasmSource = string | URL | BufferSource | WebAssembly.Module;

let loading: Promise<WebAssembly.Module> | undefined;
let ready: WebAssembly.Module | undefined;
let instances = 0;
let crashed = false;

/**
 * Makes the glue usable in this realm and gives the compiled module, which another realm can use too. `isGiven` says that the caller
 * chose it.
 *
 * @throws AttnError `no_engine`, `invalid_option`
 */
export async function load(source: WasmSource, isGiven: boolean): Promise<WebAssembly.Module> {
  loading ??= start(source, isGiven).catch((reason: unknown) => {
    loading = undefined;
    throw reason;
  });
  const module = await loading;
  if (crashed) {
    bindings.__wbg_reset_state();
    crashed = false;
    instances++;
  }
  return module;
}

async function start(source: WasmSource, isGiven: boolean): Promise<WebAssembly.Module> {
  try {
    const module = await compile(source, "engine");
    await init({ module_or_path: module });
    ready = module;
    return module;
  } catch (reason) {
    if (isGiven && !isAddress(source)) throw refusedOption("wasm", String(reason), WASM);
    throw notLoaded("the engine", addressOf(source), reason);
  }
}

/** What an option of WebAssembly may be. */
export const WASM = "a .wasm of this package: an address, bytes or a module";

export function addressOf(source: WasmSource): string | undefined {
  return isAddress(source) ? String(source) : undefined;
}

/**
 * A part of this package of this build: the glue cannot take another module in place of the first that it was given. An address is one said
 * in full.
 *
 * @internal
 */
export async function compile(source: WasmSource, part: string): Promise<WebAssembly.Module> {
  const module = await compiled(source);
  const isIt = WebAssembly.Module.customSections(module, `attnscope ${part} ${BUILD}`).length > 0;
  if (!isIt) throw new Error(`it is not the ${part} of build ${BUILD}`);
  return module;
}

async function compiled(source: WasmSource): Promise<WebAssembly.Module> {
  if (!isAddress(source)) return isModule(source) ? source : WebAssembly.compile(source);
  const url = new URL(source);
  if (url.protocol === "file:" && typeof process !== "undefined") {
    const { readFile } = process.getBuiltinModule("node:fs/promises");
    return WebAssembly.compile(new Uint8Array(await readFile(url)));
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`status ${response.status} ${response.statusText}`);
  // Some servers do not know WebAssembly's media type, without which it cannot be compiled while it arrives.
  return response.headers.get("Content-Type")?.startsWith("application/wasm")
    ? WebAssembly.compileStreaming(response)
    : WebAssembly.compile(await response.arrayBuffer());
}

/** Of whichever realm. */
export function isModule(source: unknown): source is WebAssembly.Module {
  return kindOf(source) === "WebAssembly.Module";
}

/** What another thread needs to compute in the same memory. */
export interface Shared {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
}

/** Of an engine with threads also what frees a thread's own memory. */
interface Exports {
  readonly memory: WebAssembly.Memory;
  __wbindgen_thread_destroy?(): void;
}

/** This realm's WebAssembly and its memory; null where that is not shared. */
export function shared(): Shared | null {
  const module = ready;
  if (!module || !WebAssembly.Module.imports(module).some(({ kind }) => kind === "memory")) return null;
  return { module, memory: bindings.initSync({ module }).memory };
}

/** Helps the engine in another thread, whose memory this is, until this helper is dismissed. `tell` is called before. */
export function help({ module, memory }: Shared, number: number, tell: () => void): void {
  const exports: Exports = bindings.initSync({ module, memory });
  tell();
  try {
    bindings.help(number);
    exports.__wbindgen_thread_destroy?.();
  } catch {
    bindings.helperDied();
  }
}

/** The glue; `no_engine` before any engine was created. @internal */
export function glue(): Glue {
  if (!ready) throw new AttnError("no_engine", "no engine was created yet: await createEngine() first");
  return bindings;
}

/** Which of the realm's instances is in use; an object of an earlier one is lost. */
export function instance(): number {
  return instances;
}

export function hasCrashed(): boolean {
  return crashed;
}

/** Runs something of the glue; an engine's error becomes an AttnError, anything else is a crash. */
export function throwTyped<T>(run: () => T): T {
  try {
    return run();
  } catch (thrown) {
    if (thrown instanceof AttnError) throw thrown;
    const plain = plainError(thrown);
    if (plain) throw new AttnError(plain.code, plain.message, plain.details);
    crashed = true;
    // A panic traps without a word: where it happened is in the stack alone.
    console.error(thrown);
    throw new AttnError("engine_crashed", `the engine crashed (${thrown}); create a new one`);
  }
}
