// What is not plain data of this frame: another frame's is what it is, though constructors differ, and some cannot be sent to a worker.
import { fileURLToPath } from "node:url";
import { expect, test } from "@playwright/test";
import { HARNESS } from "./ports.ts";

test("files, bytes, addresses, modules and signals of another frame", async ({ page }) => {
  await page.goto(HARNESS);
  await page.waitForFunction(() => "attnscope" in globalThis);
  const wasm = fileURLToPath(new URL("../../dist/wasm/attnscope_files.wasm", import.meta.url)).replaceAll("\\", "/");
  const found = await page.evaluate(async (name) => {
    const { attnscope } = globalThis as unknown as typeof import("./harness/main.ts");
    const frame = document.body.appendChild(document.createElement("iframe"));
    const other = frame.contentWindow as unknown as typeof globalThis;
    const bytes = other.Uint8Array.from([...new TextEncoder().encode("[[1, 2]]")]);
    const buffer = await (await other.fetch(new URL(name, location.href))).arrayBuffer();
    const sources = [buffer, new other.URL(name, location.href), await other.WebAssembly.compile(buffer)];
    const shapes: unknown[] = [];
    for (const filesWasm of sources) {
      const engine = await attnscope.createEngine({ backend: "cpu", filesWasm });
      for (const file of [bytes, bytes.buffer, new other.Blob([bytes]), new other.File([bytes], "a.json")]) {
        shapes.push((await engine.readTensors(file, { format: "json" })).tensor?.shape);
      }
      engine.destroy();
    }
    const engine = await attnscope.createEngine({ worker: false });
    const { signal } = new other.AbortController();
    shapes.push((await engine.scaledDotProductAttention([[1, 2]], [[1, 2]], [[3, 4]], { signal })).output.shape);
    return shapes;
  }, `/@fs/${wasm}`);
  expect(found).toEqual(Array(13).fill([1, 2]));
});

test("an option that cannot be sent to the worker is refused", async ({ page }) => {
  await page.goto(HARNESS);
  await page.waitForFunction(() => "attnscope" in globalThis);
  const refusal = await page.evaluate(async () => {
    const { attnscope } = globalThis as unknown as typeof import("./harness/main.ts");
    const engine = await attnscope.createEngine({ backend: "cpu" });
    const mha = engine.multiHeadAttention({ dModel: 2, nHeads: 1 });
    const refused = await mha.forward([[1, 2]], { isCausal: (() => true) as never }).catch((reason: unknown) => reason);
    const { name, code, details } = refused as InstanceType<typeof attnscope.AttnError>;
    // The engine goes on.
    return { name, code, option: details.option, shape: (await mha.forward([[1, 2]])).output.shape };
  });
  expect(refusal).toEqual({ name: "AttnError", code: "invalid_option", option: "options", shape: [1, 2] });
});
