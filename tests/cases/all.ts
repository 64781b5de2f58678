// Every conformance case, for Node and for browsers.
import type * as Attnscope from "attnscope";
import { type CaseJson, type Report, readSafetensors, runGroups } from "./golden.ts";
import { type ModelJson, runModels } from "./models.ts";
import { type OnnxCase, runOnnx } from "./onnx.ts";
import { torchGroups } from "./torch.ts";

/** A manifest and its tensors. */
export interface File<Manifest> {
  manifest: Manifest;
  tensors: ArrayBuffer;
}

export interface Files {
  golden: File<{ cases: CaseJson[] }>;
  onnx: File<{ cases: OnnxCase[] }>;
  arch: File<{ archs: ModelJson[] }>;
}

/** What must pass: every float32 case, by file. */
export const EVERY_CASE = {
  golden: {
    seedA_mha: 21,
    seedA_block: 7,
    seedB_sdpa: 8,
    seedB_mha: 12,
    torch_mha: 22,
    torch_sdpa: 12,
    torch_encoder: 7,
    torch_decoder: 1,
    edge_sdpa: 18,
    edge_op: 7,
  },
  onnx: { Attention: 66, LayerNormalization: 17, RMSNormalization: 14, RotaryEmbedding: 6, Gelu: 4, Softmax: 6 },
  arch: {
    bert: 1,
    roberta: 1,
    distilbert: 1,
    gpt2: 1,
    gpt_neox: 1,
    llama_gqa: 1,
    qwen2: 1,
    qwen3: 1,
    phi3: 1,
    t5: 1,
    vit: 1,
  },
};

export async function runAll(
  attnscope: typeof Attnscope,
  engine: Attnscope.Engine,
  { golden, onnx, arch }: Files,
): Promise<Record<keyof Files, Report>> {
  const subject = { attnscope, engine };
  return {
    golden: await runGroups(golden.manifest.cases, readSafetensors(golden.tensors), torchGroups(subject)),
    onnx: await runOnnx(subject, onnx.manifest.cases, readSafetensors(onnx.tensors)),
    arch: await runModels(subject, arch.manifest.archs, readSafetensors(arch.tensors)),
  };
}
