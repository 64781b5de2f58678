// What PyTorch makes of code that this project writes: the notebook in the README, and `toTorch` of every mask.
// Recorded in tests/golden/torch.json by
//   RECORD=1 PYTHON=<a Python with torch> npx vitest run tests/node/torch.test.ts
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createEngine, type Mask, mask, type TorchConvention } from "attnscope";
import { expect, test } from "vitest";

// `toTorch` is the engine's, which must be there first.
const engine = await createEngine();

const RECORD = new URL("../golden/torch.json", import.meta.url);
const SIZE = { nQ: 4, nK: 4, nHeads: 2, batch: 2 };
const CONVENTIONS = ["sdpa", "mha", "additive"] as const;

const matrix = [
  [1, 0, 1, 1],
  [1, 1, 0, 0],
  [0, 1, 1, 1],
  [1, 1, 1, 0],
];
const added = matrix.map((row) => row.map((cell) => (cell ? -0.5 : 1.25)));
const table = Array.from({ length: 8 }, (_, bucket) => [bucket / 8, -bucket / 4]);

const MASKS: Record<string, Mask> = {
  causal: mask.causal(),
  padding: mask.padding(3),
  "padding by batch": mask.padding([2, 4]),
  window: mask.slidingWindow(2),
  "uneven window": mask.slidingWindow({ left: 2, right: 0 }),
  prefix: mask.prefix(2),
  documents: mask.documents([0, 0, 7, 7]),
  global: mask.global([1]),
  dilated: mask.dilated(2, 2),
  keep: mask.fromKeep(matrix),
  "keep keys": mask.fromKeep([1, 0, 1, 1]),
  "keep by head": mask.fromKeep([matrix, matrix.map((row) => row.map((cell) => 1 - cell))]),
  "keep by batch": mask.fromKeep([matrix, [...matrix].reverse()], { axes: "batch" }),
  masked: mask.fromMasked(matrix),
  additive: mask.additive(added),
  alibi: mask.alibi(2),
  "T5's distances": mask.relative(table, { maxDistance: 3 }),
  "T5's distances, causal": mask.relative(table, { bidirectional: false, maxDistance: 5 }).and(mask.causal()),
  "per head": mask.perHead([mask.causal(), mask.slidingWindow(1)]),
  "per head with bias": mask.perHead([mask.causal(), mask.additive(added)]),
  and: mask.causal().and(mask.padding(3)),
  or: mask.global([0]).or(mask.slidingWindow(1)),
  not: mask.causal().not(),
  "and with bias": mask.causal().and(mask.alibi(2)),
  nested: mask
    .causal()
    .or(mask.prefix(3).not())
    .and(mask.padding([3, 4])),
};

interface Recorded {
  torch: string;
  notebook: { code: string; weights: number[]; output: number[] };
  masks: Record<string, { codes: Record<TorchConvention, string>; results: Record<TorchConvention, unknown[]> }>;
}

const codesOf = (mask: Mask) =>
  Object.fromEntries(CONVENTIONS.map((convention) => [convention, mask.toTorch(convention)])) as Record<
    TorchConvention,
    string
  >;

function notebook(): string {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  return /```python\n(.*?)```/s.exec(readme)?.[1] ?? "";
}

const PROGRAM = `
import json, sys, torch
given = json.load(sys.stdin)
scope = {}
exec(given["notebook"], scope)
flat = lambda tensor: [float(number) for number in tensor.detach().flatten()]
masks = {}
for name, codes in given["masks"].items():
    results = {}
    for convention, code in codes.items():
        scope_of_mask = dict(torch=torch, n_q=4, n_k=4)
        exec(code, scope_of_mask)
        whole = scope_of_mask["attn_mask"].expand(2, 2, 4, 4)
        results[convention] = [bool(x) if whole.dtype == torch.bool else str(float(x)) for x in whole.flatten()]
    masks[name] = dict(codes=codes, results=results)
notebook = dict(code=given["notebook"], weights=flat(scope["weights"]), output=flat(scope["output"]))
json.dump(dict(torch=torch.__version__, notebook=notebook, masks=masks), sys.stdout)
`;

if (process.env.RECORD) {
  const input = JSON.stringify({
    notebook: notebook(),
    masks: Object.fromEntries(Object.entries(MASKS).map(([name, mask]) => [name, codesOf(mask)])),
  });
  writeFileSync(RECORD, execFileSync(process.env.PYTHON ?? "python3", ["-c", PROGRAM], { input, maxBuffer: 2 ** 26 }));
}

const recorded = JSON.parse(readFileSync(RECORD, "utf8")) as Recorded;

test("the notebook in the README prints our numbers", async () => {
  expect(notebook(), "the README changed: record again").toBe(recorded.notebook.code);
  const generator = engine.torchGenerator(42);
  const x = await generator.randn([5, 16]);
  const mha = engine.multiHeadAttention({ dModel: 16, nHeads: 4, generator });
  const { weights, output } = await mha.forward(x, { mask: mask.causal() });
  for (const [ours, theirs] of [
    [weights, recorded.notebook.weights],
    [output, recorded.notebook.output],
  ] as const) {
    expect(ours?.data).toHaveLength(theirs.length);
    for (const [i, number] of theirs.entries()) expect(Math.abs((ours?.data[i] as number) - number)).toBeLessThan(1e-6);
  }
});

test("every mask is recorded", () => {
  expect(Object.keys(recorded.masks)).toEqual(Object.keys(MASKS));
});

test.each(Object.entries(MASKS))("PyTorch makes the same mask: %s", async (name, mask) => {
  const { codes, results } = recorded.masks[name] as Recorded["masks"][string];
  expect(codesOf(mask), "the code changed: record again").toEqual(codes);
  const { allowed, bias, shape } = await engine.materialize(mask, SIZE);
  const [batches = 1, heads = 1] = shape;
  for (const convention of CONVENTIONS) {
    for (const [at, found] of results[convention].entries()) {
      const [batch, head, cell] = [Math.floor(at / 32) % batches, Math.floor(at / 16) % heads, at % 16];
      const place = (batch * heads + head) * 16 + cell;
      const isAllowed = allowed[place] === 1;
      if (typeof found === "boolean") expect(convention === "mha" ? !found : found).toBe(isAllowed);
      // PyTorch leaves -0 where a sum here gives 0.
      else
        expect(Number(String(found).replace("inf", "Infinity")) + 0).toBe(
          isAllowed ? (bias?.[place] ?? 0) + 0 : -Infinity,
        );
    }
  }
});
