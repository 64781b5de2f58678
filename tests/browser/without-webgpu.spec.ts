// A browser whose WebGPU gives no adapter, as the tests' Chromium is without a flag.
import { expect, test } from "@playwright/test";
import { HARNESS } from "./ports.ts";

test("auto computes on the CPU, webgpu says gpu_unavailable", async ({ page }) => {
  await page.goto(HARNESS);
  await page.waitForFunction(() => "attnscope" in globalThis);
  for (const worker of [true, false]) {
    const found = await page.evaluate(async (worker) => {
      const { attnscope } = globalThis as unknown as typeof import("./harness/main.ts");
      const engine = await attnscope.createEngine({ worker });
      const { output } = await engine.multiHeadAttention({ dModel: 4, nHeads: 2 }).forward([[1, 2, 3, 4]]);
      const failure = await attnscope.createEngine({ backend: "webgpu", worker }).catch((error) => error.code);
      return { info: engine.info, shape: output.shape, failure };
    }, worker);
    expect(found).toMatchObject({ info: { backend: "cpu", adapter: null }, shape: [1, 4], failure: "gpu_unavailable" });
  }
});
