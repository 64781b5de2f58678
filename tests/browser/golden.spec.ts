import { readFile } from "node:fs/promises";
import { expect, test } from "@playwright/test";
import type { Case } from "../golden-cases.ts";

const golden = new URL("../golden/", import.meta.url);

test("the golden cases of the posts, in a browser, the engine in its worker", async ({ page }) => {
  const problems: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(error.message));
  await page.goto("http://localhost:5321/");
  await page.waitForFunction(() => "attnscope" in globalThis);

  const { cases } = JSON.parse(await readFile(new URL("golden.json", golden), "utf8")) as { cases: Case[] };
  const data = (await readFile(new URL("golden.safetensors", golden))).toString("base64");
  const { report, info } = await page.evaluate(
    async ({ cases, data }) => {
      const { attnscope, runGolden, readSafetensors } = globalThis as unknown as typeof import("./harness/main.ts");
      const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0)).buffer;
      const engine = await attnscope.createEngine();
      const report = await runGolden(attnscope, engine, cases, readSafetensors(bytes));
      return { report, info: engine.info };
    },
    { cases, data },
  );
  console.log(report.passed);
  expect(report.failed).toEqual([]);
  expect(report.passed).toEqual({ seedA_mha: 18, seedA_block: 7, seedB_sdpa: 8, seedB_mha: 11 });
  expect(info.kernel).toBe("simd128");
  expect(page.workers().map((worker) => new URL(worker.url()).pathname)).toEqual([
    expect.stringContaining("worker.js"),
  ]);
  expect(problems).toEqual([]);
});

test("an engine destroyed in the middle of a pass rejects it, and a new one works", async ({ page }) => {
  await page.goto("http://localhost:5321/");
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
