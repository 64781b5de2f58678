// The package on a graphics processor, in this thread as the others.
import { MAX_BYTES, passesOf } from "./attnscope.mjs";

export const kind = "ours";
export const name = "attnscope";
export const variants = ["webgpu"];

const PACKAGE = new URL("../../dist/index.js", import.meta.url);

export async function start() {
  const { createEngine, mask } = await import(PACKAGE);
  const engine = await createEngine({ worker: false, backend: "webgpu", maxBytes: MAX_BYTES });
  return passesOf(engine, mask);
}
