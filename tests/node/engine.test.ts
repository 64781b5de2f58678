import { createEngine, type Explanation, type Mask, mask, type Tensor, Trace, tensor } from "attnscope";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

let engine: Awaited<ReturnType<typeof createEngine>>;
beforeAll(async () => {
  engine = await createEngine();
});
afterAll(() => engine.destroy());

const random = (seed: number, shape: number[]) => engine.torchGenerator(seed).randn(shape);
const at = (x: Tensor, i: number) => x.data[i] as number;

describe("the kernels against float64", () => {
  const sizes = [1, 2, 3, 5, 6, 7, 8, 9, 16, 17, 33, 65, 97, 257, 300];
  const shapes = sizes.flatMap((k, i) => [
    [sizes[(i * 5 + 3) % sizes.length] as number, k, sizes[(i * 7 + 1) % sizes.length] as number],
    [k, sizes[(i * 3 + 2) % sizes.length] as number, 1],
  ]);

  test.each(shapes)("linear %i x %i x %i", async (m, k, n) => {
    const [x, weight, bias] = await Promise.all([random(1, [m, k]), random(2, [n, k]), random(3, [n])]);
    const out = await engine.ops.linear(x, weight, bias);
    expect(out.shape).toEqual([m, n]);
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        let sum = at(bias, j);
        for (let p = 0; p < k; p++) sum += at(x, i * k + p) * at(weight, j * k + p);
        expect(Math.abs(at(out, i * n + j) - sum)).toBeLessThan(1e-6 * (4 + k));
      }
    }
  });

  test.each(sizes)("softmax, logSoftmax and layerNorm of %i", async (n) => {
    const x = await random(n, [3, n]);
    const [soft, log, norm] = await Promise.all([
      engine.ops.softmax(x),
      engine.ops.logSoftmax(x),
      engine.ops.layerNorm(x),
    ]);
    for (let row = 0; row < 3; row++) {
      const values = Array.from(x.data.slice(row * n, (row + 1) * n));
      const sum = values.reduce((sum, value) => sum + Math.exp(value), 0);
      const mean = values.reduce((sum, value) => sum + value, 0) / n;
      const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / n;
      values.forEach((value, i) => {
        expect(at(soft, row * n + i)).toBeCloseTo(Math.exp(value) / sum, 6);
        expect(at(log, row * n + i)).toBeCloseTo(value - Math.log(sum), 5);
        expect(at(norm, row * n + i)).toBeCloseTo((value - mean) / Math.sqrt(variance + 1e-5), 5);
      });
    }
  });

  test("softmax along another axis", async () => {
    const out = await engine.ops.softmax(
      [
        [1, 2],
        [1, 2],
      ],
      { axis: 0 },
    );
    expect(Array.from(out.data)).toEqual([0.5, 0.5, 0.5, 0.5]);
  });
});

/** The arithmetic of an explanation, done again. */
function recompute({ operation, terms, constants: c, value }: Explanation): number {
  const sum = terms.reduce((sum, term) => sum + term.product, 0);
  const constant = (name: string) => c[name] as number;
  switch (operation) {
    case "given":
      return value;
    case "dot":
      return (sum + constant("bias")) * (c.head_mask ?? 1);
    case "scale":
    case "sum":
      return sum;
    case "mask":
      return constant("allowed") ? constant("scaled") + constant("bias") : constant("fill");
    case "softmax":
      return constant("exp") / constant("sum");
    case "layer_norm":
      return (
        ((constant("x") - constant("mean")) / Math.sqrt(constant("variance") + constant("eps"))) * constant("weight") +
        constant("bias")
      );
    case "relu":
      return Math.max(0, constant("x"));
    default:
      throw new Error(operation);
  }
}

