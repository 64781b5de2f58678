// The engine in a thread of its own.
import { spawnSync } from "node:child_process";
import { createEngine, type Engine, mask } from "attnscope";
import { afterAll, beforeAll, expect, test } from "vitest";

let here: Engine;
let there: Engine;
beforeAll(async () => {
  [here, there] = await Promise.all([createEngine(), createEngine({ worker: true })]);
});
afterAll(() => {
  here.destroy();
  there.destroy();
});

const X = Array.from({ length: 200 }, (_, i) => Array.from({ length: 64 }, (_, j) => Math.sin(i * 7 + j)));
const moduleOf = (engine: Engine) => engine.multiHeadAttention({ dModel: 64, nHeads: 4, seed: 5 });

test("gives the same numbers, and this thread goes on meanwhile", async () => {
  const expected = await moduleOf(here).forward(X, { mask: mask.causal(), trace: true });
  let isSettled = false;
  const passing = moduleOf(there).forward(X, { mask: mask.causal(), trace: true });
  passing.then(() => {
    isSettled = true;
  });
  await new Promise((done) => setImmediate(done));
  expect(isSettled).toBe(false);
  const { output, weights, trace } = await passing;
  expect(output).toEqual(expected.output);
  expect(weights).toEqual(expected.weights);
  expect(trace.stages).toEqual(expected.trace.stages);
});

test("errors, aborted calls, files and analysis cross", async () => {
  await expect(moduleOf(there).forward([[1]])).rejects.toMatchObject({ code: "shape_mismatch" });
  const aborter = new AbortController();
  const aborted = moduleOf(there).forward(X, { signal: aborter.signal });
  aborter.abort();
  await expect(aborted).rejects.toThrow("abort");
  const bytes = await there.writeTensors({ a: [1, 2] }, "npy");
  const reading = there.readTensors(bytes);
  bytes.fill(0);
  expect((await reading).tensor?.data).toEqual(Float32Array.of(1, 2));
  expect((await there.analysis.entropy([[1, 0]])).data).toEqual(Float32Array.of(0));
});

test("an engine that is destroyed says so", async () => {
  const engine = await createEngine({ worker: true });
  const passing = moduleOf(engine).forward(X);
  engine.destroy();
  await expect(passing).rejects.toMatchObject({ code: "disposed" });
});

test("a process stays for what it waits for, and not for an idle worker", () => {
  const program = `
    import { createEngine } from "attnscope";
    const engine = await createEngine({ worker: true });
    const { output } = await engine.scaledDotProductAttention([[1]], [[1]], [[5]]);
    console.log(output.data[0]);
  `;
  const { stdout, status } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    encoding: "utf8",
    timeout: 20_000,
  });
  expect({ stdout, status }).toEqual({ stdout: "5\n", status: 0 });
});
