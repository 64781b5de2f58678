// ONNX's operators as its own backend tests have them. Cases in half precision are left out.
import type * as Attnscope from "attnscope";
import {
  both,
  difference,
  type Numbered,
  numbersOf,
  type Report,
  type Subject,
  type Tensor,
  tally,
  tensorOf,
} from "./golden.ts";

export interface OnnxCase {
  id: string;
  op: string;
  attrs: Record<string, number | string>;
  dtypes: string[];
  stored: boolean;
  err?: Record<string, number>;
  inputs: Record<string, string>;
  outputs: Record<string, string>;
}

export async function runOnnx(subject: Subject, cases: readonly OnnxCase[], tensors: Numbered): Promise<Report> {
  const report: Report = { passed: {}, failed: [] };
  for (const golden of cases) {
    if (!golden.stored || golden.dtypes.some((dtype) => dtype.endsWith("float16"))) continue;
    let problem: string | null = null;
    try {
      const ours = await compute(subject, golden, tensors);
      for (const [name, key] of Object.entries(golden.outputs)) {
        if (name === "Mean" || name === "InvStdDev") continue;
        const expected = numbersOf(tensors, key);
        const bound = Math.max(8 * (golden.err?.[name] ?? 0), 2e-6);
        problem ??= difference(name, ours[name], expected, expected.data, bound);
      }
    } catch (reason) {
      problem = String(reason);
    }
    tally(report, golden.op, problem && `${golden.id}: ${problem}`);
  }
  return report;
}

async function compute(subject: Subject, golden: OnnxCase, tensors: Numbered): Promise<Record<string, Tensor>> {
  const { ops } = subject.engine;
  const { attrs, inputs } = golden;
  const input = (name: string) => tensorOf(tensors, inputs[name]);
  const optional = (name: string) => (inputs[name] === undefined ? undefined : input(name));
  const axis = (attrs.axis as number | undefined) ?? -1;
  const eps = (attrs.epsilon as number | undefined) ?? 1e-5;
  switch (golden.op) {
    case "Attention":
      return attention(subject, golden, tensors);
    case "LayerNormalization": {
      const [weight, bias] = [optional("Scale"), optional("B")];
      return { Y: await ops.layerNorm(input("X"), { ...(weight && { weight }), ...(bias && { bias }), eps, axis }) };
    }
    case "RMSNormalization": {
      const weight = optional("scale");
      return { Y: await ops.rmsNorm(input("X"), { ...(weight && { weight }), eps, axis }) };
    }
    case "RotaryEmbedding": {
      const positions = optional("position_ids");
      const cache = (name: string) => (positions ? rowsAt(input(name), positions) : input(name));
      const heads = attrs.num_heads as number | undefined;
      const x = heads ? splitHeads(input("X"), heads) : input("X");
      const options = { cos: cache("cos_cache"), sin: cache("sin_cache"), interleaved: attrs.interleaved === 1 };
      const turned = await ops.rotary(x, options);
      return { Y: heads ? joinHeads(turned) : turned };
    }
    case "Gelu":
      return { Y: await ops.gelu(input("X"), { approximate: attrs.approximate === "tanh" ? "tanh" : "none" }) };
    case "Softmax":
      return { output: await ops.softmax(input("input"), { axis }) };
    default:
      throw new Error(`unknown operator ${golden.op}`);
  }
}

async function attention(
  { attnscope, engine }: Subject,
  { attrs, inputs }: OnnxCase,
  tensors: Numbered,
): Promise<Record<string, Tensor>> {
  const { mask } = attnscope;
  const attribute = (name: string) => attrs[name] as number | undefined;
  const input = (name: string) => tensorOf(tensors, inputs[name]);
  const heads = (name: string, heads: number | undefined) => (heads ? splitHeads(input(name), heads) : input(name));
  const [qHeads, kvHeads] = [attribute("q_num_heads"), attribute("kv_num_heads")];

  let masked: Attnscope.Mask | null = null;
  if (inputs.attn_mask !== undefined) {
    const isFloat = numbersOf(tensors, inputs.attn_mask).isFloat;
    masked = isFloat ? mask.additive(input("attn_mask")) : mask.fromKeep(input("attn_mask"));
  }
  const [left, right] = [attribute("left_window_size"), attribute("right_window_size")];
  const side = (size: number | undefined) => (size === undefined || size < 0 ? 2 ** 30 : size);
  const window =
    left === undefined && right === undefined ? null : mask.slidingWindow({ left: side(left), right: side(right) });
  const lengths = inputs.nonpad_kv_seqlen === undefined ? null : [...input("nonpad_kv_seqlen").data];
  const hasPast = inputs.past_key !== undefined;
  const result = await engine.scaledDotProductAttention(heads("Q", qHeads), heads("K", kvHeads), heads("V", kvHeads), {
    mask: both(window, masked),
    isCausal: attribute("is_causal") === 1,
    scale: attribute("scale") ?? null,
    softcap: attribute("softcap") ?? 0,
    maskFill: -Infinity,
    emptyRow: "zero",
    kvLengths: lengths,
    pastKey: hasPast ? input("past_key") : null,
    pastValue: hasPast ? input("past_value") : null,
    trace: true,
  });
  const { output, presentKey, presentValue, trace } = result;
  const stages = ["scaled", attribute("softcap") ? "capped" : "scaled", "masked", "weights"] as const;
  const scores = trace?.stage(stages[attribute("qk_matmul_output_mode") ?? 0] ?? "weights");
  return {
    Y: qHeads ? joinHeads(output) : output,
    ...(presentKey && { present_key: presentKey }),
    ...(presentValue && { present_value: presentValue }),
    ...(scores && { qk_matmul_output: scores }),
  };
}

/** `[batch, n, heads * d]` as `[batch, heads, n, d]`. */
function splitHeads({ data, shape }: Tensor, heads: number): Tensor {
  const [batch = 0, n = 0, width = 0] = shape;
  return moved(data, [batch, n, heads, width / heads]);
}

/** `[batch, heads, n, d]` as `[batch, n, heads * d]`. */
function joinHeads({ data, shape }: Tensor): Tensor {
  const [batch = 0, heads = 0, n = 0, d = 0] = shape;
  return { data: moved(data, [batch, heads, n, d]).data, shape: [batch, n, heads * d] };
}

/** The two middle axes of four exchanged. */
function moved(data: Float32Array, [batch, a, b, d]: [number, number, number, number]): Tensor {
  const out = new Float32Array(data.length);
  for (let row = 0; row < batch * a * b; row++) {
    const [entry, i, j] = [Math.floor(row / (a * b)), Math.floor(row / b) % a, row % b];
    out.set(data.subarray(row * d, (row + 1) * d), ((entry * b + j) * a + i) * d);
  }
  return { data: out, shape: [batch, b, a, d] };
}

/** The cache's rows at positions `[batch, n]`. */
function rowsAt({ data, shape }: Tensor, positions: Tensor): Tensor {
  const width = shape[1] as number;
  const out = new Float32Array(positions.data.length * width);
  for (const [i, at] of positions.data.entries()) out.set(data.subarray(at * width, (at + 1) * width), i * width);
  return { data: out, shape: [...positions.shape, width] };
}
