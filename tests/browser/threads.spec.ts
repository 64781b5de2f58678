// Threads where the page is isolated from other origins, and one thread where it is not.
import { expect, type Page, test } from "@playwright/test";
import { expectConformance } from "./conformance.ts";
import { HARNESS, ISOLATED } from "./ports.ts";

async function open(page: Page, address: string): Promise<string[]> {
  const problems: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(error.message));
  await page.goto(address);
  await page.waitForFunction(() => "attnscope" in globalThis);
  return problems;
}

/** Under Playwright Firefox may never come back from making a worker in a worker that has others, with or without this package. */
const FEW = [2];

/** Passes for which threads are started, on an engine with so many; the bits of what they give, and what computed. */
function attend(page: Page, count: number | undefined) {
  return page.evaluate(async (count) => {
    const { attnscope } = globalThis as unknown as typeof import("./harness/main.ts");
    const engine = await attnscope.createEngine({ backend: "cpu", ...(count !== undefined && { threads: count }) });
    const x = await engine.torchGenerator(1).randn([300, 256]);
    const mha = engine.multiHeadAttention({ dModel: 256, nHeads: 8, seed: 2 });
    const { output, weights, trace } = await mha.forward(x, { mask: attnscope.mask.causal(), trace: true });
    const moved = await trace.remask(attnscope.mask.slidingWindow(5));
    const words = [output, weights, moved.output].map(({ data }) => new Uint32Array(data.slice().buffer));
    // FNV-1a: so many numbers cross slowly.
    const sum = words.reduce((sum, of) => of.reduce((sum, word) => Math.imul(sum ^ word, 0x01000193), sum), 0x811c9dc5);
    const { threads, kernel } = engine.info;
    engine.destroy();
    return { sum, threads, kernel };
  }, count);
}

test("an isolated page has every golden case, with threads", async ({ page }) => {
  const problems = await open(page, ISOLATED);
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
  const info = await expectConformance((run, argument) => page.evaluate(run as never, argument), "relaxed-simd");
  expect(info.threads).toBeGreaterThan(1);
  expect(problems).toEqual([]);
});

test("any number of threads gives the same bits", async ({ page, browserName }) => {
  const problems = await open(page, ISOLATED);
  const alone = await attend(page, 1);
  expect(alone).toMatchObject({ threads: 1, kernel: "relaxed-simd" });
  for (const threads of browserName === "firefox" ? FEW : [2, 3, 5, undefined]) {
    const shared = await attend(page, threads);
    expect(shared.sum).toBe(alone.sum);
    // Had helpers not come up, the engine would have one thread by now.
    if (threads === undefined) expect(shared.threads).toBeGreaterThan(1);
    else expect(shared.threads).toBe(threads);
  }
  expect(problems).toEqual([]);
});

test("elsewhere there is one thread, with the same bits", async ({ page }) => {
  await open(page, ISOLATED);
  const isolated = await attend(page, 2);
  const problems = await open(page, HARNESS);
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(false);
  const plain = await attend(page, 2);
  expect(isolated.threads).toBe(2);
  expect(plain).toEqual({ ...isolated, threads: 1 });
  expect(problems).toEqual([]);
});

test("a result that is given up goes to the worker and comes back filled", async ({ page }) => {
  for (const address of [ISOLATED, HARNESS]) {
    const problems = await open(page, address);
    const found = await page.evaluate(async () => {
      const { attnscope } = globalThis as unknown as typeof import("./harness/main.ts");
      const { mask } = attnscope;
      const engine = await attnscope.createEngine({ backend: "cpu", threads: 2 });
      const x = await engine.torchGenerator(1).randn([300, 256]);
      const mha = engine.multiHeadAttention({ dModel: 256, nHeads: 8 });
      const alone = await mha.forward(x, { mask: mask.causal() });
      const first = await mha.forward(x);
      // Given up twice at once: one pass has the arrays, the other new ones.
      const options = { mask: mask.causal(), reuse: first };
      const both = await Promise.all([mha.forward(x, options), mha.forward(x, options)]);
      const left = [first.output, first.weights].map(({ data }) => data.length);
      const isSame = (one: Float32Array, other: Float32Array) =>
        one.length === other.length && one.every((number, i) => Object.is(number, other[i]));
      const same = both.map(
        ({ output, weights }) => isSame(output.data, alone.output.data) && isSame(weights.data, alone.weights.data),
      );
      // A call that fails says why, whatever it was given.
      const failed = { mask: mask.fromKeep([[1, 0]]), reuse: both[0] };
      const code = await mha.forward(x, failed).then(
        () => null,
        (error: { code: string }) => error.code,
      );
      // So does one that is aborted while it waits, or given up as it is made.
      const controller = new AbortController();
      const computing = mha.forward(x);
      const refusal = (call: Promise<unknown>) => call.catch(({ name }: Error) => name);
      const waiting = refusal(mha.forward(x, { signal: controller.signal, reuse: both[1] }));
      controller.abort();
      const last = await computing;
      const ragged = refusal(mha.forward([[1], []] as number[][], { reuse: last }));
      const refused = [await waiting, await ragged];
      const emptied = [...both, last].flatMap(({ output, weights }) => [output.data.length, weights.data.length]);
      engine.destroy();
      return { left, same, code, refused, emptied };
    });
    expect(found).toMatchObject({ left: [0, 0], same: [true, true], code: "mask_shape" });
    expect(found).toMatchObject({ refused: ["AbortError", "AttnError"], emptied: Array(6).fill(0) });
    expect(problems).toEqual([]);
  }
});

test("in the thread of an isolated page there is one", async ({ page }) => {
  await open(page, ISOLATED);
  const threads = await page.evaluate(async () => {
    const { attnscope } = globalThis as unknown as typeof import("./harness/main.ts");
    const engine = await attnscope.createEngine({ worker: false, threads: 4 });
    const x = await engine.torchGenerator(1).randn([300, 256]);
    await engine.multiHeadAttention({ dModel: 256, nHeads: 8 }).forward(x);
    return engine.info.threads;
  });
  expect(threads).toBe(1);
});

test("an engine destroyed in the middle of a pass takes its helpers along", async ({ page, browserName }) => {
  await open(page, ISOLATED);
  await page.evaluate(
    async (threads) => {
      const { attnscope } = globalThis as unknown as typeof import("./harness/main.ts");
      const engine = await attnscope.createEngine({ backend: "cpu", threads });
      const x = await engine.torchGenerator(1).randn([1500, 512]);
      const stack = engine.transformer({ dModel: 512, nHeads: 8, nLayers: 4 });
      await stack.forward({ data: x.data.subarray(0, 100 * 512), shape: [100, 512] });
      Object.assign(globalThis, {
        destroyed: () => stack.forward(x, { onProgress: () => engine.destroy() }).catch(({ code }) => code),
      });
    },
    browserName === "firefox" ? 2 : 3,
  );
  const session = browserName === "chromium" ? await page.context().newCDPSession(page) : null;
  // Only Chromium tells of workers inside workers.
  const workers = async () =>
    session && (await session.send("Target.getTargets", { filter: [{ type: "worker" }] })).targetInfos.length;
  expect(await workers()).toBe(session && 3);
  const code = await page.evaluate(() => (globalThis as unknown as { destroyed(): Promise<string> }).destroyed());
  expect(code).toBe("disposed");
  await expect.poll(workers).toBe(session && 0);
});
