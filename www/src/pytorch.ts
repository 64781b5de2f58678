import type { EmptyRow, Mask, Tensor, TorchConvention } from "attnscope";
import {
  dictName,
  type InputName,
  isNorm,
  type MatrixName,
  matrixOf,
  type Origin,
  type ParameterName,
  parametersOf,
} from "./matrices.ts";
import { parseNumber, writeNumber } from "./number-grid.ts";
import type { Picture } from "./picture.ts";
import type { ActivationName, Fill } from "./state.ts";

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

/** What stands for a parameter that is not drawn: its module, as the program calls it, is given numbers. */
function assigned(name: ParameterName, layer: number, picture: Picture): string[] {
  const { kind, weights } = picture;
  const origin = originOf(name, layer, picture);
  const at = dictName(name, layer, kind);
  const module = at.replace(/^layers\.(\d+)/, "layers[$1]");
  if (origin === "seed" || origin === "one" || !weights) return [];
  if (origin === "zeros") return [`${module}.weight.zero_()`, `${module}.bias.zero_()`];
  if (origin === "identity") return [`torch.nn.init.eye_(${module}.weight)`, `${module}.bias.zero_()`];
  const [weight, bias] = [weights[`${at}.weight`] as Tensor, weights[`${at}.bias`] as Tensor];
  return [`${module}.weight.copy_(${literal(weight)})`, `${module}.bias.copy_(${literal(bias)})`];
}

/** The origin of each matrix; readable heads are written out, but for their norms. */
function originOf(name: MatrixName, layer: number, { numbers: { source, own } }: Picture): Origin {
  if (source === "readable") return isNorm(name) ? "one" : "typed";
  if (source === "own" && own) return matrixOf(own, name, layer).origin;
  return isNorm(name) ? "one" : "seed";
}

