import * as attnscope from "attnscope";
import * as views from "attnscope/views";
import { answer, answerOnGpu, answerWithThreads } from "../answer.js";
import { draw } from "../drawn.js";

attnscope.createEngine().then(async (engine) => {
  const given = await answer(attnscope, engine);
  draw(views, given.weights);
  globalThis.answer = { ...given, onGpu: await answerOnGpu(attnscope), shared: await answerWithThreads(attnscope) };
});
