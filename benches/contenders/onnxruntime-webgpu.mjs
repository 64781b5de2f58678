// ONNX Runtime's WebGPU backend, on the same graphs.
import { graphsOn } from "./onnxruntime.mjs";

export { kind, name, variants } from "./onnxruntime.mjs";

export const start = async (variant, where) =>
  graphsOn("webgpu", await import("onnxruntime-web/webgpu"), variant, where);
