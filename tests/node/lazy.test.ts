// Lazy passes where the CPU computes: what they give is the same, so that a program need not know where.
import { createEngine, mask, type Tensor } from "attnscope";
import { afterAll, beforeAll, expect, expectTypeOf, test } from "vitest";

let engine: Awaited<ReturnType<typeof createEngine>>;
beforeAll(async () => {
  engine = await createEngine({ backend: "cpu" });
});
afterAll(() => engine.destroy());

const sizes = { dModel: 8, nHeads: 2, seed: 1 };

test("the weights are the trace's, with trace: true beside every stage", async () => {
  const x = await engine.torchGenerator(1).randn([5, 8]);
  const mha = engine.multiHeadAttention(sizes);
  const whole = await mha.forward(x, { mask: mask.causal(), trace: true });
  const lazy = await mha.forward(x, { mask: mask.causal(), lazy: true });
  expectTypeOf(lazy).not.toHaveProperty("weights");
  expect(lazy.output).toEqual(whole.output);
  expect(lazy.trace.stages).toEqual(["weights"]);
  expect(lazy.trace.stage("weights")).toEqual(whole.weights);
  expect(lazy.trace.shape("weights")).toEqual([2, 5, 5]);
  expect(await lazy.trace.read("weights")).toBe(lazy.trace.stage("weights"));
  expect(lazy.trace.drawable("weights")).toBe(lazy.trace.stage("weights"));
  await expect(lazy.trace.read("scores")).rejects.toMatchObject({ code: "no_such_stage" });
  await expect(lazy.trace.explain("weights", [0, 0, 0])).rejects.toMatchObject({ code: "no_such_stage" });
  await expect(lazy.trace.remask(null)).rejects.toMatchObject({ code: "no_such_stage" });

  const kept = await mha.forward(x, { mask: mask.causal(), lazy: true, trace: true });
  expect(kept.trace.stages).toEqual(whole.trace.stages);
  expect(await kept.trace.explain("weights", [1, 3, 2])).toEqual(await whole.trace.explain("weights", [1, 3, 2]));
  expect((await kept.trace.remask(null)).output).toEqual((await whole.trace.remask(null)).output);

  const without = await mha.forward(x, { lazy: true, needWeights: false });
  expect(without.trace.stages).toEqual([]);
});

test("of every kind of module, layer by layer", async () => {
  const x = await engine.torchGenerator(2).randn([4, 8]);
  const same = async (
    lazy: { trace: { read(name: "weights", at: { layer: number }): Promise<Tensor> } },
    all: Tensor[],
  ) => {
    for (const [layer, weights] of all.entries()) expect(await lazy.trace.read("weights", { layer })).toEqual(weights);
  };
  const stack = engine.transformer({ ...sizes, nLayers: 2 });
  await same(await stack.forward(x, { lazy: true }), (await stack.forward(x)).weights);
  const block = engine.transformerBlock(sizes);
  await same(await block.forward(x, { lazy: true }), [(await block.forward(x)).weights]);
  const decoder = engine.decoder({ ...sizes, nLayers: 2 });
  const [lazy, whole] = [await decoder.forward(x, x, { lazy: true }), await decoder.forward(x, x)];
  await same(lazy, whole.selfWeights);
  expect(await lazy.trace.read("cross_weights", { layer: 1 })).toEqual(whole.crossWeights[1]);
  const one = engine.decoderBlock(sizes);
  expect((await one.forward(x, x, { lazy: true })).trace.stages).toEqual(["weights", "cross_weights"]);
  const attended = await engine.scaledDotProductAttention(x, x, x, { lazy: true });
  expect(attended.trace.stage("weights")).toEqual((await engine.scaledDotProductAttention(x, x, x)).weights);
});

test("lazy is true or false", async () => {
  const x = [[1, 0, 0, 1, 0, 0, 0, 0]];
  const mha = engine.multiHeadAttention(sizes);
  for (const lazy of ["yes", 1, null]) {
    const options = { lazy } as unknown as { lazy: true };
    for (const pass of [mha.forward(x, options), engine.scaledDotProductAttention(x, x, x, options)]) {
      await expect(pass).rejects.toMatchObject({ code: "invalid_option", details: { option: "lazy" } });
    }
  }
});
