// What `import ... from "attnscope"` gives: attnscope/slim, with the parts that lie beside this file.
import { beside } from "./beside.ts";
import { type Engine, type EngineOptions, engineOf } from "./engine.ts";

export * from "./slim.ts";

/**
 * An engine, ready to compute.
 *
 * ```ts
 * const engine = await createEngine();
 * const { output } = await engine.scaledDotProductAttention([[1, 0]], [[1, 0]], [[3, 4]]);
 * console.log(output.data); // Float32Array(2) [ 3, 4 ]
 * engine.destroy();
 * ```
 *
 * @throws AttnError `invalid_option`, `no_engine` where a part of the package does not load, `gpu_unavailable`
 */
export function createEngine(options: EngineOptions = {}): Promise<Engine> {
  return engineOf(options, beside);
}
