// What `import ... from "attnscope"` gives.
export type { Analysis, LabelOptions, OffsetOption, Tokens } from "./analysis.ts";
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
export { type Place, Selection } from "./selection.ts";
export { type NestedArray, type Tensor, type TensorLike, tensor } from "./tensor.ts";
export { type Remasked, type RemaskOptions, Trace, type TraceJson } from "./trace.ts";
export type { WatchOptions } from "./watch.ts";
