import { readFile } from "node:fs/promises";
import type { Files } from "../cases/all.ts";

const golden = new URL("../golden/", import.meta.url);

export async function bytes(name: string): Promise<ArrayBuffer> {
  return new Uint8Array(await readFile(new URL(name, golden))).buffer;
}

export async function json<Contents>(name: string): Promise<Contents> {
  return JSON.parse(await readFile(new URL(name, golden), "utf8"));
}

/** The reference data of every case. */
export async function readCases(): Promise<Files> {
  const read = async <Manifest>(name: keyof Files) => ({
    manifest: await json<Manifest>(`${name}.json`),
    tensors: await bytes(`${name}.safetensors`),
  });
  return { golden: await read("golden"), onnx: await read("onnx"), arch: await read("arch") };
}
