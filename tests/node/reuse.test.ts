// Results that go into the memory of an earlier one.
import { createEngine, mask, type Tensor, tensor } from "attnscope";
import { afterAll, beforeAll, expect, test } from "vitest";

let engine: Awaited<ReturnType<typeof createEngine>>;
beforeAll(async () => {
  engine = await createEngine({ backend: "cpu" });
});
afterAll(() => engine.destroy());

const sizes = { dModel: 8, nHeads: 2, seed: 1 };
const rows = (n: number, seed: number) => engine.torchGenerator(seed).randn([n, 8]);
/** How many bytes all arrays together have more after some passes, each of which gives up the result before. */
async function growth<Result>(pass: (reuse: Result | null) => Promise<Result>): Promise<number> {
  let result = await pass(await pass(null));
  const before = process.memoryUsage().arrayBuffers;
  for (let i = 0; i < 20; i++) result = await pass(result);
  return process.memoryUsage().arrayBuffers - before;
}
const copy = ({ data, shape }: Tensor) => tensor([...data], shape);

test("one attention: the numbers of a pass by itself", async () => {
  const mha = engine.multiHeadAttention(sizes);
  let last = await mha.forward(await rows(5, 1));
  for (const options of [{}, { mask: mask.causal() }, { mask: mask.causal(), needWeights: true }, {}]) {
    const x = await rows(5, 2);
    const alone = await mha.forward(x, options);
    const again = await mha.forward(x, { ...options, reuse: last });
    expect(again).toEqual(alone);
    expect([last.output.data.length, last.weights.data.length]).toEqual([0, 0]);
    last = again;
  }
});

test("what comes from the result that is given up", async () => {
  const mha = engine.multiHeadAttention(sizes);
  const first = await mha.forward(await rows(5, 1));
  const alone = await mha.forward(copy(first.output));
  expect(await mha.forward(first.output, { reuse: first })).toEqual(alone);
});

test("given up by two calls that wait, the first has it", async () => {
  const own = await createEngine({ backend: "cpu" });
  const mha = own.multiHeadAttention(sizes);
  const x = await own.torchGenerator(1).randn([5, 8]);
  const first = await mha.forward(x);
  const alone = await mha.forward(x, { mask: mask.causal() });
  // Loads a part of the engine, for which the others wait.
  const loading = own.analysis.entropy(alone.weights);
  const options = { mask: mask.causal(), reuse: first };
  const both = await Promise.all([mha.forward(x, options), mha.forward(x, options)]);
  expect(both).toEqual([alone, alone]);
  expect(first.output.data.length).toBe(0);
  await loading;
  own.destroy();
});

test("every module, with all its weights", async () => {
  const [x, other, memory] = await Promise.all([rows(5, 1), rows(5, 2), rows(6, 3)]);
  const stack = engine.transformer({ ...sizes, nLayers: 3 });
  expect(await stack.forward(other, { reuse: await stack.forward(x) })).toEqual(await stack.forward(other));
  const decoder = engine.decoder({ ...sizes, nLayers: 2 });
  const crossed = await decoder.forward(x, memory);
  expect(await decoder.forward(other, memory, { reuse: crossed })).toEqual(await decoder.forward(other, memory));
  expect([...crossed.selfWeights, ...crossed.crossWeights].every(({ data }) => data.length === 0)).toBe(true);
  const block = engine.transformerBlock(sizes);
  expect(await block.forward(other, { reuse: await block.forward(x) })).toEqual(await block.forward(other));
  const options = { pastKey: memory, pastValue: memory };
  const attend = (query: Tensor, reuse: Awaited<ReturnType<typeof engine.scaledDotProductAttention>> | null) =>
    engine.scaledDotProductAttention(query, x, x, { ...options, reuse });
  expect(await attend(other, await attend(x, null))).toEqual(await attend(other, null));
});

test("what does not fit is new", async () => {
  const mha = engine.multiHeadAttention(sizes);
  const first = await mha.forward(await rows(5, 1));
  const alone = await mha.forward(await rows(7, 2));
  expect(await mha.forward(await rows(7, 2), { reuse: first })).toEqual(alone);
  // Given up once more, it has nothing left to give.
  expect(await mha.forward(await rows(7, 2), { reuse: first })).toEqual(alone);

  // Neither a part of other memory nor memory that others see is taken.
  const part = { data: new Float32Array(60).subarray(10, 50), shape: [5, 8] };
  const shared = { data: new Float32Array(new SharedArrayBuffer(200)), shape: [2, 5, 5] };
  await mha.forward(await rows(5, 1), { reuse: { output: part, weights: shared } });
  expect([...part.data, ...shared.data]).toEqual(Array(90).fill(0));

  for (const reuse of [null, undefined]) {
    expect(await mha.forward(await rows(7, 2), { reuse })).toEqual(alone);
  }
});

