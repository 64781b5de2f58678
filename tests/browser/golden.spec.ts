import { readFile } from "node:fs/promises";
import { expect, test } from "@playwright/test";
import { EVERY_CASE, type Files } from "../cases/all.ts";
import { HARNESS } from "./ports.ts";

const golden = new URL("../golden/", import.meta.url);

for (const variant of ["relaxed-simd", "simd128"] as const) {
  test(`every golden case, in a browser, the ${variant} engine in its worker`, async ({ page }) => {
    const problems: string[] = [];
    page.on("console", (message) => {
      if (message.type() === "error") problems.push(message.text());
    });
    page.on("pageerror", (error) => problems.push(error.message));
    await page.goto(HARNESS);
    await page.waitForFunction(() => "attnscope" in globalThis);

    const read = async (name: keyof Files) => ({
      manifest: JSON.parse(await readFile(new URL(`${name}.json`, golden), "utf8")) as object,
      base64: (await readFile(new URL(`${name}.safetensors`, golden))).toString("base64"),
    });
    const files = { golden: await read("golden"), onnx: await read("onnx"), arch: await read("arch") };
    // The page takes relaxed SIMD where the browser has it; the other engine is handed over.
    const simd128 = (await readFile(new URL("../../dist/wasm/attnscope_simd128.wasm", import.meta.url))).toString(
      "base64",
    );
    const given = { files, wasm: variant === "simd128" ? simd128 : null };
    const { reports, info } = await page.evaluate(async ({ files, wasm }) => {
      const { attnscope, runAll } = globalThis as unknown as typeof import("./harness/main.ts");
      const bytes = (base64: string) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)).buffer;
      const decoded = Object.entries(files).map(([name, { manifest, base64 }]) => {
        return [name, { manifest, tensors: bytes(base64) }];
      });
      const engine = await attnscope.createEngine(wasm ? { wasm: bytes(wasm) } : {});
      return { reports: await runAll(attnscope, engine, Object.fromEntries(decoded)), info: engine.info };
    }, given);
    for (const [name, report] of Object.entries(reports)) {
      console.log(name, report.passed);
      expect(report.failed).toEqual([]);
      expect(report.passed).toEqual(EVERY_CASE[name as keyof Files]);
    }
    expect(info.kernel).toBe(variant);
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
