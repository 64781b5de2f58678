// Several threads; with relaxed SIMD, without which there is one.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import type { Worker } from "node:worker_threads";
import * as attnscope from "attnscope";
import { createEngine, type Engine, mask, type Tensor } from "attnscope";
import { afterEach, describe, expect, inject, test } from "vitest";
import { EVERY_CASE, type Files, runAll } from "../cases/all.ts";
import { nanKeys } from "../cases/nan-keys.ts";
import { readCases } from "./golden-files.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** What Node.js is started with for relaxed SIMD. */
    execArgv: string[];
  }
}

const workers = process.getBuiltinModule("node:worker_threads");
const { Worker: OfNode } = workers;
/** The helpers that were made, and how many of them are gone. */
const made: Worker[] = [];
let gone = 0;

class Counted extends OfNode {
  constructor(...of: ConstructorParameters<typeof OfNode>) {
    super(...of);
    made.push(this);
    this.on("exit", () => gone++);
  }
}
workers.Worker = Counted;

const engines: Engine[] = [];
async function engineOf(threads?: number): Promise<Engine> {
  const engine = await createEngine(threads === undefined ? {} : { threads });
  engines.push(engine);
  return engine;
}

afterEach(async () => {
  for (const engine of engines.splice(0)) engine.destroy();
  // Engines that are destroyed leave no helper behind.
  await expect.poll(() => gone, { timeout: 10_000 }).toBe(made.length);
  workers.Worker = Counted;
});

/** Passes for which threads are started, and one that is too small for them. */
async function passes(engine: Engine): Promise<Tensor[]> {
  const [dModel, nHeads] = [256, 8];
  const x = await engine.torchGenerator(1).randn([200, dModel]);
  const small = await engine.multiHeadAttention({ dModel, nHeads }).forward([Array.from(x.data.subarray(0, dModel))]);
  const mha = engine.multiHeadAttention({ dModel, nHeads, seed: 2 });
  const traced = await mha.forward(x, { mask: mask.causal(), trace: true });
  const remasked = await traced.trace.remask(mask.slidingWindow(9));
  const plain = await mha.forward(x, { needWeights: false });
  const block = await engine.transformerBlock({ dModel, nHeads, seed: 3 }).forward(x);
  const product = await engine.ops.linear(x, await engine.torchGenerator(4).randn([600, dModel]));
  const stages = traced.trace.stages.map((name) => traced.trace.stage(name));
  return [small.output, traced.output, remasked.output, plain.output, block.output, block.weights, product, ...stages];
}

const bits = (tensors: Tensor[]) => tensors.map(({ data }) => createHash("sha256").update(data).digest("hex"));

describe("threads", () => {
  test("every golden case", async () => {
    const engine = await engineOf(2);
    for (const [name, report] of Object.entries(await runAll(attnscope, engine, await readCases()))) {
      expect(report.failed).toEqual([]);
      expect(report.passed).toEqual(EVERY_CASE[name as keyof Files]);
    }
    expect(engine.info).toMatchObject({ kernel: "relaxed-simd", threads: 2 });
  });

  test("NaN of a key is that of the queries that see it", async () => {
    expect(await nanKeys(await engineOf(2))).toEqual([]);
  });

  test("the same bits with any number of them", async () => {
    const alone = bits(await passes(await engineOf(1)));
    expect(made.length).toBe(0);
    for (const threads of [2, 3, 8]) {
      const engine = await engineOf(threads);
      expect(bits(await passes(engine))).toEqual(alone);
      expect(engine.info.threads).toBe(threads);
      // Engines share the helpers that are there.
      expect(made.length).toBe(threads - 1);
    }
    const again = await engineOf(1);
    expect(bits(await passes(again))).toEqual(alone);
    expect(again.info.threads).toBe(1);
  });

  test("a small pass starts none", async () => {
    const before = made.length;
    const engine = await engineOf();
    await engine.multiHeadAttention({ dModel: 4, nHeads: 2 }).forward([[1, 2, 3, 4]]);
    expect(engine.info.threads).toBeGreaterThan(1);
    expect(made.length).toBe(before);
  });

  test("an engine that is destroyed while they start", async () => {
    const engine = await engineOf(2);
    const pass = passes(engine);
    setTimeout(() => engine.destroy(), 5);
    await expect(pass).rejects.toMatchObject({ code: "disposed" });
  });

  test.each<[string, () => Worker]>([
    ["cannot be made", () => expect.fail("no workers here")],
    ["do not come up", () => new Counted("throw new Error('on purpose')", { eval: true })],
  ])("where helpers %s there is one thread", async (_, make) => {
    const alone = bits(await passes(await engineOf(1)));
    workers.Worker = (() => make()) as unknown as typeof OfNode;
    const engine = await engineOf(2);
    expect(bits(await passes(engine))).toEqual(alone);
    expect(engine.info.threads).toBe(1);
  });

  test("a process ends though its engine was not destroyed", () => {
    const script = `
      import { createEngine } from "attnscope";
      const engine = await createEngine({ threads: 2 });
      const x = await engine.torchGenerator(1).randn([300, 256]);
      await engine.multiHeadAttention({ dModel: 256, nHeads: 4 }).forward(x);
      console.log(engine.info.threads);`;
    const options = [...inject("execArgv"), "--input-type=module", "--eval", script];
    const { stdout, stderr, status } = spawnSync(process.execPath, options, { encoding: "utf8", timeout: 20_000 });
    expect({ stdout, stderr, status }).toEqual({ stdout: "2\n", stderr: "", status: 0 });
  });
});

test.each([0, 1.5, -2, Number.NaN, "2"])("threads: %s is refused", async (threads) => {
  await expect(createEngine({ threads: threads as number })).rejects.toMatchObject({
    code: "invalid_option",
    details: { option: "threads", found: threads === "2" ? '"2"' : String(threads) },
  });
});
