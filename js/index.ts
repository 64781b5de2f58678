// What `import ... from "attnscope"` gives.
export {
  type AttentionResult,
  createEngine,
  type Engine,
  type EngineInfo,
  type EngineOptions,
  type MaterializedMask,
  type ScaledDotProductOptions,
} from "./engine.ts";
export { AttnError, type ErrorDetails } from "./errors.ts";
export type {
  Activation,
  EmptyRow,
  ErrorCode,
  Explanation,
  FileFormat,
  MaskAxes,
  MaskSize,
  Operation,
  RemaskOptions,
  Stage,
  Term,
  TorchConvention,
} from "./generated.ts";
export type { Generator } from "./generator.ts";
export { Mask, type MaskMatrix, mask } from "./mask.ts";
export type {
  AttentionForwardOptions,
  ForwardOptions,
  ForwardResult,
  MultiHeadAttention,
  MultiHeadAttentionOptions,
  StackResult,
  StateDict,
  Transformer,
  TransformerBlock,
  TransformerOptions,
} from "./modules.ts";
export { type Place, Selection } from "./selection.ts";
export { type NestedArray, type Tensor, type TensorLike, tensor } from "./tensor.ts";
export { type Remasked, Trace, type TraceJson } from "./trace.ts";
