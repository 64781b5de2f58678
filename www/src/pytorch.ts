import type { Mask } from "attnscope";
import type { EmptyRow, Fill, Numbers } from "./state.ts";

export interface ProgramOptions {
  readonly n: number;
  readonly numbers: Numbers;
  readonly fill: Fill;
  readonly emptyRow: EmptyRow;
  readonly mask: Mask | null;
  /** Whether the mask adds to the scores, too. */
  readonly isAdded: boolean;
  /** Heads that are switched off. */
  readonly off: readonly number[];
}

function masking({ fill, mask, isAdded }: ProgramOptions): string[] {
  if (mask === null) return [];
  const code = mask.toTorch("sdpa");
  if (!isAdded) {
    return [code, `scores = scores.masked_fill(~attn_mask, ${fill === "-inf" ? 'float("-inf")' : fill})`];
  }
  const added = "scores = scores + attn_mask";
  const filled = `scores = scores.masked_fill(attn_mask == float("-inf"), ${fill})`;
  return fill === "-inf" ? [code, added] : [code, added, filled];
}

/** The PyTorch program that prints the weights on the page. */
export function program(options: ProgramOptions): string {
  const { n, numbers, fill, emptyRow, mask, off } = options;
  const { dModel, nHeads, seed, draw } = numbers;
  const zeroes = mask !== null && fill === "-inf" && emptyRow === "zero" ? ".nan_to_num(0.0)" : "";
  const on = Array.from({ length: Number(nHeads) }, (_, head) => (off.includes(head) ? 0 : 1));
  const context = off.length > 0 ? `(weights @ v) * torch.tensor([${on.join(", ")}])[:, None, None]` : "weights @ v";
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
    ...masking(options),
    `weights = scores.softmax(-1)${zeroes}`,
    `context = ${context}`,
    "output = out(context.transpose(0, 1).reshape(n, d_model))",
    "print(weights)",
  ].join("\n");
}
