import type { Tensor } from "attnscope";
import type { Picture } from "./bench.svelte.ts";
import { isInput, MATRICES, type Origin } from "./matrices.ts";
import { writeNumber } from "./number-grid.ts";
import type { EmptyRow, Fill } from "./state.ts";

export interface ProgramOptions {
  readonly picture: Picture;
  readonly fill: Fill;
  readonly emptyRow: EmptyRow;
  /** Whether the mask adds to the scores, too. */
  readonly isAdded: boolean;
}

// Beyond it a program is no longer something to read, nor to paste.
const MOST_NUMBERS = 20_000;

function python(value: number): string {
  return Number.isFinite(value) ? writeNumber(value) : `float("${writeNumber(value).toLowerCase()}")`;
}

function literal({ data, shape: [rows = 1, columns] }: Tensor): string {
  const line = (row: Float32Array) => `[${Array.from(row, python).join(", ")}]`;
  if (columns === undefined) return `torch.tensor(${line(data)})`;
  const lines = Array.from({ length: rows }, (_, row) => line(data.subarray(row * columns, (row + 1) * columns)));
  return `torch.tensor([${lines.join(",\n    ")}])`;
}

function assigned(name: string, origin: Origin, { weights }: Picture): string[] {
  if (origin === "seed" || !weights) return [];
  if (origin === "zeros") return [`${name}.weight.zero_()`, `${name}.bias.zero_()`];
  if (origin === "identity") return [`torch.nn.init.eye_(${name}.weight)`, `${name}.bias.zero_()`];
  const [weight, bias] = [weights[`${name}.weight`] as Tensor, weights[`${name}.bias`] as Tensor];
  return [`${name}.weight.copy_(${literal(weight)})`, `${name}.bias.copy_(${literal(bias)})`];
}

/** The origin of each matrix; readable heads are written out. */
function originOf(name: (typeof MATRICES)[number], { numbers: { source, own } }: Picture): Origin {
  if (source === "readable") return "typed";
  return source === "own" && own ? own[name].origin : "seed";
}

function input(name: "x" | "memory", values: Tensor, picture: Picture): string {
  const size = `(${name === "x" ? "n_q" : "n_k"}, d_model)`;
  switch (originOf(name, picture)) {
    case "seed":
      return `torch.${picture.numbers.draw}${size}`;
    case "zeros":
      return `torch.zeros${size}`;
    case "identity":
      return `torch.eye${size}`;
    default:
      return `${literal(values)}.float()`;
  }
}

function masking({ picture, fill, isAdded }: ProgramOptions): string[] {
  const { mask } = picture.after;
  if (mask === null) return [];
  const code = mask.toTorch("sdpa");
  if (!isAdded) {
    return [code, `scores = scores.masked_fill(~attn_mask, ${fill === "-inf" ? 'float("-inf")' : fill})`];
  }
  const added = "scores = scores + attn_mask";
  const filled = `scores = scores.masked_fill(attn_mask == float("-inf"), ${fill})`;
  return fill === "-inf" ? [code, added] : [code, added, filled];
}

function numbersToWrite(picture: Picture): number {
  return MATRICES.filter((name) => ["typed", "one_hot", "sinusoidal"].includes(originOf(name, picture)))
    .map((name) => (isInput(name) ? picture[name] : picture.weights?.[`${name}.weight`])?.data.length ?? 0)
    .reduce((sum, size) => sum + size, 0);
}

/** The PyTorch program that prints the weights on the page; null where it would be all numbers. */
export function program(options: ProgramOptions): string | null {
  const { picture, fill, emptyRow } = options;
  const { mask } = picture.after;
  if (numbersToWrite(picture) > MOST_NUMBERS) return null;
  const { numbers, sizes, off, tokens, keyTokens, x, memory } = picture;
  const { dModel, nHeads, dK, dV } = sizes;
  const isDrawn = numbers.source !== "readable";
  const isSplitEvenly = dK * nHeads === dModel && dV === dK;
  const [k, v] = isSplitEvenly ? ["d_model // n_heads", "d_model // n_heads"] : [dK, dV];
  const own = MATRICES.filter((name) => !isInput(name)).flatMap((name) =>
    assigned(name, originOf(name, picture), picture),
  );
  const zeroes = mask !== null && fill === "-inf" && emptyRow === "zero" ? ".nan_to_num(0.0)" : "";
  const on = Array.from({ length: nHeads }, (_, head) => (off.includes(head) ? 0 : 1));
  const context = off.length > 0 ? `(weights @ v) * torch.tensor([${on.join(", ")}])[:, None, None]` : "weights @ v";
  return [
    "import torch",
    "",
    "torch.set_grad_enabled(False)",
    ...(isDrawn ? [`torch.manual_seed(${numbers.seed})`] : []),
    `n_q, n_k, d_model, n_heads = ${tokens.length}, ${keyTokens.length}, ${dModel}, ${nHeads}`,
    `d_k, d_v = ${k}, ${v}`,
    `x = ${input("x", x, picture)}`,
    memory === null ? "memory = x" : `memory = ${input("memory", memory, picture)}`,
    "query, key = (torch.nn.Linear(d_model, n_heads * d_k) for _ in range(2))",
    "value, out = torch.nn.Linear(d_model, n_heads * d_v), torch.nn.Linear(n_heads * d_v, d_model)",
    ...own,
    "",
    "def heads(t):  # [n, n_heads * d] -> [n_heads, n, d]",
    "    return t.view(len(t), n_heads, -1).transpose(0, 1)",
    "",
    "q, k, v = heads(query(x)), heads(key(memory)), heads(value(memory))",
    "scores = q @ k.transpose(-2, -1) / d_k ** 0.5",
    ...masking(options),
    `weights = scores.softmax(-1)${zeroes}`,
    `context = ${context}`,
    "output = out(context.transpose(0, 1).reshape(n_q, -1))",
    "print(weights)",
  ].join("\n");
}
