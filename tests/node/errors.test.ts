// Every error code that can be met, from JavaScript, with the place it names.
import {
  AttnError,
  createEngine,
  type Engine,
  type ErrorCode,
  type ErrorCodes,
  Mask,
  mask,
  Trace,
  tensor,
} from "attnscope";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";

let engine: Engine;
beforeAll(async () => {
  engine = await createEngine();
});
afterAll(() => engine.destroy());

async function caught(run: () => unknown): Promise<AttnError> {
  try {
    await run();
  } catch (error) {
    expect(error).toBeInstanceOf(AttnError);
    return error as AttnError;
  }
  throw new Error("nothing was thrown");
}

const X = [
  [1, 2, 3, 4],
  [5, 6, 7, 8],
];
const attention = () => engine.multiHeadAttention({ dModel: 4, nHeads: 2 });
// What a caller without types can do.
const untyped = (value: unknown) => value as never;

/** A refusal: its code, what is refused, and some of the details that its code has. */
type Case = { [Code in ErrorCode]: [Code, string, () => unknown, Partial<ErrorCodes[Code]>] }[ErrorCode];

const cases: Case[] = [
  [
    "not_divisible",
    "heads that do not divide",
    () => engine.multiHeadAttention({ dModel: 10, nHeads: 4 }),
    { dModel: 10, nHeads: 4 },
  ],
  [
    "not_divisible",
    "a block's heads",
    () => engine.transformerBlock({ dModel: 10, nHeads: 4 }),
    { dModel: 10, nHeads: 4 },
  ],
  [
    "invalid_option",
    "masks too deep in each other",
    () => Array.from({ length: 64 }).reduce((inner: Mask) => inner.not(), mask.causal()),
    { option: "mask", found: "65", expected: "at most 64 masks inside each other" },
  ],
  [
    "invalid_option",
    "a mask joined with itself again and again",
    () => Array.from({ length: 40 }).reduce((inner: Mask) => inner.and(inner), mask.causal()),
    { option: "mask", expected: "at most 4096 rules" },
  ],
  [
    "invalid_option",
    "an unknown option of a module",
    () => engine.multiHeadAttention(untyped({ dModel: 4, nHeads: 2, heads: 2 })),
    { option: "heads" },
  ],
  [
    "invalid_option",
    "an unknown option of a pass",
    () => attention().forward(X, untyped({ causal: true })),
    { option: "causal" },
  ],
  ["invalid_option", "an unknown option of the engine", () => createEngine(untyped({ gpu: true })), { option: "gpu" }],
  [
    "invalid_option",
    "a maker of workers where there are none",
    () => createEngine({ worker: () => new Worker("worker.js") }),
    { option: "worker", expected: "true or false" },
  ],
  [
    "invalid_option",
    "a worker that is neither wished nor made",
    () => createEngine({ worker: untyped("worker.js") }),
    { option: "worker", found: '"worker.js"', expected: "true, false or a function that makes a Worker" },
  ],
  [
    "invalid_option",
    "a size that is missing",
    () => engine.multiHeadAttention(untyped({ dModel: 4 })),
    { option: "nHeads", found: "undefined" },
  ],
  [
    "invalid_option",
    "a size of zero",
    () => engine.multiHeadAttention({ dModel: 4, nHeads: 0 }),
    { option: "nHeads", found: "0" },
  ],
  [
    "invalid_option",
    "a size that is not whole",
    () => engine.multiHeadAttention({ dModel: 4.5, nHeads: 1 }),
    { option: "dModel", found: "4.5" },
  ],
  [
    "invalid_option",
    "a size that is negative",
    () => engine.multiHeadAttention({ dModel: -4, nHeads: 1 }),
    { option: "dModel", found: "-4" },
  ],
  [
    "invalid_option",
    "a wrong type",
    () => attention().forward(X, untyped({ isCausal: "yes" })),
    { option: "isCausal", found: '"yes"', expected: "a boolean" },
  ],
  [
    "invalid_option",
    "a word that is none of the choices",
    () => engine.transformerBlock(untyped({ dModel: 4, nHeads: 2, activation: "tanh" })),
    { option: "activation", found: '"tanh"' },
  ],
  [
    "invalid_option",
    "a head mask of the wrong length",
    () => attention().forward(X, { headMask: [1] }),
    { option: "headMask" },
  ],
  [
    "invalid_option",
    "a generator where there is no dropout",
    () => attention().forward(X, untyped({ generator: engine.torchGenerator(0) })),
    { option: "generator", found: "an unknown option" },
  ],
  [
    "invalid_option",
    "a number beyond float32",
    () => engine.multiHeadAttention({ dModel: 4, nHeads: 2, scale: 1e300 }),
    { option: "scale", found: "1e+300", expected: "a number that float32 holds" },
  ],
  [
    "invalid_option",
    "a softcap that float32 has as 0, which is off",
    () => engine.scaledDotProductAttention(X, X, X, { softcap: 1e-300 }),
    { option: "softcap", found: "1e-300" },
  ],
  [
    "invalid_option",
    "a norm's eps without end",
    () => engine.ops.layerNorm(X, { eps: Number.POSITIVE_INFINITY }),
    { option: "eps", found: "Infinity" },
  ],
  [
    "invalid_option",
    "a tensor where a list is expected",
    () => attention().forward(X, { headMask: untyped(tensor([1, 0])) }),
    { option: "headMask", found: "an object", expected: "a list" },
  ],
  ["invalid_option", "no rule of a mask", () => new Mask(untyped(null)), { option: "mask", found: "null" }],
  [
    "invalid_tensor",
    "a name too long for npz",
    () => engine.writeTensors({ ["a".repeat(70_000)]: [1] }, "npz"),
    { found: "a longer name" },
  ],
  [
    "invalid_option",
    "more tensors than npz may hold",
    () => engine.writeTensors(Object.fromEntries(Array.from({ length: 65_001 }, (_, i) => [`t${i}`, [1]])), "npz"),
    { option: "format", found: "npz", expected: "safetensors or json for more than 65000 tensors" },
  ],
  [
    "invalid_option",
    "options in a map",
    () => engine.scaledDotProductAttention(X, X, X, untyped(new Map([["scale", 2]]))),
    { option: "options", found: "a Map" },
  ],
  ["invalid_option", "options in a list", () => createEngine(untyped([])), { option: "options" }],
  [
    "invalid_option",
    "a length beyond a mask's",
    () => mask.padding(2 ** 31),
    { option: "lengths[0]", expected: "a whole number from 0 to 2^31 - 1" },
  ],
  ...[1n, "0", true, null, {}, Symbol("0"), Object.create(null)].flatMap((value): Case[] => [
    [
      "invalid_option",
      "a mean that is none",
      () => engine.torchGenerator(0).normal([2], untyped(value)),
      { option: "mean" },
    ],
    [
      "invalid_option",
      "a deviation that is none",
      () => engine.torchGenerator(0).normal([2], 0, untyped(value)),
      { option: "std" },
    ],
  ]),
  [
    "invalid_option",
    "bytes that were moved away",
    () => {
      const bytes = new Uint8Array(8);
      structuredClone(bytes, { transfer: [bytes.buffer] });
      return engine.readTensors(bytes);
    },
    { option: "file" },
  ],
  ...[{}, new Map([["a", [1]]]), tensor([1]), [1]].map(
    (value): Case => [
      "invalid_tensor",
      "no tensors by name",
      () => engine.writeTensors(untyped(value), "json"),
      { argument: "tensors" },
    ],
  ),
  [
    "invalid_tensor",
    "a name that safetensors keeps for itself",
    () => engine.writeTensors({ __metadata__: [1] }, "safetensors"),
    { argument: "__metadata__" },
  ],
  [
    "invalid_option",
    "a softcap below zero",
    () => engine.scaledDotProductAttention(X, X, X, { softcap: -1 }),
    { option: "softcap" },
  ],
  [
    "invalid_option",
    "no number of layers",
    () => engine.transformer(untyped({ dModel: 4, nHeads: 2 })),
    { option: "nLayers" },
  ],
  ["invalid_option", "no options where a module needs them", () => engine.multiHeadAttention(untyped(undefined)), {}],
  ["invalid_option", "options that are none", () => attention().forward(X, untyped(5)), { option: "options" }],
  [
    "invalid_option",
    "one of several numbers",
    () => attention().forward(X, { headMask: untyped([1, "a"]) }),
    { option: "headMask[1]", found: '"a"', expected: "a number" },
  ],
  [
    "invalid_option",
    "a generator of another engine",
    async () =>
      engine.multiHeadAttention({ dModel: 4, nHeads: 2, generator: (await createEngine()).torchGenerator(0) }),
    { option: "generator" },
  ],
  ["invalid_option", "a seed beyond PyTorch's", () => engine.torchGenerator(2n ** 64n), { option: "seed" }],
  ["invalid_option", "no thread at all", () => createEngine({ threads: 0 }), { option: "threads" }],
  [
    "invalid_option",
    "a mask without rows",
    () => engine.materialize(mask.causal(), { nQ: 0, nK: 1 }),
    { option: "nQ" },
  ],
  [
    "too_large",
    "a stack of too many layers",
    () => engine.transformer({ dModel: 64, nHeads: 2, nLayers: 1 << 20 }),
    {},
  ],
  ["invalid_option", "a word of bytes", () => createEngine({ maxBytes: untyped("5") }), { option: "maxBytes" }],
  [
    "invalid_option",
    "a false mask",
    () => engine.scaledDotProductAttention(X, X, X, { mask: untyped(0) }),
    { option: "mask" },
  ],
  ["invalid_option", "a window below zero", () => mask.slidingWindow(-1), { option: "width", found: "-1" }],
  ["invalid_option", "not a mask", () => attention().forward(X, { mask: untyped([[1]]) }), { option: "mask" }],
  [
    "invalid_option",
    "the opposite of a bias",
    () => attention().forward(X, { mask: mask.alibi(2).not() }),
    { option: "not" },
  ],
  [
    "invalid_option",
    "an axis that is not there",
    () => engine.ops.softmax(X, { axis: 2 }),
    { option: "axis", found: "2" },
  ],
  ["invalid_option", "an empty range", async () => engine.torchGenerator(0).randint(3, 3, [1]), { option: "high" }],
  [
    "invalid_option",
    "a convention that is none",
    () => mask.causal().toTorch(untyped("numpy")),
    { option: "convention", found: '"numpy"' },
  ],
  [
    "invalid_tensor",
    "nothing to be written",
    () => engine.writeTensors(untyped(null), "npy"),
    { argument: "tensors", found: "null" },
  ],
  ["invalid_tensor", "a word to be written", () => engine.writeTensors(untyped("npy"), "npy"), { found: "npy" }],
  ["invalid_option", "no file", () => engine.readTensors(untyped(undefined)), { option: "file", found: "undefined" }],
  ["invalid_option", "numbers for a file", () => engine.readTensors(untyped(new Float32Array(8))), { option: "file" }],
  [
    "invalid_tensor",
    "a list in itself",
    () => {
      const list: unknown[] = [];
      list[0] = list;
      return tensor(untyped(list));
    },
    { expected: "at most 64" },
  ],
  [
    "invalid_tensor",
    "a shape with a hole",
    () => tensor([1, 2], untyped(Object.assign(Array(2), { 1: 2 }))),
    { argument: "tensor" },
  ],
  ["invalid_tensor", "a ragged array", () => tensor([[1, 2], [3]]), { path: [1] }],
  [
    "invalid_tensor",
    "a word",
    () => attention().forward([[1, 2, 3, 4], untyped([5, 6, "abc", 8])]),
    { argument: "x", path: [1, 2], found: "abc" },
  ],
  ["invalid_tensor", "nothing", () => tensor([]), { found: "an empty array" }],
  ["invalid_tensor", "an empty row", () => tensor([[]]), { found: "an empty array" }],
  ["invalid_tensor", "too few numbers", () => tensor([1, 2, 3], [2, 2]), { found: "3 numbers" }],
  ["invalid_tensor", "null", () => attention().forward(untyped(null)), { argument: "x", found: "null" }],
  ["shape_mismatch", "x of the wrong width", () => attention().forward([[1, 2]]), { argument: "x", found: [1, 2] }],
  [
    "shape_mismatch",
    "keys and values of different lengths",
    () => attention().forward(X, { key: X, value: [X[0] as number[]] }),
    { argument: "value" },
  ],
  ["shape_mismatch", "keys of another width", () => engine.scaledDotProductAttention(X, [[1]], X), { argument: "key" }],
  ["shape_mismatch", "a bias of the wrong size", () => engine.ops.linear(X, X, [1]), { argument: "bias" }],
  [
    "mask_shape",
    "a mask that fits no scores",
    () => attention().forward(X, { mask: mask.fromKeep([[1, 1, 1]]) }),
    { mask: [1, 3], scores: [1, 2, 2, 2] },
  ],
  [
    "mask_shape",
    "a mask for each of three heads",
    () => attention().forward(X, { mask: mask.perHead([mask.causal()]) }),
    { mask: [1] },
  ],
  ["bad_state_dict", "nothing in it", () => attention().loadStateDict({}), { entry: "query.weight" }],
  [
    "no_such_stage",
    "a stage that is not there",
    async () => (await attention().forward(X, { trace: true })).trace?.stage("norm"),
    { stage: "norm", layer: 0 },
  ],
  [
    "no_such_stage",
    "a layer that is not there",
    async () => (await attention().forward(X, { trace: true })).trace?.stage("scores", { layer: 1 }),
    { layer: 1 },
  ],
  [
    "no_engine",
    "a trace from a file",
    async () =>
      Trace.fromJSON((await attention().forward(X, { trace: true })).trace?.toJSON() ?? "").explain(
        "weights",
        [0, 0, 0],
      ),
    {},
  ],
  [
    "bad_file",
    "a trace without stages",
    () => Trace.fromJSON(untyped({ format: "attnscope-trace/1" })),
    { format: "json" },
  ],
  ...[
    { data: [1], shape: [2] },
    { data: ["x"], shape: [1] },
  ].map(
    (stage): Case => [
      "bad_file",
      `a trace of ${JSON.stringify(stage)}`,
      () => Trace.fromJSON(untyped({ format: "attnscope-trace/1", stages: [{ name: "scores", layer: 0, ...stage }] })),
      { format: "json" },
    ],
  ),
  [
    "bad_file",
    "a trace with a stage twice",
    async () => {
      const { trace } = await attention().forward(X, { trace: true });
      const json = trace.toJSON();
      return Trace.fromJSON({ ...json, stages: [...json.stages, ...json.stages] });
    },
    { format: "json" },
  ],
  [
    "invalid_option",
    "an unknown option of a stage",
    async () => (await attention().forward(X, { trace: true })).trace.stage("scores", untyped({ Layer: 1 })),
    { option: "Layer" },
  ],
  [
    "invalid_option",
    "an unknown option of a cell",
    async () => (await attention().forward(X, { trace: true })).trace.explain("scores", [0, 0, 0], untyped({ lyr: 1 })),
    { option: "lyr" },
  ],
  ["bad_file", "a trace that is none", () => Trace.fromJSON("{"), { format: "json" }],
  [
    "bad_file",
    "a trace with a stage that is none",
    () => Trace.fromJSON(untyped({ format: "attnscope-trace/1", stages: [{}] })),
    { stage: 0 },
  ],
  ["gpu_unavailable", "the GPU asked for by name", () => createEngine({ backend: "webgpu" }), { backend: "webgpu" }],
];

