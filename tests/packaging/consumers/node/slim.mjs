import { readFile } from "node:fs/promises";
import * as attnscope from "attnscope/slim";
import { answer } from "../answer.js";

const part = (name) => readFile(new URL(import.meta.resolve(`attnscope/${name}.wasm`)));
const codes = [];
for (const options of [undefined, {}, { wasm: await part("engine"), worker: true }]) {
  await attnscope.createEngine(options).catch(({ code, details }) => codes.push([code, details.option]));
}
const [wasm, analysisWasm, filesWasm] = await Promise.all(["engine", "analysis", "files"].map(part));
const engine = await attnscope.createEngine({ wasm, analysisWasm, filesWasm });
console.log(JSON.stringify({ ...(await answer(attnscope, engine)), codes }));
engine.destroy();
