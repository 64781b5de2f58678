// engine.analysis, through the built package.
import { AttnError, createEngine, type Engine, mask, type Tensor, tensor } from "attnscope";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

let engine: Engine;
beforeAll(async () => {
  engine = await createEngine();
});
afterAll(() => engine.destroy());

const at = (x: Tensor | undefined, i: number) => x?.data[i] as number;
const random = (seed: number, shape: number[]) => engine.torchGenerator(seed).randn(shape);
const square = (n: number, cell: (i: number, j: number) => number) =>
  Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => cell(i, j)));
// What a caller without types can do.
const untyped = (value: unknown) => value as never;

async function pass(n = 7, batch: number[] = []) {
  const x = await random(1, [...batch, n, 12]);
  const mha = engine.multiHeadAttention({ dModel: 12, nHeads: 3, seed: 2 });
  const [open, hidden] = await Promise.all([mha.forward(x), mha.forward(x, { mask: mask.causal() })]);
  return { x, mha, open, hidden, weights: hidden.weights as Tensor };
}

test("entropy, effective keys and distance of each row", async () => {
  const { weights } = await pass(7, [2]);
  const [entropy, keys, distance] = await Promise.all([
    engine.analysis.entropy(weights),
    engine.analysis.effectiveKeys(weights),
    engine.analysis.meanDistance(weights, { offset: 3 }),
  ]);
  for (const { shape } of [entropy, keys, distance]) expect(shape).toEqual([2, 3, 7]);
  for (let row = 0; row < 42; row++) {
    const shares = Array.from(weights.data.subarray(row * 7, row * 7 + 7));
    const nats = shares.reduce((sum, w) => sum - (w > 0 ? w * Math.log(w) : 0), 0);
    expect(at(entropy, row)).toBeCloseTo(nats, 5);
    expect(at(keys, row)).toBeCloseTo(Math.exp(nats), 5);
    expect(at(distance, row)).toBeCloseTo(
      shares.reduce((sum, w, j) => sum + w * Math.abs((row % 7) + 3 - j), 0),
      5,
    );
  }
  const rows = await engine.analysis.entropy([
    [1, 0],
    [0, 0],
    [Number.NaN, 1],
  ]);
  expect(Array.from(rows.data)).toEqual([0, 0, Number.NaN]);
});

describe("labels", () => {
  test("of known heads", async () => {
    const n = 6;
    const heads = [
      square(n, (i, j) => Number(j === Math.max(i - 1, 0))),
      square(n, (_, j) => Number(j === 0)),
      square(n, (i, j) => Number(j === i)),
      square(n, (i, j) => (j <= i ? 1 / (i + 1) : 0)),
      square(n, (i, j) => Number(j === (i < 3 ? i : i - 3))),
      square(n, (i, j) => (j > i ? 0 : i === 0 ? 1 : j === i - 1 ? 0.3 : 0.7 / i)),
    ];
    const tokens = ["the", "cat", "sat", "the", "cat", "sat"];
    const labels = await engine.analysis.labelHeads(heads, { tokens, mask: mask.causal() });
    expect(labels.map(({ label }) => label)).toEqual([
      "previous_token",
      "first_token",
      "diagonal",
      "uniform",
      "same_token",
      "mixed",
    ]);
    for (const { label, score, scores } of labels) expect(score).toBe(label === "mixed" ? null : scores[label]);
    expect(labels[0]?.scores.next_token).toBeNull();
    expect(labels[3]?.scores.first_token).toBeCloseTo(labels[3]?.chance.first_token as number, 6);
    expect(await engine.analysis.labelHeads(heads, { tokens: [1, 2, 3, 1, 2, 3] })).toEqual(labels);
    expect((await engine.analysis.labelHeads(heads))[4]?.scores.same_token).toBeNull();
  });

  test("of a batch, whose entries have tokens of their own", async () => {
    const batch = [[square(4, (i, j) => Number(j === (i + 2) % 4))], [square(4, (i, j) => Number(j === (i ^ 1)))]];
    const tokens = [
      [8, 9, 8, 9],
      [8, 8, 9, 9],
    ];
    const [head, ...others] = await engine.analysis.labelHeads(batch, { tokens });
    expect(head).toMatchObject({ label: "same_token", score: 1 });
    expect(others).toEqual([]);
    const [shared] = await engine.analysis.labelHeads(batch, { tokens: Int32Array.of(8, 9, 8, 9) });
    expect(shared?.scores.same_token).toBe(0.5);
  });

  test("of queries behind cached keys", async () => {
    const step = [Array.from({ length: 3 }, (_, i) => Array.from({ length: 8 }, (_, j) => Number(j === i + 4)))];
    expect(await engine.analysis.labelHeads(step, { offset: 5 })).toMatchObject([{ label: "previous_token" }]);
  });
});

