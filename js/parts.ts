// WebAssembly beside the engine's: modules of their own, each loaded in the engine's realm when it is first needed.
import { AttnError, invalidOption, notLoaded, plainError } from "./errors.ts";
import type { ErrorCode } from "./generated.ts";
import initAnalysis, * as analysisGlue from "./wasm/attnscope_analysis.js";
import initFiles, * as filesGlue from "./wasm/attnscope_files.js";
import { addressOf, compile, type WasmSource } from "./wasm.ts";

/** Where they come from, by the options that say it. */
export interface PartSources {
  readonly analysisWasm: WasmSource | undefined;
  readonly filesWasm: WasmSource | undefined;
}

interface Glue {
  __wbg_reset_state(): void;
}

type Init = (options: { module_or_path: WebAssembly.Module }) => Promise<unknown>;

/** What errors say of a part. */
interface Naming {
  readonly option: keyof PartSources;
  readonly part: string;
  readonly name: string;
  readonly crashed: ErrorCode;
}

class Part<G extends Glue> {
  readonly #init: Init;
  readonly #glue: G;
  readonly #naming: Naming;
  #ready: Promise<unknown> | undefined;

  constructor(init: Init, glue: G, naming: Naming) {
    this.#init = init;
    this.#glue = glue;
    this.#naming = naming;
  }

  /** @throws AttnError */
  async run<T>(sources: PartSources, run: (glue: G) => T): Promise<T> {
    const { option, part, name, crashed } = this.#naming;
    const source = sources[option];
    if (source === undefined) throw invalidOption(option, source, `the .wasm of this package that is ${name}`);
    this.#ready ??= compile(source, part)
      .then((module) => this.#init({ module_or_path: module }))
      .catch((reason: unknown) => {
        this.#ready = undefined;
        throw notLoaded(name, addressOf(source), reason);
      });
    await this.#ready;
    try {
      return run(this.#glue);
    } catch (thrown) {
      const plain = plainError(thrown);
      if (plain) throw new AttnError(plain.code, plain.message, plain.details);
      this.#glue.__wbg_reset_state();
      console.error(thrown);
      throw new AttnError(crashed, `${name} crashed on this one: ${thrown}`, { found: String(thrown) });
    }
  }
}

/** What is asked of tensors that are at hand: `engine.analysis`, and the parts of attention by themselves. */
export const analysis = new Part(initAnalysis, analysisGlue, {
  option: "analysisWasm",
  part: "analysis",
  name: "the analysis",
  crashed: "engine_crashed",
});

/** What reads and writes files. */
export const files = new Part(initFiles, filesGlue, {
  option: "filesWasm",
  part: "files",
  name: "the reader of files",
  crashed: "bad_file",
});
