import * as attnscope from "attnscope";
import { answer, answerWithThreads } from "../answer.js";

const engine = await attnscope.createEngine();
console.log(
  JSON.stringify({
    ...(await answer(attnscope, engine)),
    info: engine.info,
    shared: await answerWithThreads(attnscope),
  }),
);
engine.destroy();