test("rollout is the product of the layers", async () => {
  const stack = engine.transformer({ dModel: 8, nHeads: 2, nLayers: 3, seed: 1 });
  const { weights } = await stack.forward(await random(2, [5, 8]), { mask: mask.causal() });
  for (const residual of [true, false]) {
    const rolled = await engine.analysis.rollout(weights ?? [], { residual });
    expect(rolled.shape).toEqual([5, 5]);
    let product = square(5, (i, j) => Number(i === j));
    for (const layer of weights ?? []) {
      const mixing = square(5, (i, j) => {
        const mean = (at(layer, i * 5 + j) + at(layer, 25 + i * 5 + j)) / 2;
        return residual ? (mean + Number(i === j)) / 2 : mean;
      });
      const old = product;
      product = mixing.map((row) => row.map((_, j) => row.reduce((sum, w, k) => sum + w * (old[k]?.[j] as number), 0)));
    }
    product.flat().forEach((expected, cell) => {
      expect(at(rolled, cell)).toBeCloseTo(expected, 6);
    });
  }
  const batch = await pass(4, [2]);
  expect((await engine.analysis.rollout([batch.weights])).shape).toEqual([2, 4, 4]);
});

test("what a mask freed, and how far the outputs moved", async () => {
  const { open, hidden, weights } = await pass();
  const before = open.weights as Tensor;
  const { change, freed, freedByHead, gains } = await engine.analysis.maskEffect(before, weights);
  expect([change.shape, freed.shape, freedByHead.shape]).toEqual([[3, 7, 7], [3, 7], [3]]);
  for (let row = 0; row < 21; row++) {
    // A causal mask frees what lay after the query.
    const after = before.data.subarray(row * 7 + (row % 7) + 1, row * 7 + 7);
    expect(at(freed, row)).toBeCloseTo(
      after.reduce((sum, w) => sum + w, 0),
      6,
    );
  }
  expect(at(freedByHead, 1)).toBeCloseTo(
    freed.data.subarray(7, 14).reduce((sum, w) => sum + w, 0),
    5,
  );
  expect(gains).toHaveLength(10);
  expect(gains[0]?.index.slice(1)).toEqual([0, 0]);
  for (const { index, change: gain } of gains) {
    const [head = 0, query = 0, key = 0] = index;
    expect(gain).toBe(at(change, (head * 7 + query) * 7 + key));
  }

  const { distance, cosine } = await engine.analysis.moved(open.output, hidden.output);
  for (let row = 0; row < 7; row++) {
    const [a, b] = [open.output, hidden.output].map(({ data }) => Array.from(data.subarray(row * 12, row * 12 + 12)));
    const sum = (of: (a: number, b: number) => number) =>
      (a ?? []).reduce((sum, x, i) => sum + of(x, b?.[i] as number), 0);
    expect(at(distance, row)).toBeCloseTo(Math.sqrt(sum((a, b) => (a - b) ** 2)), 5);
    const lengths = Math.sqrt(sum((a) => a * a) * sum((_, b) => b * b));
    expect(at(cosine, row)).toBeCloseTo(sum((a, b) => a * b) / lengths, 5);
  }
  // The last query sees every key either way.
  expect(at(distance, 6)).toBeCloseTo(0, 6);
});

test("ablation is the pass with the head switched off", async () => {
  const { x, mha, hidden } = await pass(5, [2]);
  const moved = await engine.analysis.ablation(mha, x, { mask: mask.causal() });
  expect(moved.shape).toEqual([2, 3, 5]);
  for (let head = 0; head < 3; head++) {
    const headMask = [0, 1, 2].map((other) => Number(other !== head));
    const without = await mha.forward(x, { mask: mask.causal(), headMask });
    const { distance } = await engine.analysis.moved(hidden.output, without.output);
    for (let row = 0; row < 10; row++) {
      expect(at(moved, (Math.floor(row / 5) * 3 + head) * 5 + (row % 5))).toBe(at(distance, row));
    }
  }
  const memory = await random(5, [9, 12]);
  expect((await engine.analysis.ablation(mha, await random(6, [2, 12]), { key: memory })).shape).toEqual([3, 2]);
});