function input(name: InputName, count: string, values: Tensor, picture: Picture): string {
  const size = `(${count}, d_model)`;
  switch (originOf(name, 0, picture)) {
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

/** The mask's own lines, which by themselves do what the page does; or say at their end where PyTorch does otherwise. */
export function maskCode(mask: Mask, convention: TorchConvention, fill: Fill, emptyRow: EmptyRow): string {
  const code = mask.toTorch(convention);
  if (fill === "-inf")
    return emptyRow === "zero" ? `${code}\n# then weights.nan_to_num(0.0): an empty row gives 0` : code;
  if (convention === "additive") return code.replaceAll('float("-inf")', fill);
  return `${code}\n# PyTorch fills in -inf for it, not -1e9: an empty row differs`;
}

function numbersToWrite(picture: Picture): number {
  const { kind, nLayers, weights, x, memory } = picture;
  const isWritten = (name: MatrixName, layer: number) =>
    ["typed", "one_hot", "sinusoidal"].includes(originOf(name, layer, picture));
  const inputs = (["x", "memory"] as const)
    .filter((name) => isWritten(name, 0))
    .map((name) => (name === "x" ? x : memory)?.data.length ?? 0);
  const parameters = Array.from({ length: nLayers }, (_, layer) =>
    parametersOf(kind)
      .filter((name) => isWritten(name, layer))
      .map((name) => weights?.[`${dictName(name, layer, kind)}.weight`]?.data.length ?? 0),
  );
  return [...inputs, ...parameters.flat()].reduce((sum, size) => sum + size, 0);
}

const HEADS = [
  "def heads(t):  # [n, n_heads * d] -> [n_heads, n, d]",
  "    return t.view(len(t), n_heads, -1).transpose(0, 1)",
];

/** What is added to every program's attention by the page's choices. */
function choices({ picture, fill, emptyRow }: ProgramOptions) {
  const { numbers, nHeads, off, after } = picture;
  const scale = numbers.source === "readable" ? null : parseNumber(numbers.scale);
  const on = Array.from({ length: nHeads }, (_, head) => (off.includes(head) ? 0 : 1));
  return {
    scaled: scale === null ? "/ d_k ** 0.5" : `* ${python(scale)}`,
    zeroes: after.mask !== null && fill === "-inf" && emptyRow === "zero" ? ".nan_to_num(0.0)" : "",
    context: off.length > 0 ? `(weights @ v) * torch.tensor([${on.join(", ")}])[:, None, None]` : "weights @ v",
  };
}

/** Everything that is not drawn, in the order of the state dict. */
function assignments(picture: Picture): string[] {
  return Array.from({ length: picture.nLayers }, (_, layer) =>
    parametersOf(picture.kind).flatMap((name) => assigned(name, layer, picture)),
  ).flat();
}

function attentionProgram(options: ProgramOptions): string[] {
  const { picture } = options;
  const { dModel, nHeads, dK, dV } = picture.sizes;
  const { scaled, zeroes, context } = choices(options);
  const isSplitEvenly = dK * nHeads === dModel && dV === dK;
  const [k, v] = isSplitEvenly ? ["d_model // n_heads", "d_model // n_heads"] : [dK, dV];
  return [
    `n_q, n_k, d_model, n_heads = ${picture.tokens.length}, ${picture.keyTokens.length}, ${dModel}, ${nHeads}`,
    `d_k, d_v = ${k}, ${v}`,
    `x = ${input("x", "n_q", picture.x, picture)}`,
    picture.memory === null ? "memory = x" : `memory = ${input("memory", "n_k", picture.memory, picture)}`,
    "query, key = (torch.nn.Linear(d_model, n_heads * d_k) for _ in range(2))",
    "value, out = torch.nn.Linear(d_model, n_heads * d_v), torch.nn.Linear(n_heads * d_v, d_model)",
    ...assignments(picture),
    "",
    ...HEADS,
    "",
    "q, k, v = heads(query(x)), heads(key(memory)), heads(value(memory))",
    `scores = q @ k.transpose(-2, -1) ${scaled}`,
    ...masking(options),
    `weights = scores.softmax(-1)${zeroes}`,
    `context = ${context}`,
    "output = out(context.transpose(0, 1).reshape(n_q, -1))",
    "print(weights)",
  ];
}

const ACTIVATION: Record<ActivationName, (t: string) => string> = {
  relu: (t) => `torch.relu(${t})`,
  gelu: (t) => `torch.nn.functional.gelu(${t})`,
  gelu_tanh: (t) => `torch.nn.functional.gelu(${t}, approximate="tanh")`,
  silu: (t) => `torch.nn.functional.silu(${t})`,
};

const indented = (lines: readonly string[], depth: number) =>
  lines.flatMap((line) => line.split("\n")).map((line) => "    ".repeat(depth) + line);

/** How a block goes from x to x, branch by branch. */
function branches({ kind, numbers }: Picture): string[] {
  const feedForward = (t: string) => `self.linear2(${ACTIVATION[numbers.activation](`self.linear1(${t})`)})`;
  const all: ((t: string) => string)[] = [
    (t) => `self.attention(${t}, ${t}, masked)`,
    ...(kind === "decoder" ? [(t: string) => `self.cross_attention(${t}, memory)`] : []),
    feedForward,
  ];
  return all.flatMap((branch, i) =>
    numbers.normPlace === "before"
      ? [`h = self.norm${i + 1}(x)`, `x = x + ${branch("h")}`]
      : [`x = self.norm${i + 1}(x + ${branch("x")})`],
  );
}

function blocksProgram(options: ProgramOptions): string[] {
  const { picture } = options;
  const { kind, tokens, memory, memoryTokens, nLayers } = picture;
  const { dModel, nHeads, dK, dFf } = picture.sizes;
  const { scaled, zeroes, context } = choices(options);
  const isDecoder = kind === "decoder";
  const count = isDecoder ? 3 : 2;
  const norms = Array.from({ length: count }, (_, i) => `self.norm${i + 1}`).join(", ");
  return [
    `n_q = n_k = ${tokens.length}`,
    ...(memoryTokens ? [`n_memory = ${memoryTokens.length}`] : []),
    `d_model, n_heads, n_layers = ${dModel}, ${nHeads}, ${nLayers}`,
    `d_k, d_ff = ${dK * nHeads === dModel ? "d_model // n_heads" : dK}, ${dFf}`,
    `x = ${input("x", "n_q", picture.x, picture)}`,
    ...(memory ? [`memory = ${input("memory", "n_memory", memory, picture)}`] : []),
    "",
    ...HEADS,
    "",
    "def masked(scores):",
    ...indented([...masking(options), "return scores"], 1),
    "",
    "class Attention(torch.nn.Module):",
    "    def __init__(self):",
    "        super().__init__()",
    "        self.query, self.key, self.value = (torch.nn.Linear(d_model, n_heads * d_k) for _ in range(3))",
    "        self.out = torch.nn.Linear(n_heads * d_k, d_model)",
    "",
    "    def forward(self, x, memory, mask=lambda scores: scores):",
    "        q, k, v = heads(self.query(x)), heads(self.key(memory)), heads(self.value(memory))",
    `        scores = mask(q @ k.transpose(-2, -1) ${scaled})`,
    `        weights = self.weights = scores.softmax(-1)${zeroes}`,
    `        context = ${context}`,
    "        return self.out(context.transpose(0, 1).reshape(len(x), -1))",
    "",
    "class Block(torch.nn.Module):",
    "    def __init__(self):",
    "        super().__init__()",
    "        self.attention = Attention()",
    ...(isDecoder ? ["        self.cross_attention = Attention()"] : []),
    "        self.linear1, self.linear2 = torch.nn.Linear(d_model, d_ff), torch.nn.Linear(d_ff, d_model)",
    `        ${norms} = (torch.nn.LayerNorm(d_model) for _ in range(${count}))`,
    "",
    "    def forward(self, x):",
    ...indented([...branches(picture), "return x"], 2),
    "",
    "layers = [Block() for _ in range(n_layers)]",
    ...assignments(picture),
    "",
    "output = x",
    "for layer in layers:",
    "    output = layer(output)",
    "    print(layer.attention.weights)",
    "weights = torch.stack([layer.attention.weights for layer in layers])",
  ];
}

/** The PyTorch program that prints the weights on the page; null where it would be all numbers. */
export function program(options: ProgramOptions): string | null {
  const { picture } = options;
  if (numbersToWrite(picture) > MOST_NUMBERS) return null;
  const { kind, numbers } = picture;
  return [
    "import torch",
    "",
    "torch.set_grad_enabled(False)",
    ...(numbers.source === "readable" ? [] : [`torch.manual_seed(${numbers.seed})`]),
    ...(kind === "attention" ? attentionProgram(options) : blocksProgram(options)),
  ].join("\n");
}
