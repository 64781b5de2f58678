import * as attnscope from "attnscope";
import "attnscope/elements";
import { createApp, h, shallowRef } from "vue";
import { answer } from "../answer.js";

const given = shallowRef(null);

attnscope
  .createEngine()
  .then((engine) => answer(attnscope, engine))
  .then((found) => {
    given.value = globalThis.answer = found;
  });

function App() {
  if (!given.value) return null;
  const { weights } = given.value;
  const text = JSON.stringify([weights.slice(0, 2), weights.slice(2)]);
  return [
    h("attn-heads", { tokens: ["the", "cat"], weights: attnscope.tensor(weights, [2, 2]) }),
    h("attn-heatmap", { tokens: "the cat", "key-tokens": "the cat", weights: text, head: "0" }),
  ];
}

createApp(App).mount("#app");
