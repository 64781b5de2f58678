import {
  type AttentionForwardOptions,
  type AttnError,
  createEngine,
  type Engine,
  type ForwardOptions,
  mask,
  type RemaskOptions,
  type ScaledDotProductOptions,
  type Tensor,
  type WatchOptions,
} from "attnscope";
import { afterAll, beforeAll, describe, expect, expectTypeOf, test, vi } from "vitest";

let engine: Engine;
let x: Tensor;

beforeAll(async () => {
  engine = await createEngine();
  x = await engine.torchGenerator(0).randn([64, 16]);
});
afterAll(() => engine.destroy());

/** The parts that are told of a call: from 0 to 1, none less than the one before. */
async function told(call: (options: WatchOptions) => Promise<unknown>): Promise<number[]> {
  const parts: number[] = [];
  await call({ onProgress: (part) => parts.push(part) });
  expect(parts).toEqual([...parts].sort((a, b) => a - b));
  expect(parts.every((part) => part > 0 && part <= 1)).toBe(true);
  expect(parts.filter((part) => part === 1)).toEqual([1]);
  return parts;
}

describe("onProgress", () => {
  test("hears of every pass, and of a long one on the way", async () => {
    const mha = engine.multiHeadAttention({ dModel: 16, nHeads: 4 });
    const { trace } = await mha.forward(x, { trace: true });
    const stack = engine.transformer({ nLayers: 2, dModel: 16, nHeads: 4 });
    const decoder = engine.decoder({ nLayers: 2, dModel: 16, nHeads: 4 });
    const generator = engine.torchGenerator(1);
    for (const call of [
      (watch: WatchOptions) => mha.forward(x, watch),
      (watch: WatchOptions) => mha.forward(x, { ...watch, trace: true, mask: mask.causal() }),
      (watch: WatchOptions) => stack.forward(x, watch),
      (watch: WatchOptions) => stack.forward(x, { ...watch, training: true, generator }),
      (watch: WatchOptions) => decoder.forward(x, x, watch),
      (watch: WatchOptions) => engine.scaledDotProductAttention(x, x, x, watch),
      (watch: WatchOptions) => (trace as NonNullable<typeof trace>).remask(mask.causal(), watch),
    ]) {
      await told(call);
    }
    const long = await engine.torchGenerator(0).randn([600, 64]);
    const start = performance.now();
    const wide = engine.multiHeadAttention({ dModel: 64, nHeads: 16 });
    const parts = await told((watch) => wide.forward(long, { ...watch, trace: true }));
    expect(parts.length).toBeLessThan((performance.now() - start) / 30 + 2);
  });

  test("changes no number, and is asked for nothing else", async () => {
    const mha = engine.multiHeadAttention({ dModel: 16, nHeads: 4 });
    const watched = await mha.forward(x, { onProgress: () => {}, signal: new AbortController().signal });
    expect(watched.output.data).toEqual((await mha.forward(x)).output.data);
    expect((await mha.forward(x, { onProgress: null, signal: null })).output.data).toEqual(watched.output.data);
  });

  test("may call the engine, which answers when the pass is done", async () => {
    const own = await createEngine();
    const generator = own.torchGenerator(0);
    const stack = own.transformerBlock({ dModel: 16, nHeads: 4, dropout: 0.1 });
    let drawn: Promise<Tensor> | undefined;
    await stack.forward(x, {
      training: true,
      generator,
      onProgress: () => {
        drawn ??= generator.randn([3]);
      },
    });
    expect((await drawn)?.shape).toEqual([3]);
    await stack.forward(x, { onProgress: () => own.destroy() });
    await expect(stack.forward(x)).rejects.toMatchObject({ code: "disposed" });
  });

  test("what it throws stops nothing and is not swallowed", async () => {
    const uncaught = vi.fn();
    const before = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException").on("uncaughtException", uncaught);
    const { output } = await engine.scaledDotProductAttention(x, x, x, {
      onProgress: () => {
        throw new Error("mine");
      },
    });
    await new Promise((resolve) => setTimeout(resolve));
    process.removeAllListeners("uncaughtException");
    for (const listener of before) process.on("uncaughtException", listener);
    expect(output.shape).toEqual([64, 16]);
    expect(uncaught.mock.calls.map(([error]) => error.message)).toEqual(["mine"]);
  });
});

