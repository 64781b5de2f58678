import * as attnscope from "attnscope";
import { answer, answerOnGpu, answerWithThreads } from "../answer.js";

const engine = await attnscope.createEngine();
const given = await answer(attnscope, engine);
postMessage({ ...given, onGpu: await answerOnGpu(attnscope), shared: await answerWithThreads(attnscope) });
