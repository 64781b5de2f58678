import { readFile } from "node:fs/promises";
import * as attnscope from "attnscope";
import { expect, test } from "vitest";
import { EVERY_CASE, type Files, runAll } from "../cases/all.ts";
import { readSafetensors } from "../cases/golden.ts";

const golden = new URL("../golden/", import.meta.url);

async function bytes(name: string): Promise<ArrayBuffer> {
  return new Uint8Array(await readFile(new URL(name, golden))).buffer;
}

test("every golden case, through the built package", async () => {
  const read = async <Manifest>(name: keyof Files) => ({
    manifest: JSON.parse(await readFile(new URL(`${name}.json`, golden), "utf8")) as Manifest,
    tensors: await bytes(`${name}.safetensors`),
  });
  const files: Files = { golden: await read("golden"), onnx: await read("onnx"), arch: await read("arch") };
  const engine = await attnscope.createEngine();
  expect(engine.info.kernel).toBe("simd128");
  for (const [name, report] of Object.entries(await runAll(attnscope, engine, files))) {
    console.log(name, report.passed);
    expect(report.failed).toEqual([]);
    expect(report.passed).toEqual(EVERY_CASE[name as keyof Files]);
  }
});

interface Drawn {
  seed: number;
  op: string;
  [size: string]: unknown;
  tensors: Record<string, { key?: string; shape: number[] }>;
}

test("PyTorch's draws, bit for bit", async () => {
  const { cases } = JSON.parse(await readFile(new URL("rng.json", golden), "utf8")) as { cases: Drawn[] };
  const tensors = readSafetensors(await bytes("rng.safetensors"));
  const engine = await attnscope.createEngine();
  const checked: Record<string, number> = {};
  for (const { seed, op, tensors: expected, ...sizes } of cases) {
    const g = engine.torchGenerator(seed);
    const size = (name: string) => sizes[name] as number;
    const shape = Object.values(expected)[0]?.shape ?? [];
    const draws: Record<string, () => Promise<Record<string, attnscope.Tensor>>> = {
      rand: async () => ({ y: await g.rand(shape) }),
      randn: async () => ({ y: await g.randn(shape) }),
      normal: async () => ({ y: await g.normal(shape, size("mean"), size("std")) }),
      randint: async () => ({ y: await g.randint(size("lo"), size("hi"), shape) }),
      randperm: async () => ({ y: await g.randperm(size("n")) }),
      linear: () => g.linear(size("in_features"), size("out_features")),
      embedding: async () => ({ weight: await g.embedding(size("rows"), size("cols")) }),
      xavier_uniform: async () => ({ y: await g.xavierUniform(shape) }),
      randn_cached: async () => ({
        a: await g.randn([3]),
        b: await g.randn([20]),
        c: await g.randn([2]),
        d: await g.rand([2]),
      }),
      notebook_A: async () => {
        const x = await g.randn([2, 5, 16]);
        const dict = await engine.multiHeadAttention({ dModel: 16, nHeads: 4, generator: g }).stateDict();
        const named = Object.entries(dict).map(([name, tensor]) => [name.replace(".", "_linear."), tensor]);
        return { x, ...Object.fromEntries(named) };
      },
      seedA_MultiHeadAttention: async () => {
        const dict = await engine.multiHeadAttention({ dModel: 16, nHeads: 4, seed }).stateDict();
        return Object.fromEntries(
          Object.entries(dict).map(([name, tensor]) => [name.replace(".", "_linear."), tensor]),
        );
      },
      seedA_TransformerBlock: async () => {
        const dict = await engine.transformerBlock({ dModel: 16, nHeads: 4, seed }).stateDict();
        const rename = (name: string) => name.replace(/^(attention\.\w+)\./, "$1_linear.");
        return Object.fromEntries(Object.entries(dict).map(([name, tensor]) => [rename(name), tensor]));
      },
    };
    const draw = draws[op];
    if (!draw || sizes.padding_idx !== undefined) continue;
    const ours = await draw();
    for (const [name, { key }] of Object.entries(expected)) {
      const golden = key && tensors.get(key);
      if (golden) expect(Array.from(ours[name]?.data ?? []), `${op} ${name}, seed ${seed}`).toEqual([...golden.data]);
    }
    checked[op] = (checked[op] ?? 0) + 1;
  }
  console.log(checked);
  expect(Object.keys(checked)).toHaveLength(12);
});
