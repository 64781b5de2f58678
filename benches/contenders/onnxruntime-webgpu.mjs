// ONNX Runtime's WebGPU backend, on the same graphs.
import { graphsOn } from "./onnxruntime.mjs";

export { kind, name, variants } from "./onnxruntime.mjs";

// What the backend does not know would run on the CPU, and is no measure of it.
const OPTIONS = { executionProviders: ["webgpu"], extra: { session: { disable_cpu_ep_fallback: "1" } } };

export const start = async (variant, where) =>
  graphsOn(await import("onnxruntime-web/webgpu"), OPTIONS, variant, where);
