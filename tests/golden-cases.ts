// Runs the golden cases of the two posts through the package, in Node and in browsers alike.
import type * as Attnscope from "attnscope";

type Tensor = Attnscope.Tensor;

export interface Case {
  id: string;
  group: string;
  config: Record<string, number | string | boolean | null>;
  inputs: Record<string, string>;
  params: Record<string, string>;
  expected64: Record<string, string>;
  err: Record<string, number>;
  raises?: string;
}

export interface Report {
  passed: Record<string, number>;
  failed: string[];
}

/** A safetensors file's tensors, whatever their type, as float64. */
export function readSafetensors(bytes: ArrayBuffer): Map<string, { data: Float64Array; shape: number[] }> {
  const view = new DataView(bytes);
  const start = 8 + Number(view.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 8, start - 8))) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >;
  const tensors = new Map<string, { data: Float64Array; shape: number[] }>();
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const [from, to] = entry.data_offsets;
    const part = bytes.slice(start + from, start + to);
    const numbers = {
      F32: () => new Float32Array(part),
      F64: () => new Float64Array(part),
      I64: () => Array.from(new BigInt64Array(part), Number),
      U8: () => new Uint8Array(part),
    }[entry.dtype];
    if (!numbers) throw new Error(`${name}: type ${entry.dtype}`);
    tensors.set(name, { data: Float64Array.from(numbers()), shape: entry.shape });
  }
  return tensors;
}

/** Every case of the posts but the traps, the call as the second post wrote it, and training. */
export async function runGolden(
  attnscope: typeof Attnscope,
  engine: Attnscope.Engine,
  cases: readonly Case[],
  tensors: ReturnType<typeof readSafetensors>,
): Promise<Report> {
  const report: Report = { passed: {}, failed: [] };
  const { mask } = attnscope;

  for (const golden of cases) {
    const { id, group, config } = golden;
    if (!/^seed[AB]_/.test(group) || golden.raises) continue;
    if (config.trap || config.as_written || config.mode === "train") continue;

    const read = (key: string): Tensor => {
      const found = tensors.get(key);
      if (!found) throw new Error(`${id}: no tensor ${key}`);
      return { data: Float32Array.from(found.data), shape: found.shape };
    };
    const input = (name: string): Tensor => read(golden.inputs[name] as string);
    const size = (name: string): number => config[name] as number;
    const stateDict = () => Object.fromEntries(Object.entries(golden.params).map(([name, key]) => [name, read(key)]));
    const keep = () => (golden.inputs.mask ? mask.fromKeep(input("mask"), { axes: "batch" }) : null);
    const ours: Record<string, Tensor | null | undefined> = {};

    if (group === "seedA_mha") {
      const mha = engine.multiHeadAttention({ dModel: size("d_model"), nHeads: size("n_heads") });
      await mha.loadStateDict(stateDict());
      Object.assign(ours, await mha.forward(input("x"), { mask: keep() }));
    } else if (group === "seedA_block") {
      const nLayers = size("n_blocks");
      const stack = engine.transformer({ dModel: size("d_model"), nHeads: size("n_heads"), nLayers });
      await stack.loadStateDict(stateDict());
      const { weights, trace } = await stack.forward(input("x"), { mask: keep(), trace: true });
      for (let layer = 0; layer < nLayers; layer++) {
        ours[`weights.${layer}`] = weights?.[layer];
        ours[`output.${layer}`] = trace?.stage("norm2", { layer });
      }
    } else if (group === "seedB_sdpa") {
      const result = await engine.scaledDotProductAttention(input("Q"), input("K"), input("V"), {
        mask: mask.fromMasked(input("attn_mask")),
      });
      Object.assign(ours, { context: result.output, attn: result.weights });
    } else {
      const mha = engine.multiHeadAttention({
        dModel: size("d_model"),
        nHeads: size("n_heads"),
        dK: size("d_k"),
        dV: size("d_v"),
        residualNorm: true,
      });
      await mha.loadStateDict(stateDict());
      const { output, weights, trace } = await mha.forward(input("Q"), {
        key: input("K"),
        value: input("V"),
        mask: mask.fromMasked(input("attn_mask"), { axes: "batch" }),
        trace: true,
      });
      Object.assign(ours, { output, attn: weights, context: trace?.stage("concat") });
    }

    const problem = compare(golden, ours, tensors);
    if (problem) report.failed.push(`${id}: ${problem}`);
    else report.passed[group] = (report.passed[group] ?? 0) + 1;
  }
  return report;
}

/** The first number outside |ours - float64| <= max(8 err, 2e-6) (1 + |float64|). */
function compare(
  golden: Case,
  ours: Record<string, Tensor | null | undefined>,
  tensors: ReturnType<typeof readSafetensors>,
): string | null {
  for (const [name, key] of Object.entries(golden.expected64)) {
    const expected = tensors.get(key);
    const found = ours[name];
    if (!expected || !found) return `no ${name}`;
    if (String(found.shape) !== String(expected.shape)) return `${name} of shape ${found.shape} for ${expected.shape}`;
    const bound = Math.max(8 * (golden.err[name] as number), 2e-6);
    for (const [i, value] of expected.data.entries()) {
      const error = Math.abs((found.data[i] as number) - value);
      if (!(error <= bound * (1 + Math.abs(value)))) return `${name}[${i}] is ${found.data[i]} for ${value}`;
    }
  }
  return null;
}
