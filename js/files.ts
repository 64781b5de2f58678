// Files of tensors: a WebAssembly module of their own, loaded in the engine's realm when the first file comes.
import { AttnError, invalidOption, plainError } from "./errors.ts";
import type { Tensor } from "./tensor.ts";
import init, * as bindings from "./wasm/attnscope_files.js";
import { compile, type WasmSource } from "./wasm.ts";

let ready: Promise<unknown> | undefined;

/** @throws AttnError */
async function files<T>(source: WasmSource | undefined, run: (glue: typeof bindings) => T): Promise<T> {
  if (source === undefined) throw invalidOption("filesWasm", source, "the .wasm of this package that reads files");
  ready ??= compile(source)
    .then((module) => init({ module_or_path: module }))
    .catch((reason: unknown) => {
      ready = undefined;
      throw new AttnError("bad_file", `the reader of files could not be loaded: ${reason}`, { found: String(reason) });
    });
  await ready;
  try {
    return run(bindings);
  } catch (thrown) {
    const plain = plainError(thrown);
    if (plain) throw new AttnError(plain.code, plain.message, plain.details);
    bindings.__wbg_reset_state();
    console.error(thrown);
    throw new AttnError("bad_file", `the reader of files crashed on this one: ${thrown}`, { found: String(thrown) });
  }
}

export function readTensors(
  bytes: Uint8Array,
  format: string | undefined,
  maxBytes: number,
  source: WasmSource | undefined,
): Promise<[string, Tensor][]> {
  return files(source, (glue) => glue.readTensors(bytes, format, maxBytes) as [string, Tensor][]);
}

export function writeTensors(
  entries: [string, Tensor][],
  format: string,
  source: WasmSource | undefined,
): Promise<Uint8Array> {
  return files(source, (glue) => glue.writeTensors(entries, format));
}