describe("signal", () => {
  test("an aborted call rejects with the signal's reason and computes nothing", async () => {
    const mha = engine.multiHeadAttention({ dModel: 16, nHeads: 4 });
    const onProgress = vi.fn();
    const signal = AbortSignal.abort();
    await expect(mha.forward(x, { signal, onProgress })).rejects.toBe(signal.reason);
    expect(signal.reason.name).toBe("AbortError");
    await expect(mha.forward(x, { signal: AbortSignal.abort("mine") })).rejects.toBe("mine");
    await expect(engine.scaledDotProductAttention(x, x, x, { signal })).rejects.toBe(signal.reason);
    const { trace } = await mha.forward(x, { trace: true });
    await expect(trace?.remask(null, { signal })).rejects.toBe(signal.reason);
    expect(onProgress).not.toHaveBeenCalled();
    // The engine goes on.
    expect((await mha.forward(x)).output.shape).toEqual([64, 16]);
  });

  test("what onProgress aborts is dropped when it is there", async () => {
    const mha = engine.multiHeadAttention({ dModel: 16, nHeads: 4 });
    const giving = new AbortController();
    const pass = mha.forward(x, { trace: true, signal: giving.signal, onProgress: () => giving.abort() });
    await expect(pass).rejects.toBe(giving.signal.reason);
  });
});

test("what is no function and no signal is refused by its name", async () => {
  const mha = engine.multiHeadAttention({ dModel: 16, nHeads: 4 });
  const refused = async (options: object): Promise<AttnError["details"]> =>
    mha.forward(x, options as AttentionForwardOptions).then(
      () => ({}),
      (error: AttnError) => ({ code: error.code, ...error.details }),
    );
  expect(await refused({ onProgress: 1 })).toMatchObject({ code: "invalid_option", option: "onProgress" });
  expect(await refused({ signal: {} })).toMatchObject({ code: "invalid_option", option: "signal" });
});

test("passes under other masks share the stages that no mask reaches", async () => {
  const mha = engine.multiHeadAttention({ dModel: 16, nHeads: 4 });
  const { trace } = await mha.forward(x, { trace: true });
  if (!trace) throw new Error("no trace");
  expect(trace.stage("masked").data).toBe(trace.stage("scaled").data);
  const causal = (await trace.remask(mask.causal())).trace;
  const direct = (await mha.forward(x, { trace: true, mask: mask.causal() })).trace;
  expect(causal.stages).toEqual(direct?.stages);
  for (const name of causal.stages) {
    expect(causal.stage(name), name).toEqual(direct?.stage(name));
    const isReached = ["masked", "weights", "context", "concat", "output"].includes(name);
    expect(causal.stage(name) === trace.stage(name), name).toBe(!isReached);
  }
  // The first one may go: what they share stays.
  trace.dispose();
  expect((await causal.explain("scores", [0, 1, 2])).terms).toHaveLength(4);
  const open = (await causal.remask(null)).trace;
  expect(open.stage("weights")).toEqual(trace.stage("weights"));
});

test("every pass takes the two options", () => {
  expectTypeOf<AttentionForwardOptions>().toExtend<WatchOptions>();
  expectTypeOf<ForwardOptions>().toExtend<WatchOptions>();
  expectTypeOf<ScaledDotProductOptions>().toExtend<WatchOptions>();
  expectTypeOf<RemaskOptions>().toExtend<WatchOptions>();
  type Options = Parameters<Engine["analysis"]["ablation"]>[2];
  expectTypeOf<NonNullable<Options>>().not.toHaveProperty("signal");
});