describe("errors", () => {
  test.each(cases)("%s: %s", async (code, _, run, details) => {
    const error = await caught(run);
    expect(error.message).not.toBe("");
    expect(error.code).toBe(code);
    expect(error.details).toMatchObject(details);
  });

  test("too_large: refused before it is allocated", async () => {
    const small = await createEngine({ maxBytes: 1000 });
    const long = tensor(new Float32Array(100), [100, 1]);
    const error = await caught(() => small.scaledDotProductAttention(long, long, long));
    expect(error.code).toBe("too_large");
    expect(error.details).toMatchObject({ maxBytes: 1000 });
    const huge = await caught(() => engine.multiHeadAttention({ dModel: 1 << 20, nHeads: 1 }).forward(X));
    expect(huge.code).toBe("too_large");
  });

  test("a bad entry names itself, and nothing is half loaded", async () => {
    const mha = attention();
    const before = await mha.stateDict();
    const { "out.bias": _, ...missing } = before;
    expect((await caught(() => mha.loadStateDict(missing))).details.entry).toBe("out.bias");
    expect((await caught(() => mha.loadStateDict({ ...before, extra: [1] }))).details.entry).toBe("extra");
    const wrong = { ...before, "key.weight": [[1]] };
    expect((await caught(() => mha.loadStateDict(wrong))).details.entry).toBe("key.weight");
    expect(await mha.stateDict()).toEqual(before);
  });

  test("disposed: an engine that was destroyed", async () => {
    const gone = await createEngine();
    const mha = gone.multiHeadAttention({ dModel: 4, nHeads: 2 });
    const { trace } = await mha.forward(X, { trace: true });
    gone.destroy();
    gone.destroy();
    for (const run of [
      () => mha.forward(X),
      () => mha.stateDict(),
      () => gone.scaledDotProductAttention(X, X, X),
      () => gone.ops.relu(X),
      () => gone.torchGenerator(1),
      () => gone.multiHeadAttention({ dModel: 4, nHeads: 2 }),
      () => trace?.explain("weights", [0, 0, 0]),
      () => gone.materialize(mask.causal(), { nQ: 1, nK: 1 }),
    ]) {
      expect((await caught(run)).code).toBe("disposed");
    }
    // The numbers that were copied over stay.
    expect(trace?.stage("weights").shape).toEqual([2, 2, 2]);
  });
});

