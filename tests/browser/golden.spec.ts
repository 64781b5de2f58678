import { expect, test } from "@playwright/test";
import { expectConformance } from "./conformance.ts";
import { HARNESS } from "./ports.ts";

// The page takes relaxed SIMD where the browser has it; the other engine is handed over.
const ENGINES = [
  ["relaxed-simd"],
  ["simd128", new URL("../../dist/wasm/attnscope_simd128.wasm", import.meta.url)],
] as const;

for (const [kernel, wasm] of ENGINES) {
  test(`every golden case, in a browser, the ${kernel} engine in its worker`, async ({ page }) => {
    const problems: string[] = [];
    page.on("console", (message) => {
      if (message.type() === "error") problems.push(message.text());
    });
    page.on("pageerror", (error) => problems.push(error.message));
    await page.goto(HARNESS);
    await page.waitForFunction(() => "attnscope" in globalThis);
    await expectConformance((run, argument) => page.evaluate(run as never, argument), kernel, wasm);
    expect(page.workers().map((worker) => new URL(worker.url()).pathname)).toEqual([
      expect.stringContaining("worker.js"),
    ]);
    expect(problems).toEqual([]);
  });
}

test("an engine destroyed in the middle of a pass rejects it, and a new one works", async ({ page }) => {
  await page.goto(HARNESS);
  await page.waitForFunction(() => "attnscope" in globalThis);
  const codes = await page.evaluate(async () => {
    const { attnscope } = globalThis as unknown as typeof import("./harness/main.ts");
    const code = async (run: () => unknown) => {
      try {
        await run();
        return "none";
      } catch (error) {
        return (error as { code: string }).code;
      }
    };
    const engine = await attnscope.createEngine();
    const mha = engine.multiHeadAttention({ dModel: 4, nHeads: 2 });
    const waiting = code(() => mha.forward([[1, 2, 3, 4]]));
    engine.destroy();
    const fresh = await attnscope.createEngine();
    const works = await code(() => fresh.multiHeadAttention({ dModel: 4, nHeads: 2 }).forward([[1, 2, 3, 4]]));
    return [await waiting, await code(() => mha.forward([[1, 2, 3, 4]])), works];
  });
  expect(codes).toEqual(["disposed", "disposed", "none"]);
});