test("its arrays are empty when the call settles, whatever came of it", async () => {
  const gone = await createEngine({ backend: "cpu" });
  const [mha, others] = [engine.multiHeadAttention(sizes), gone.multiHeadAttention(sizes)];
  const block = engine.decoderBlock(sizes);
  const x = await rows(5, 1);
  gone.destroy();
  const ways: [string, (reuse: Awaited<ReturnType<typeof mha.forward>>) => Promise<unknown>][] = [
    ["shape_mismatch", (reuse) => mha.forward([[1, 2]], { reuse })],
    ["shape_mismatch", (reuse) => block.forward(x, [[1]], { reuse })],
    ["shape_mismatch", (reuse) => engine.scaledDotProductAttention(x, x, [[1]], { reuse })],
    ["invalid_tensor", (reuse) => mha.forward([], { reuse })],
    ["invalid_tensor", (reuse) => block.forward(x, [], { reuse })],
    ["invalid_tensor", (reuse) => engine.scaledDotProductAttention(x, x, [], { reuse })],
    ["invalid_option", (reuse) => engine.scaledDotProductAttention(x, x, x, { pastKey: x, reuse })],
    ["invalid_option", (reuse) => mha.forward(x, { mask: 0 as never, reuse })],
    ["invalid_option", (reuse) => mha.forward(x, { lazy: 1 as never, reuse })],
    ["invalid_option", (reuse) => mha.forward(x, { signal: 1 as never, reuse })],
    ["mask_shape", (reuse) => mha.forward(x, { mask: mask.fromKeep([[1, 0]]), reuse })],
    ["disposed", (reuse) => others.forward(x, { reuse })],
    ["stop", (reuse) => mha.forward(x, { signal: AbortSignal.abort({ code: "stop" }), reuse })],
  ];
  for (const [code, way] of ways) {
    const last = await mha.forward(x);
    await expect(way(last)).rejects.toMatchObject({ code });
    expect([last.output, last.weights].map(({ data }) => data.length)).toEqual([0, 0]);
  }
});

test("a trace keeps its numbers when its result is given up", async () => {
  const mha = engine.multiHeadAttention(sizes);
  const first = await mha.forward(await rows(5, 1), { trace: true });
  const remasked = await first.trace.remask(mask.causal());
  const shown = () => [first, remasked].flatMap(({ trace }) => trace.stages.map((name) => copy(trace.stage(name))));
  const before = shown();
  const last = await mha.forward(await rows(5, 2), { reuse: first });
  await mha.forward(await rows(5, 3), { trace: true, reuse: remasked });
  const traced = await mha.forward(await rows(5, 3), { trace: true, reuse: last });
  expect(traced.trace.stage("weights")).toEqual((await mha.forward(await rows(5, 3))).weights);
  expect(shown()).toEqual(before);
  await expect(first.trace.remask(null, { reuse: first } as object)).rejects.toMatchObject({ code: "invalid_option" });
});

test("a result shares its numbers with its trace", async () => {
  const mha = engine.multiHeadAttention(sizes);
  const { output, weights, trace } = await mha.forward(await rows(5, 1), { trace: true });
  expect(weights.data).toBe(trace.stage("weights").data);
  expect(output.data).toBe(trace.stage("output").data);
  const again = await trace.remask(mask.causal());
  expect(again.weights?.data).toBe(again.trace.stage("weights").data);
  const mean = await mha.forward(await rows(5, 1), { trace: true, averageWeights: true });
  expect([mean.weights.shape, mean.trace.stage("weights").shape]).toEqual([
    [5, 5],
    [2, 5, 5],
  ]);
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

test("once warm, a pass allocates no arrays", async () => {
  const x = await engine.torchGenerator(1).randn([200, 64]);
  const options = { dModel: 64, nHeads: 4 };
  const mha = engine.multiHeadAttention(options);
  const stack = engine.transformer({ ...options, nLayers: 2 });
  const decoder = engine.decoderBlock(options);
  const some = 4 * 200 * 200;
  expect(await growth<Awaited<ReturnType<typeof mha.forward>>>((reuse) => mha.forward(x, { reuse }))).toBeLessThan(
    some,
  );
  expect(
    await growth<Awaited<ReturnType<typeof stack.forward>>>((reuse) =>
      stack.forward(x, { mask: mask.causal(), reuse }),
    ),
  ).toBeLessThan(some);
  expect(
    await growth<Awaited<ReturnType<typeof decoder.forward>>>((reuse) => decoder.forward(x, x, { reuse })),
  ).toBeLessThan(some);
  // As it would not be otherwise.
  expect(await growth<Awaited<ReturnType<typeof mha.forward>>>(() => mha.forward(x))).toBeGreaterThan(some);
});