test("invalid_option: what was to make a worker made none", async () => {
  vi.stubGlobal("Worker", class {});
  const error = await caught(() => createEngine({ worker: () => untyped({}) }));
  vi.unstubAllGlobals();
  expect(error.code).toBe("invalid_option");
  expect(error.details).toMatchObject({ option: "worker", expected: "a function that makes a Worker" });
});

test("invalid_option: what is no address is none where a page has one of its own", async () => {
  vi.stubGlobal("location", { href: "http://localhost/" });
  for (const gpu of [null, true, 7]) {
    const { code, details } = await caught(() => createEngine(untyped({ gpu })));
    expect({ code, details }).toMatchObject({ code: "invalid_option", details: { option: "gpu" } });
  }
  vi.unstubAllGlobals();
});

test("no_engine: a worker that does not load, does not answer, or is not made, and what it says else", async () => {
  vi.useFakeTimers();
  class Script {
    static latest: Script;
    onmessage: ((event: { data: unknown }) => void) | null = null;
    onerror: ((event: { message?: string }) => void) | null = null;
    posted: object[] = [];
    isEnded = false;
    constructor() {
      Script.latest = this;
    }
    postMessage(message: object) {
      this.posted.push(message);
    }
    terminate() {
      this.isEnded = true;
    }
  }
  vi.stubGlobal("Worker", Script);
  const start = () => caught(() => createEngine({ worker: () => untyped(new Script()) }));
  const details = { part: "the engine's worker" };
  try {
    let refused = start();
    await vi.waitUntil(() => Script.latest?.posted.length);
    for (const data of ["another script", null, 7, { type: "log" }]) Script.latest.onmessage?.({ data });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await refused).toMatchObject({ code: "no_engine", details });
    expect(Script.latest.isEnded).toBe(true);
    refused = start();
    Script.latest.onerror?.({ message: "SyntaxError" });
    expect(await refused).toMatchObject({ code: "no_engine", details: { ...details, found: "SyntaxError" } });
    refused = caught(() =>
      createEngine({
        worker: () => {
          throw new RangeError("no more workers");
        },
      }),
    );
    expect(await refused).toMatchObject({ code: "no_engine", details: { found: "RangeError: no more workers" } });
  } finally {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  }
});

