import * as attnscope from "/node_modules/attnscope/dist/index.js";
import * as views from "/node_modules/attnscope/dist/views/index.js";
import { answer, answerOnGpu, answerWithThreads } from "../answer.js";
import { draw } from "../drawn.js";

const engine = await attnscope.createEngine();
const given = await answer(attnscope, engine);
draw(views, given.weights);
globalThis.answer = { ...given, onGpu: await answerOnGpu(attnscope), shared: await answerWithThreads(attnscope) };
