(async () => {
  const { answer, answerOnGpu, answerWithThreads } = await import("../answer.js");
  const { draw } = await import("../drawn.js");
  const engine = await attnscope.createEngine();
  const given = await answer(attnscope, engine);
  draw(attnscope.views, given.weights);
  window.answer = { ...given, onGpu: await answerOnGpu(attnscope), shared: await answerWithThreads(attnscope) };
})();
