import * as attnscope from "attnscope";
import { answer, answerOnGpu } from "../answer.js";

const engine = await attnscope.createEngine();
const given = await answer(attnscope, engine);
postMessage({ ...given, onGpu: await answerOnGpu(attnscope) });
