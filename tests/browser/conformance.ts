import { readFile } from "node:fs/promises";
import { expect } from "@playwright/test";
import type { EngineInfo } from "attnscope";
import { EVERY_CASE, type Files } from "../cases/all.ts";
import type { User } from "./user.ts";

const golden = new URL("../golden/", import.meta.url);

/** Runs every golden case in a page that has the harness, on the engine that it takes or on one that it is given. */
export async function expectConformance(
  evaluate: User["evaluate"],
  kernel: "relaxed-simd" | "simd128",
  wasm?: URL,
): Promise<EngineInfo> {
  const base64 = async (url: URL) => (await readFile(url)).toString("base64");
  const read = async (name: keyof Files) => ({
    manifest: JSON.parse(await readFile(new URL(`${name}.json`, golden), "utf8")) as object,
    base64: await base64(new URL(`${name}.safetensors`, golden)),
  });
  const files = { golden: await read("golden"), onnx: await read("onnx"), arch: await read("arch") };
  const given = { files, wasm: wasm ? await base64(wasm) : null };
  const { reports, info } = await evaluate(async ({ files, wasm }) => {
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
  expect(info.kernel).toBe(kernel);
  return info;
}