test("an error tells of what it found in few words", async () => {
  const long = "a".repeat(500);
  const [numbers, matrix] = [new Float32Array(2e5), Array.from({ length: 500 }, () => Array(500).fill(1))];
  const found: [() => unknown, string][] = [
    [() => attention().forward(X, { mask: untyped(matrix) }), "an array of 500"],
    [() => attention().forward(X, { mask: untyped(Object.create(null)) }), "an object"],
    [() => attention().forward(X, { signal: untyped(Promise.resolve()) }), "a Promise"],
    [() => engine.readTensors(untyped(numbers)), "a Float32Array of 200000"],
    [() => engine.readTensors("1", { format: untyped(() => 1) }), "a function"],
    [() => engine.torchGenerator(2n ** 64n), "a bigint 18446744073709551616n"],
    [() => engine.analysis.rollout(untyped(numbers)), "a Float32Array of 200000"],
    [() => engine.analysis.labelHeads([[[1]]], { tokens: untyped(long) }), `"${long.slice(0, 100)}…"`],
    [() => attention().loadStateDict(untyped(Symbol(long))), `Symbol(${long.slice(0, 93)}…`],
    [() => tensor(untyped([1n])), "a bigint 1n"],
    [() => tensor(untyped(["1"])), '"1"'],
    [() => tensor(untyped({ data: "12", shape: [2] })), '"12"'],
    [() => tensor([1], Array(64).fill(2)), "1 numbers"],
    [() => tensor([1], Array(1e5).fill(2)), "more than 64 axes"],
    [() => Trace.fromJSON(untyped({ format: matrix })), "format an array of 500"],
    [() => engine.materialize(mask.causal(), untyped({ nQ: 1, nK: 1, heads: 2 })), "an unknown option"],
    [() => engine.ops.softmax(X, untyped({ dim: 1 })), "an unknown option"],
  ];
  for (const [run, words] of found) {
    const { message } = await caught(run);
    expect(message.length).toBeLessThan(300);
    expect(message).toContain(`found ${words}`);
  }
});

