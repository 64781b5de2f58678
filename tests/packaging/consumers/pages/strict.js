import * as attnscope from "/node_modules/attnscope/dist/slim.js";
import { answer } from "../answer.js";

const wasm = "/node_modules/attnscope/dist/wasm";
const engine = await attnscope.createEngine({
  wasm: `${wasm}/attnscope_simd128.wasm`,
  analysisWasm: `${wasm}/attnscope_analysis.wasm`,
  filesWasm: `${wasm}/attnscope_files.wasm`,
  worker: () => new Worker("/node_modules/attnscope/dist/worker.js", { type: "module" }),
});
globalThis.answer = await answer(attnscope, engine);
