// Results that go into the arrays of an earlier one.
import { createEngine, mask, type Tensor, tensor } from "attnscope";
import { afterAll, beforeAll, expect, test } from "vitest";

let engine: Awaited<ReturnType<typeof createEngine>>;
beforeAll(async () => {
  engine = await createEngine({ backend: "cpu" });
});
afterAll(() => engine.destroy());

const sizes = { dModel: 8, nHeads: 2, seed: 1 };
const rows = (n: number, seed: number) => engine.torchGenerator(seed).randn([n, 8]);
/** Whether the tensors lie in arrays of these others, each in another. */
function areOf(tensors: Tensor[], others: Tensor[]): boolean {
  const arrays = new Set(others.map(({ data }) => data));
  return tensors.length === others.length && tensors.every(({ data }) => arrays.delete(data));
}
const copy = ({ data, shape }: Tensor) => tensor([...data], shape);

test("one attention: the same arrays, and the numbers of a pass by itself", async () => {
  const mha = engine.multiHeadAttention(sizes);
  const first = await mha.forward(await rows(5, 1));
  for (const options of [
    {},
    { mask: mask.causal() },
    { mask: mask.causal(), trace: true },
    { averageWeights: false },
  ]) {
    const x = await rows(5, 2);
    const alone = await mha.forward(x, options);
    const again = await mha.forward(x, { ...options, reuse: first });
    expect([again.output, again.weights]).toEqual([alone.output, alone.weights]);
    expect(again.output.data).toBe(first.output.data);
    expect(again.weights.data).toBe(first.weights.data);
  }
});

test("what comes from the array that is given up", async () => {
  const mha = engine.multiHeadAttention(sizes);
  const first = await mha.forward(await rows(5, 1));
  const alone = await mha.forward(copy(first.output));
  const again = await mha.forward(first.output, { reuse: first });
  expect([again.output, again.weights]).toEqual([alone.output, alone.weights]);
  expect(again.output.data).toBe(first.output.data);
});

test("every module, with all its weights", async () => {
  const [x, other, memory] = await Promise.all([rows(5, 1), rows(5, 2), rows(6, 3)]);
  const stack = engine.transformer({ ...sizes, nLayers: 3 });
  const layers = await stack.forward(x);
  const stacked = await stack.forward(other, { reuse: layers });
  expect(stacked).toEqual({ ...(await stack.forward(other)), trace: null });
  expect(areOf(stacked.weights, layers.weights)).toBe(true);

  const decoder = engine.decoder({ ...sizes, nLayers: 2 });
  const crossed = await decoder.forward(x, memory);
  const both = await decoder.forward(other, memory, { reuse: crossed });
  expect(both).toEqual({ ...(await decoder.forward(other, memory)), trace: null });
  const weightsOf = ({ selfWeights, crossWeights }: typeof both) => [...selfWeights, ...crossWeights];
  expect(areOf(weightsOf(both), weightsOf(crossed))).toBe(true);

  const block = engine.transformerBlock(sizes);
  const one = await block.forward(x);
  expect((await block.forward(other, { reuse: one })).weights.data).toBe(one.weights.data);

  const options = { pastKey: memory, pastValue: memory };
  const attended = await engine.scaledDotProductAttention(x, x, x, options);
  const alone = await engine.scaledDotProductAttention(other, x, x, options);
  const again = await engine.scaledDotProductAttention(other, x, x, { ...options, reuse: attended });
  expect(again).toEqual(alone);
  expect(again.weights.data).toBe(attended.weights.data);
});

test("what does not fit is new, and what was there stays as it was", async () => {
  const mha = engine.multiHeadAttention(sizes);
  const first = await mha.forward(await rows(5, 1));
  const before = [copy(first.output), copy(first.weights)];
  const larger = await mha.forward(await rows(7, 2), { reuse: first });
  expect(larger.weights.shape).toEqual([2, 7, 7]);
  expect([first.output, first.weights]).toEqual(before);

  // Neither a part of other memory nor memory that others see is taken.
  const part = { data: new Float32Array(60).subarray(10, 50), shape: [5, 8] };
  const shared = { data: new Float32Array(new SharedArrayBuffer(200)), shape: [2, 5, 5] };
  await mha.forward(await rows(5, 1), { reuse: { output: part, weights: shared } });
  expect([...part.data, ...shared.data].every((x) => x === 0)).toBe(true);

  expect((await mha.forward(await rows(5, 1), { reuse: null })).output).toEqual(before[0]);
  expect((await mha.forward(await rows(5, 1), { reuse: undefined })).output).toEqual(before[0]);
});

test("a trace keeps its numbers when its result is given up", async () => {
  const mha = engine.multiHeadAttention(sizes);
  const first = await mha.forward(await rows(5, 1), { trace: true });
  const stages = first.trace.stages.map((name) => copy(first.trace.stage(name)));
  await mha.forward(await rows(5, 2), { mask: mask.causal(), reuse: first });
  expect(first.trace.stages.map((name) => first.trace.stage(name))).toEqual(stages);
  await expect(first.trace.remask(null, { reuse: first } as object)).rejects.toMatchObject({ code: "invalid_option" });
});

test("what is no result is refused by name", async () => {
  const mha = engine.multiHeadAttention(sizes);
  const x = await rows(5, 1);
  for (const reuse of [1, "last", true, [], {}, { weights: x }, { output: x.data }]) {
    await expect(mha.forward(x, { reuse: reuse as never })).rejects.toMatchObject({
      code: "invalid_option",
      details: { option: "reuse" },
    });
  }
});

test("once warm, a pass allocates no array and lets the engine's memory be", async () => {
  const mha = engine.multiHeadAttention({ dModel: 64, nHeads: 4 });
  const x = await engine.torchGenerator(1).randn([200, 64]);
  let result = await mha.forward(x);
  result = await mha.forward(x, { reuse: result });
  const size = result.weights.data.byteLength;
  const before = process.memoryUsage().arrayBuffers;
  for (let i = 0; i < 20; i++) result = await mha.forward(x, { reuse: result });
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(size);
});