test("explain gives every cell of every stage of a stack", async () => {
  const stack = engine.transformer({ dModel: 6, nHeads: 2, nLayers: 2, seed: 3 });
  const { trace } = await stack.forward(await random(4, [4, 6]), { mask: mask.causal(), trace: true });
  if (!trace) throw new Error("no trace");
  expect(trace.nLayers).toBe(2);
  let cells = 0;
  for (const layer of [0, 1]) {
    for (const name of trace.stages) {
      const { data, shape } = trace.stage(name, { layer });
      for (const [flat, value] of data.entries()) {
        const index = shape.map((axis, i) => Math.floor(flat / shape.slice(i + 1).reduce((a, b) => a * b, 1)) % axis);
        const explanation = await trace.explain(name, index, { layer });
        expect(explanation.value).toBe(value);
        const size = explanation.terms.reduce((sum, term) => sum + Math.abs(term.product), 1 + Math.abs(value));
        expect(Math.abs(recompute(explanation) - value)).toBeLessThan(2e-6 * size);
        cells++;
      }
    }
  }
  expect(cells).toBeGreaterThan(900);
});

test("another mask on the same pass is a fresh pass", async () => {
  const x = await random(5, [7, 8]);
  const mha = engine.multiHeadAttention({ dModel: 8, nHeads: 4, seed: 1, residualNorm: true });
  const { trace } = await mha.forward(x, { trace: true });
  const painted = mask.fromKeep(
    Array.from({ length: 7 }, (_, i) => Array.from({ length: 7 }, (_, j) => (i * j) % 3 !== 1)),
  );
  for (const [next, options] of [
    [mask.causal(), {}],
    [painted, { maskFill: -Infinity, emptyRow: "zero" }],
    [null, { isCausal: true }],
  ] as const) {
    const again = await trace?.remask(next, options);
    const fresh = await mha.forward(x, { mask: next, ...options, trace: true });
    expect(again?.output).toEqual(fresh.output);
    expect(again?.weights).toEqual(fresh.weights);
    expect(again?.trace.toJSON()).toEqual(fresh.trace?.toJSON());
  }
});

test("pass after pass of a module is a fresh pass, whatever of the one before is there", async () => {
  const kept: Trace[] = [];
  const options = { dModel: 8, nHeads: 4, seed: 1, residualNorm: true };
  const mha = engine.multiHeadAttention(options);
  const x = await random(5, [7, 8]);
  const edits: (() => object)[] = [
    () => ({}),
    () => ({}),
    () => {
      x.data[3 * 8] = 2;
      return {};
    },
    () => ({ mask: mask.causal() }),
    () => {
      for (const trace of kept.splice(0)) trace.dispose();
      x.data[0] = -1;
      return { headMask: [1, 0, 1, 1] };
    },
    () => {
      x.data[6 * 8 + 7] = Number.NaN;
      return { headMask: [1, 0, 1, 1] };
    },
  ];
  for (const [step, edit] of edits.entries()) {
    const how = { trace: true, ...edit() } as const;
    const { output, weights, trace } = await mha.forward(x, how);
    kept.push(trace);
    const fresh = await engine.multiHeadAttention(options).forward(x, how);
    expect(output, `step ${step}`).toEqual(fresh.output);
    expect(weights).toEqual(fresh.weights);
    expect(trace.toJSON()).toEqual(fresh.trace.toJSON());
    expect(await trace.explain("query", [1, 3, 1])).toEqual(await fresh.trace.explain("query", [1, 3, 1]));
  }
  // Other parameters are others for the next pass too.
  const dict = await mha.stateDict();
  (dict["query.weight"] as Tensor).data[0] = 3;
  await mha.loadStateDict(dict);
  const other = engine.multiHeadAttention(options);
  await other.loadStateDict(dict);
  const [one, same] = [await mha.forward(x, { trace: true }), await other.forward(x, { trace: true })];
  expect(one.trace.toJSON()).toEqual(same.trace.toJSON());
});

