// What may not happen: memory that stays, memory taken beyond maxBytes, results mixed up, wrong input taken in silence.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { AttnError, createEngine, type Engine, type ErrorDetails, mask, tensor } from "attnscope";
import { beforeAll, describe, expect, test } from "vitest";

const X = [
  [1, 2, 3, 4],
  [4, 3, 2, 1],
];
const SIZES = { dModel: 4, nHeads: 2 };

let engine: Engine;
beforeAll(async () => {
  engine = await createEngine();
});

async function caught(run: () => unknown): Promise<AttnError> {
  try {
    await run();
  } catch (error) {
    if (error instanceof AttnError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

/** The bytes that the engine's WebAssembly holds. */
async function wasmBytes(): Promise<number> {
  const glue = (await import("../../dist/wasm/attnscope.js")) as unknown as {
    initSync(): WebAssembly.Exports;
  };
  const memory = Object.values(glue.initSync()).find((exported) => exported instanceof WebAssembly.Memory);
  return memory?.buffer.byteLength ?? 0;
}

test("a thousand passes leave no memory behind, in JavaScript or in WebAssembly", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const heap = async () => {
    // Freeing what was collected takes a turn of the event loop.
    for (let i = 0; i < 3; i++) {
      collect();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return { js: heapUsed + arrayBuffers, wasm: await wasmBytes() };
  };
  const mha = engine.multiHeadAttention({ dModel: 32, nHeads: 4, seed: 1 });
  const decoder = engine.decoder({ dModel: 32, nHeads: 4, nLayers: 2, dropout: 0.1 });
  const generator = engine.torchGenerator(3);
  const x = await generator.randn([48, 32]);
  const passes = async (count: number) => {
    for (let i = 0; i < count; i++) {
      const { trace } = await mha.forward(x, { mask: mask.causal(), trace: true });
      const again = await trace?.remask(mask.slidingWindow(3));
      // Half of them are left to the garbage collector.
      if (i % 2) {
        trace?.dispose();
        again?.trace.dispose();
      }
      if (i % 10 === 0) await decoder.forward(x, x, { training: true, generator });
      // So often that it does not come by itself between: how many traces wait for it at most is the same then.
      if (i % 20 === 0) await heap();
    }
  };
  await passes(500);
  const before = await heap();
  await passes(1000);
  const after = await heap();
  console.log({ before, after });
  expect(after.wasm).toBe(before.wasm);
  expect(after.js - before.js).toBeLessThan(4e6);
});

describe("more than maxBytes is refused before it is taken", () => {
  let small: Engine;
  beforeAll(async () => {
    small = await createEngine({ maxBytes: 4000 });
  });
  const long = tensor(new Float32Array(200), [50, 4]);

  test.each<[string, () => unknown]>([
    ["a pass", () => small.scaledDotProductAttention(long, long, long)],
    ["a pass through a module", () => small.multiHeadAttention(SIZES).forward(long)],
    ["a module's weights", () => small.multiHeadAttention({ dModel: 64, nHeads: 2 })],
    ["a block's weights", () => small.transformerBlock({ ...SIZES, dFf: 1000 })],
    ["a stack's weights", () => small.transformer({ ...SIZES, nLayers: 50 })],
    ["a decoder's weights", () => small.decoder({ ...SIZES, nLayers: 10 })],
    ["learned positions", () => small.transformerBlock({ ...SIZES, positions: "learned", maxLength: 1000 })],
    ["drawn numbers", () => small.torchGenerator(1).rand([1001])],
    ["a drawn embedding", () => small.torchGenerator(1).embedding(100, 100)],
    ["a drawn layer", () => small.torchGenerator(1).linear(100, 100)],
    ["a permutation", () => small.torchGenerator(1).randperm(1e9)],
    ["whole numbers", () => small.torchGenerator(1).randint(0, 2, [1000])],
    ["a table of positions", () => small.ops.sinusoidal(2 ** 31 - 1, 2 ** 31 - 1)],
    ["a product", () => small.ops.linear(new Float32Array(100).map(Number).reduce(column, []), columnOf(100))],
    ["a product's inputs", () => small.ops.linear(new Float32Array(900), [new Float32Array(900)])],
    ["a softmax", () => small.ops.softmax(new Float32Array(600))],
    ["a norm", () => small.ops.layerNorm(new Float32Array(600))],
    ["a rotation", () => small.ops.rotary(new Float32Array(600), { cos: [1], sin: [1] })],
    ["an activation", () => small.ops.gelu(new Float32Array(600))],
    ["an entropy", () => small.analysis.entropy(tensor(new Float32Array(600), [1, 600]))],
    [
      "a rollout",
      () => small.analysis.rollout(Array.from({ length: 10 }, () => tensor(new Float32Array(100), [10, 10]))),
    ],
    ["a comparison", () => small.analysis.maskEffect(long, tensor(new Float32Array(800), [200, 4]))],
    ["labels", () => small.analysis.labelHeads(tensor(new Float32Array(600), [1, 1, 600]))],
    ["dropped numbers", () => small.torchGenerator(1).dropout(new Float32Array(600))],
    ["a file that is written", () => small.writeTensors({ a: new Float32Array(400), b: new Float32Array(300) }, "npz")],
    ["a mask", () => small.materialize(mask.causal(), { nQ: 2 ** 31, nK: 2 ** 31 })],
    ["a mask's bias", () => small.materialize(mask.alibi(1), { nQ: 50, nK: 50 })],
  ])("%s", async (_, run) => {
    const error = await caught(run);
    expect(error.code).toBe("too_large");
    expect(error.details).toMatchObject({ maxBytes: 4000 });
    expect(error.details.needed).toBeGreaterThan(4000);
  });

  test("what fits still works", async () => {
    const { weights } = await small.multiHeadAttention(SIZES).forward(X);
    expect(weights?.shape).toEqual([2, 2, 2]);
  });
});

const column = (rows: number[][], number: number) => [...rows, [number]];
const columnOf = (n: number) => Array.from({ length: n }, () => [1]);

describe("wrong input is named", () => {
  const past = [[1, 2, 3, 4]];
  const four = (rows: number[][]) => [[rows]];
  test.each<[string, string, ErrorDetails, () => unknown]>([
    ["a past of keys alone", "invalid_option", { option: "pastValue" }, () => sdpa({ pastKey: past })],
    ["a past of values alone", "invalid_option", { option: "pastKey" }, () => sdpa({ pastValue: past })],
    [
      "a past of another width",
      "shape_mismatch",
      { argument: "pastKey" },
      () => sdpa({ pastKey: [[1]], pastValue: past }),
    ],
    ["pasts of two lengths", "shape_mismatch", { argument: "pastValue" }, () => sdpa({ pastKey: past, pastValue: X })],
    [
      "a past that is no numbers",
      "invalid_tensor",
      { argument: "pastKey" },
      () => sdpa({ pastKey: [["a"]], pastValue: past }),
    ],
    [
      "lengths beside a past",
      "invalid_option",
      { option: "kvLengths" },
      () => sdpa({ pastKey: past, pastValue: past, kvLengths: [1] }),
    ],
    ["too many lengths", "invalid_option", { option: "kvLengths" }, () => sdpa({ kvLengths: [1, 2] })],
    ["a length beyond the keys", "invalid_option", { option: "kvLengths" }, () => sdpa({ kvLengths: [3] })],
    ["a scale that is none", "invalid_option", { option: "scale" }, () => sdpa({ scale: Number.NaN })],
    [
      "training without a generator",
      "invalid_option",
      { option: "generator" },
      () => block().forward(X, { training: true }),
    ],
    [
      "training of a module that drops nothing",
      "invalid_option",
      { option: "training" },
      () => mha().forward(X, { training: true } as object),
    ],
    [
      "a probability above 1",
      "invalid_option",
      { option: "dropout" },
      () => engine.transformerBlock({ ...SIZES, dropout: 1.5 }),
    ],
    [
      "a kind of norm that is none",
      "invalid_option",
      { option: "norm" },
      () => engine.transformerBlock({ ...SIZES, norm: "batch" as "rms" }),
    ],
    [
      "positions that are none",
      "invalid_option",
      { option: "positions" },
      () => engine.multiHeadAttention({ ...SIZES, positions: "learned" }),
    ],
    [
      "an odd rotary dimension",
      "invalid_option",
      { option: "rotaryDim" },
      () => engine.multiHeadAttention({ ...SIZES, positions: "rope", rotaryDim: 1 }),
    ],
    [
      "a base of zero",
      "invalid_option",
      { option: "ropeBase" },
      () => engine.multiHeadAttention({ ...SIZES, positions: "rope", ropeBase: 0 }),
    ],
    [
      "an odd rotary dimension where nothing is turned",
      "invalid_option",
      { option: "rotaryDim" },
      () => engine.multiHeadAttention({ ...SIZES, rotaryDim: 1 }),
    ],
    [
      "a base of zero where nothing is turned",
      "invalid_option",
      { option: "ropeBase" },
      () => engine.transformerBlock({ ...SIZES, ropeBase: 0 }),
    ],
    [
      "parallel branches of a post-norm block",
      "invalid_option",
      { option: "parallel" },
      () => engine.transformerBlock({ ...SIZES, parallel: true }),
    ],
    [
      "a final norm of a block",
      "invalid_option",
      { option: "finalNorm" },
      () => engine.transformerBlock({ ...SIZES, finalNorm: true }),
    ],
    [
      "layers of a block",
      "invalid_option",
      { option: "nLayers" },
      () => engine.decoderBlock({ ...SIZES, nLayers: 2 } as object as typeof SIZES),
    ],
    [
      "a stack without layers",
      "invalid_option",
      { option: "nLayers" },
      () => engine.decoder(SIZES as typeof SIZES & { nLayers: number }),
    ],
    [
      "more rows than learned positions",
      "shape_mismatch",
      { argument: "x" },
      () => engine.transformerBlock({ ...SIZES, positions: "learned", maxLength: 1 }).forward(X),
    ],
    [
      "a memory of another width",
      "shape_mismatch",
      { argument: "memory" },
      () => engine.decoderBlock(SIZES).forward(X, [[1, 2]]),
    ],
    [
      "a memory that is no tensor",
      "invalid_tensor",
      { argument: "memory" },
      () => engine.decoderBlock(SIZES).forward(X, undefined as never),
    ],
    [
      "a memory's mask that is none",
      "invalid_option",
      { option: "memoryMask" },
      () => engine.decoderBlock(SIZES).forward(X, X, { memoryMask: "causal" as never }),
    ],
    [
      "a memory's mask that does not fit",
      "mask_shape",
      {},
      () => engine.decoderBlock(SIZES).forward(X, X, { memoryMask: mask.fromKeep(four(X)) }),
    ],
    [
      "a layer of a stack",
      "invalid_option",
      { option: "layer" },
      () => engine.transformer({ ...SIZES, nLayers: 1 }).loadStateDict({}, { layer: 0 }),
    ],
    [
      "a layer that is no number",
      "invalid_option",
      { option: "layer" },
      () => mha().loadStateDict({}, { layer: "0" as never }),
    ],
    [
      "an unknown option of a dict",
      "invalid_option",
      { option: "strict" },
      () => mha().loadStateDict({}, { strict: false } as object),
    ],
    ["a probability that is none", "invalid_option", { option: "p" }, () => engine.torchGenerator(1).dropout(X, 2)],
    [
      "a padding that is no row",
      "invalid_option",
      { option: "paddingIdx" },
      () => engine.torchGenerator(1).embedding(3, 2, { paddingIdx: 3 }),
    ],
    ["rotary without cosines", "invalid_tensor", { argument: "cos" }, () => engine.ops.rotary(X, { sin: X } as never)],
    [
      "rotary of too few positions",
      "shape_mismatch",
      { argument: "cos" },
      () => engine.ops.rotary(X, { cos: [[1]], sin: [[0]] }),
    ],
    ["rotary of too many pairs", "shape_mismatch", { argument: "cos" }, () => engine.ops.rotary(X, { cos: X, sin: X })],
    [
      "a norm's weight of another shape",
      "shape_mismatch",
      { argument: "weight" },
      () => engine.ops.rmsNorm(X, { weight: [1] }),
    ],
    ["an epsilon below 0", "invalid_option", { option: "eps" }, () => engine.ops.rmsNorm(X, { eps: -1 })],
    ["a table that is no matrix", "invalid_option", { option: "table" }, () => mask.relative([1, 2])],
    [
      "a table of too few buckets",
      "invalid_option",
      { option: "relative" },
      () => engine.materialize(mask.relative([[1], [2]]), { nQ: 2, nK: 2 }),
    ],
    [
      "a table of other heads",
      "mask_shape",
      {},
      () => engine.materialize(mask.relative([[1], [2], [3], [4]]), { nQ: 2, nK: 2, nHeads: 2 }),
    ],
  ])("%s", async (_, code, details, run) => {
    const error = await caught(run);
    expect(error.message).not.toBe("");
    expect([error.code, error.details]).toEqual([code, expect.objectContaining(details)]);
  });

  test.each([
    ["attention", (options: object) => mha().forward(X, options)],
    ["a block", (options: object) => block().forward(X, options)],
    ["a decoder", (options: object) => engine.decoderBlock(SIZES).forward(X, X, options)],
    ["given heads", (options: object) => sdpa(options)],
    ["another mask", async (options: object) => (await mha().forward(X, { trace: true })).trace?.remask(null, options)],
  ])("the options that an unknown one of %s is told are all known", async (_, pass) => {
    const { details } = await caught(() => pass({ shape: 1 }));
    expect(details).toMatchObject({ option: "shape", found: "an unknown option" });
    const names = String(details.expected).replace("one of ", "").split(", ");
    expect(names).toEqual(expect.arrayContaining(["maskFill", "onProgress", "signal"]));
    for (const name of names) {
      const outcome = await Promise.resolve(pass({ [name]: Symbol("none") })).catch((error) => error.details?.found);
      expect([name, outcome]).not.toEqual([name, "an unknown option"]);
    }
  });

  test("a count beyond every size says what fits", async () => {
    const error = await caught(() => engine.multiHeadAttention({ ...SIZES, dK: 2 ** 40 }));
    expect(error.details).toMatchObject({ option: "dK", expected: "a whole number below 2^32" });
  });

  const mha = () => engine.multiHeadAttention(SIZES);
  const block = () => engine.transformerBlock({ ...SIZES, dropout: 0.5 });
  const sdpa = (options: object) => engine.scaledDotProductAttention(X, X, X, options);

  test("a generator of another engine", async () => {
    const other = await createEngine();
    const generator = other.torchGenerator(1);
    const error = await caught(() => block().forward(X, { training: true, generator }));
    expect([error.code, error.details]).toEqual(["invalid_option", expect.objectContaining({ option: "generator" })]);
    other.destroy();
  });
});
