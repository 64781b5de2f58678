import type { Mask } from "attnscope";
import type { Draw, Fill } from "./bench.svelte.ts";

export interface ProgramOptions {
  readonly n: number;
  readonly dModel: string;
  readonly nHeads: string;
  readonly seed: string;
  readonly draw: Draw;
  readonly fill: Fill;
  readonly mask: Mask | null;
}

/** The PyTorch program that prints the weights on the page. */
export function program({ n, dModel, nHeads, seed, draw, fill, mask }: ProgramOptions): string {
  const hide = `scores = scores.masked_fill(~attn_mask, ${fill === "-inf" ? 'float("-inf")' : "-1e9"})`;
  return [
    "import torch",
    "",
    `torch.manual_seed(${seed})`,
    `n, d_model, n_heads = ${n}, ${dModel}, ${nHeads}`,
    "n_q = n_k = n",
    `x = torch.${draw}(n, d_model)`,
    "query, key, value, out = (torch.nn.Linear(d_model, d_model) for _ in range(4))",
    "",
    "def heads(t):  # [n, d_model] -> [n_heads, n, d_k]",
    "    return t.view(n, n_heads, -1).transpose(0, 1)",
    "",
    "q, k, v = heads(query(x)), heads(key(x)), heads(value(x))",
    "scores = q @ k.transpose(-2, -1) / (d_model // n_heads) ** 0.5",
    ...(mask ? [mask.toTorch("sdpa"), hide] : []),
    "weights = scores.softmax(-1)",
    "output = out((weights @ v).transpose(0, 1).reshape(n, d_model))",
    "print(weights)",
  ].join("\n");
}