test("every factory of masks, at a size", async () => {
  const rows = async (which: Mask, nQ = 4, nK = 4, nHeads = 1, batch = 1) => {
    const { allowed, shape } = await engine.materialize(which, { nQ, nK, nHeads, batch });
    expect(allowed).toHaveLength(shape.reduce((a, b) => a * b, 1));
    return Array.from({ length: allowed.length / nK }, (_, i) => allowed.slice(i * nK, (i + 1) * nK).join(""));
  };
  expect(await rows(mask.causal())).toEqual(["1000", "1100", "1110", "1111"]);
  expect(await rows(mask.padding(3), 2)).toEqual(["1110", "1110"]);
  expect(await rows(mask.padding([1, 4]), 1, 4, 1, 2)).toEqual(["1000", "1111"]);
  expect(await rows(mask.slidingWindow(2))).toEqual(["1100", "1110", "0111", "0011"]);
  expect(await rows(mask.slidingWindow({ left: 1, right: 0 }))).toEqual(["1000", "1100", "0110", "0011"]);
  expect(await rows(mask.prefix(2))).toEqual(["1100", "1100", "1110", "1111"]);
  expect(await rows(mask.documents([7, 7, -1, -1]))).toEqual(["1100", "1100", "0011", "0011"]);
  expect(await rows(mask.documents([7, 7, -1, -1]), 4, 3)).toEqual(["110", "110", "001", "001"]);
  expect(await rows(mask.documents([7, 7, -1, -1]), 3, 4)).toEqual(["1100", "1100", "0011"]);
  expect(await rows(mask.global([0]))).toEqual(["1111", "1000", "1000", "1000"]);
  expect(await rows(mask.dilated(2, 2))).toEqual(["1010", "0101", "1010", "0101"]);
  expect(await rows(mask.perHead([mask.causal(), mask.causal().not()]), 2, 2, 2)).toEqual(["10", "11", "01", "00"]);
  expect(await rows(mask.fromKeep([[true, false]]), 1, 2)).toEqual(["10"]);
  expect(await rows(mask.fromMasked([[true, false]]), 1, 2)).toEqual(["01"]);
  expect(await rows(mask.causal().and(mask.padding(2)))).toEqual(["1000", "1100", "1100", "1100"]);
  expect(await rows(mask.causal().or(mask.global([3])))).toEqual(["1001", "1101", "1111", "1111"]);
  const added = await engine.materialize(mask.additive([[0, -Infinity]]).and(mask.additive([[1, 2]])), {
    nQ: 1,
    nK: 2,
  });
  expect(Array.from(added.bias ?? [])).toEqual([1, -Infinity]);
  expect((await engine.materialize(mask.alibi(2), { nQ: 1, nK: 2, nHeads: 2 })).bias?.[1]).toBe(-0.0625);
});

test("a trace as JSON keeps every number, NaN and infinity too", async () => {
  const x = tensor([
    [1, Number.NaN],
    [Infinity, -0],
  ]);
  const { trace } = await engine.scaledDotProductAttention(x, x, x, {
    trace: true,
    maskFill: -Infinity,
    isCausal: true,
  });
  const back = Trace.fromJSON(JSON.stringify(trace));
  expect(back.stages).toEqual(trace?.stages);
  for (const name of back.stages) expect(back.stage(name)).toEqual(trace?.stage(name));
});

test("every name that a stack's trace lists is that of a stage, in some layer", async () => {
  const x = await random(8, [3, 8]);
  const sizes = { dModel: 8, nHeads: 2, finalNorm: true };
  for (const nLayers of [1, 2, 3]) {
    const decoded = await engine.decoder({ ...sizes, nLayers }).forward(x, x, { trace: true });
    const encoded = await engine.transformer({ ...sizes, nLayers, normFirst: true }).forward(x, { trace: true });
    for (const { trace } of [decoded, encoded]) {
      const [last, before] = [{ layer: nLayers - 1 }, { layer: nLayers - 2 }];
      expect(trace.nLayers).toBe(nLayers);
      expect(trace.stages.at(-1)).toBe("final_norm");
      for (const read of [trace, Trace.fromJSON(JSON.stringify(trace))]) {
        for (const name of read.stages) {
          const first = name === "final_norm" ? last : { layer: 0 };
          expect(read.stage(name)).toEqual(trace.stage(name, first));
          expect(read.shape(name)).toEqual(trace.shape(name, first));
          expect(await read.read(name)).toEqual(read.drawable(name));
        }
        expect(() => read.stage("final_norm", before)).toThrow("final_norm");
      }
      const cell = [0, 1];
      expect(await trace.explain("final_norm", cell)).toEqual(await trace.explain("final_norm", cell, last));
    }
  }
});

