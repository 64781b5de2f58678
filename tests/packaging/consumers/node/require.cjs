const attnscope = require("attnscope");

attnscope.createEngine().then(async (engine) => {
  const { answer } = await import("../answer.js");
  console.log(JSON.stringify(await answer(attnscope, engine)));
  engine.destroy();
});
