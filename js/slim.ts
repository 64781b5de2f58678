// What `import ... from "attnscope/slim"` gives: all of the package but the addresses of its parts, which the caller brings. So a
// bundler emits nothing beside the script.
import { type Engine, type EngineOptions, engineOf } from "./engine.ts";
import type { WasmSource } from "./wasm.ts";

export type { Analysis, LabelOptions, OffsetOption, Tokens } from "./analysis.ts";
export type { BackendOption } from "./backend-info.ts";
export type { DeviceTensor } from "./device.ts";
export type {
  AttentionResult,
  Engine,
  EngineInfo,
  EngineOptions,
  LazyAttentionResult,
  MaterializedMask,
  ScaledDotProductOptions,
} from "./engine.ts";
export { AttnError, type ErrorCodes, type ErrorDetails } from "./errors.ts";
export type {
  Activation,
  CellChange,
  EmptyRow,
  ErrorCode,
  Explanation,
  FileFormat,
  HeadLabel,
  HeadPattern,
  Init,
  MaskAxes,
  MaskEffect,
  MaskSize,
  Moved,
  NormKind,
  Operation,
  PatternScores,
  Positions,
  Stage,
  Term,
  TorchConvention,
} from "./generated.ts";
export type { Generator } from "./generator.ts";
export { Mask, type MaskMatrix, mask } from "./mask.ts";
export type {
  AttentionForwardOptions,
  Decoder,
  DecoderBlock,
  DecoderBlockResult,
  DecoderForwardOptions,
  DecoderResult,
  ForwardOptions,
  ForwardResult,
  LoadOptions,
  MultiHeadAttention,
  MultiHeadAttentionOptions,
  StackResult,
  StateDict,
  Transformer,
  TransformerBlock,
  TransformerOptions,
} from "./modules.ts";
export type { AxisOption, LayerNormOptions, Ops, RmsNormOptions, RotaryOptions } from "./ops.ts";
export type { Reusable, ReuseOptions } from "./reuse.ts";
export { type Place, Selection } from "./selection.ts";
export { type NestedArray, type Tensor, type TensorLike, tensor } from "./tensor.ts";
export {
  type Asked,
  type LayerOption,
  type LazyOption,
  type LazyResult,
  type Passed,
  type Remasked,
  type RemaskOptions,
  Trace,
  type TraceJson,
} from "./trace.ts";
export type { WasmSource } from "./wasm.ts";
export type { WatchOptions } from "./watch.ts";

/** How an engine is made of parts that the caller brings. */
export interface SlimEngineOptions extends EngineOptions {
  /**
   * The engine's WebAssembly, `attnscope/engine.wasm`, or `attnscope/engine-relaxed.wasm` where there are relaxed SIMD and shared memory: an
   * address, its bytes, or a compiled module. In a worker of an isolated page the second has threads.
   */
  wasm: WasmSource;
  /** `attnscope/analysis.wasm`, for `engine.analysis` and `engine.ops`. */
  analysisWasm?: WasmSource | undefined;
  /** `attnscope/files.wasm`, for `readTensors`, `writeTensors`, and `loadStateDict` of other names than the module's own. */
  filesWasm?: WasmSource | undefined;
  /** A function that makes a worker which runs `attnscope/worker`; default false, the engine in this thread. */
  worker?: false | (() => Worker) | undefined;
}

/**
 * An engine of parts that the caller brings, ready to compute.
 *
 * ```ts
 * import { readFile } from "node:fs/promises";
 * import { createRequire } from "node:module";
 * import { createEngine } from "attnscope/slim";
 *
 * const { resolve } = createRequire(import.meta.url);
 * const engine = await createEngine({ wasm: await readFile(resolve("attnscope/engine.wasm")) });
 * console.log(engine.info.kernel); // simd128
 * engine.destroy();
 * ```
 *
 * @throws AttnError `invalid_option`, `no_engine` where a part of the package does not load, `gpu_unavailable`
 */
export function createEngine(options: SlimEngineOptions): Promise<Engine> {
  return engineOf(options ?? {}, null);
}