test("what is asked for is what comes back", async () => {
  const x = await random(6, [2, 5, 8]);
  const mha = engine.multiHeadAttention({ dModel: 8, nHeads: 2 });
  const all = await mha.forward(x);
  expect(all.weights?.shape).toEqual([2, 2, 5, 5]);
  expect(all.trace).toBeNull();
  expect((await mha.forward(x, { needWeights: false })).weights).toBeNull();
  const mean = (await mha.forward(x, { averageWeights: true })).weights;
  expect(mean?.shape).toEqual([2, 5, 5]);
  const weights = all.weights as Tensor;
  expect(mean?.data[0]).toBeCloseTo((at(weights, 0) + at(weights, 25)) / 2, 6);
  const off = await mha.forward(x, { headMask: [0, 1], trace: true });
  const silent = off.trace?.stage("context").data.slice(0, 20) ?? [];
  expect(silent.every((x) => x === 0)).toBe(true);
});

test("calls at the same time keep their results apart", async () => {
  const mha = engine.multiHeadAttention({ dModel: 8, nHeads: 2, seed: 9 });
  const inputs = await Promise.all(Array.from({ length: 20 }, (_, i) => random(i, [1 + (i % 5), 8])));
  const together = await Promise.all(inputs.map((x) => mha.forward(x)));
  for (const [i, x] of inputs.entries()) expect((await mha.forward(x)).output).toEqual(together[i]?.output);
});

test("what a user holds is a copy", async () => {
  const data = new Float32Array([1, 2, 3, 4]);
  const mine = tensor(data, [1, 4]);
  data.fill(0);
  expect(Array.from(mine.data)).toEqual([1, 2, 3, 4]);
});

test("a pass takes its inputs as they are when it is called", async () => {
  const mha = engine.multiHeadAttention({ dModel: 8, nHeads: 2, seed: 9 });
  const given = await random(4, [3, 8]);
  const expected = await mha.forward(given);
  const x = tensor(given);
  const pass = mha.forward(x);
  x.data.fill(0);
  expect((await pass).output).toEqual(expected.output);
  // One that is called from within another waits for it.
  x.data.set(given.data);
  let inner: ReturnType<typeof mha.forward> | undefined;
  const onProgress = () => {
    inner ??= mha.forward(x);
    x.data.fill(0);
  };
  await mha.forward(x, { onProgress });
  expect((await inner)?.output).toEqual(expected.output);
});

test("lists of options may be typed arrays of any kind", async () => {
  const x = await random(4, [3, 8]);
  const mha = engine.multiHeadAttention({ dModel: 8, nHeads: 2, seed: 9 });
  const plain = await mha.forward(x, { headMask: [0, 1] });
  for (const headMask of [Float32Array.of(0, 1), Float64Array.of(0, 1), Uint8Array.of(0, 1), Int32Array.of(0, 1)]) {
    expect((await mha.forward(x, { headMask })).output).toEqual(plain.output);
  }
  const qkv = await random(5, [2, 1, 3, 4]);
  const padded = await engine.scaledDotProductAttention(qkv, qkv, qkv, { kvLengths: [2, 3] });
  for (const kvLengths of [Uint32Array.of(2, 3), Uint8Array.of(2, 3), BigInt64Array.of(2n, 3n)]) {
    const { weights } = await engine.scaledDotProductAttention(qkv, qkv, qkv, { kvLengths });
    expect(weights).toEqual(padded.weights);
  }
});

test("what a caller gave may change when the call returns", async () => {
  const shape = [2, 3];
  const drawn = Promise.all([
    engine.torchGenerator(1).rand(shape),
    engine.torchGenerator(1).normal(shape),
    engine.torchGenerator(1).xavierUniform(shape),
    engine.torchGenerator(1).randint(0, 9, shape),
  ]);
  shape[0] = 9;
  expect((await drawn).map((tensor) => tensor.shape)).toEqual(Array(4).fill([2, 3]));
  const bytes = await engine.writeTensors({ a: [1, 2] }, "npy");
  const readings = [bytes, bytes.buffer as ArrayBuffer].map((file) => engine.readTensors(file));
  bytes.fill(0);
  for (const reading of readings) expect((await reading).tensor?.data).toEqual(Float32Array.of(1, 2));
});

test("what a generator cannot draw is refused by its promise", async () => {
  await expect(engine.torchGenerator(1).normal([1], 0, -1)).rejects.toMatchObject({ code: "invalid_option" });
});
