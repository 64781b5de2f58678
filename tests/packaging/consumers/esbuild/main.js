// All in one script: the WebAssembly as bytes, no worker.
import analysisWasm from "attnscope/analysis.wasm";
import wasm from "attnscope/engine.wasm";
import filesWasm from "attnscope/files.wasm";
import * as attnscope from "attnscope/slim";
import * as views from "attnscope/views";
import { answer } from "../answer.js";
import { draw } from "../drawn.js";

const engine = await attnscope.createEngine({ wasm, analysisWasm, filesWasm });
const given = await answer(attnscope, engine);
draw(views, given.weights);
globalThis.answer = given;