test("an option that is undefined is its default", async () => {
  const mha = engine.multiHeadAttention({ dModel: 4, nHeads: 2, bias: undefined, dK: undefined });
  const plain = await mha.forward(X);
  expect(await mha.forward(X, { isCausal: undefined, mask: undefined, maskFill: undefined })).toEqual(plain);
});

test("engine_crashed: a trap is reported, later calls are refused, a new engine works", async () => {
  const table = await import("../../dist/wasm/attnscope.js");
  const trap = vi.spyOn(table.RawAttention.prototype, "plan").mockImplementation(() => {
    throw new WebAssembly.RuntimeError("unreachable");
  });
  const log = vi.spyOn(console, "error").mockReturnValue();
  const broken = await createEngine();
  const mha = broken.multiHeadAttention({ dModel: 4, nHeads: 2 });
  expect((await caught(() => mha.forward(X))).code).toBe("engine_crashed");
  expect(log).toHaveBeenCalledExactlyOnceWith(expect.any(WebAssembly.RuntimeError));
  log.mockRestore();
  trap.mockRestore();
  expect((await caught(() => mha.forward(X))).code).toBe("engine_crashed");
  expect((await caught(() => broken.ops.relu(X))).code).toBe("engine_crashed");
  broken.destroy();

  const fresh = await createEngine();
  const { weights } = await fresh.multiHeadAttention({ dModel: 4, nHeads: 2 }).forward(X);
  expect(weights?.shape).toEqual([2, 2, 2]);
  expect((await caught(() => mha.forward(X))).code).toBe("disposed");
  fresh.destroy();
});
