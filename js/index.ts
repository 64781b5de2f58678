// What `import ... from "attnscope"` gives: attnscope/slim, with the parts that lie beside this file.
import { beside } from "./beside.ts";
import { type Engine, type EngineOptions, engineOf } from "./engine.ts";

export * from "./slim.ts";

/**
 * An engine, ready to compute.
 *
 * ```ts
 * const engine = await createEngine();
 * const mha = engine.multiHeadAttention({ dModel: 4, nHeads: 2, seed: 42 });
 * ```
 *
 * @throws AttnError `invalid_option`, `gpu_unavailable`
 */
export function createEngine(options: EngineOptions = {}): Promise<Engine> {
  return engineOf(options, beside);
}