describe("refusals", () => {
  const ROWS = [[0.5, 0.5]];
  const HEADS = [square(3, () => 1 / 3)];
  const attention = () => engine.multiHeadAttention({ dModel: 2, nHeads: 1 });
  const cases: [string, string, () => Promise<unknown>, object][] = [
    ["shape_mismatch", "one axis", () => engine.analysis.entropy([0.5, 0.5]), { argument: "weights" }],
    ["shape_mismatch", "labels of one matrix", () => engine.analysis.labelHeads(ROWS), { argument: "weights" }],
    [
      "shape_mismatch",
      "labels of one matrix under a mask",
      () => engine.analysis.labelHeads(ROWS, { mask: mask.causal() }),
      { argument: "weights" },
    ],
    [
      "shape_mismatch",
      "tokens of another length",
      () => engine.analysis.labelHeads(HEADS, { tokens: [1, 2] }),
      { argument: "tokens", found: [2] },
    ],
    ["shape_mismatch", "rollout of rectangles", () => engine.analysis.rollout([[ROWS]]), { argument: "weights[0]" }],
    [
      "shape_mismatch",
      "layers of two sizes",
      () => engine.analysis.rollout([HEADS, [square(2, () => 0.5)]]),
      { argument: "weights[1]" },
    ],
    ["shape_mismatch", "an effect of two shapes", () => engine.analysis.maskEffect(ROWS, HEADS), { argument: "after" }],
    ["shape_mismatch", "moves of two shapes", () => engine.analysis.moved(ROWS, [[1]]), { argument: "after" }],
    ["shape_mismatch", "ablation of another width", () => engine.analysis.ablation(attention(), HEADS), {}],
    [
      "mask_shape",
      "a mask that does not fit",
      () => engine.analysis.labelHeads(HEADS, { mask: mask.fromKeep([[1, 1]]) }),
      { mask: [1, 2], scores: [1, 1, 3, 3] },
    ],
    ["invalid_tensor", "no layer", () => engine.analysis.rollout([]), { argument: "weights" }],
    ["invalid_tensor", "one tensor", () => engine.analysis.rollout(untyped(tensor(HEADS))), { argument: "weights" }],
    ["invalid_tensor", "weights not asked for", () => engine.analysis.rollout(untyped(null)), { found: "null" }],
    [
      "invalid_tensor",
      "a layer with a word",
      () => engine.analysis.rollout([HEADS, untyped([[["a"]]])]),
      { argument: "weights[1]", path: [0, 0, 0] },
    ],
    [
      "invalid_option",
      "an unknown option",
      () => engine.analysis.labelHeads(HEADS, untyped({ ids: [1] })),
      { option: "ids" },
    ],
    [
      "invalid_option",
      "an offset that is not whole",
      () => engine.analysis.meanDistance(ROWS, { offset: 0.5 }),
      { option: "offset" },
    ],
    [
      "invalid_option",
      "a residual that is none",
      () => engine.analysis.rollout([HEADS], untyped({ residual: 1 })),
      { option: "residual" },
    ],
    [
      "invalid_option",
      "tokens that are none",
      () => engine.analysis.labelHeads(HEADS, { tokens: untyped([1, {}, 3]) }),
      { option: "tokens[1]" },
    ],
    [
      "invalid_option",
      "tokens of two lengths",
      () => engine.analysis.labelHeads([HEADS, HEADS], { tokens: [[1, 2, 3], [1]] }),
      { option: "tokens[1]" },
    ],
    [
      "invalid_option",
      "a block",
      () => engine.analysis.ablation(untyped(engine.transformerBlock({ dModel: 2, nHeads: 1 })), ROWS),
      { option: "mha" },
    ],
    [
      "invalid_option",
      "a module of another engine",
      async () => engine.analysis.ablation((await createEngine()).multiHeadAttention({ dModel: 2, nHeads: 1 }), ROWS),
      { option: "module" },
    ],
    [
      "invalid_option",
      "an unknown option of the pass",
      () => engine.analysis.ablation(attention(), ROWS, untyped({ heads: [0] })),
      { option: "heads" },
    ],
  ];

  test.each(cases)("%s: %s", async (code, _, run, details) => {
    const error = await run().then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(AttnError);
    expect(error).toMatchObject({ code, details });
  });
});
