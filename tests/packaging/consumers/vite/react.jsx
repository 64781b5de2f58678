import * as attnscope from "attnscope";
import "attnscope/elements";
import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { answer } from "../answer.js";

function App() {
  const [given, setGiven] = useState();
  useEffect(() => {
    const made = attnscope.createEngine();
    made.then((engine) => answer(attnscope, engine)).then(setGiven);
    return () => made.then((engine) => engine.destroy());
  }, []);
  globalThis.answer = given;
  if (!given) return null;
  const text = JSON.stringify([given.weights.slice(0, 2), given.weights.slice(2)]);
  return (
    <>
      <attn-heads tokens={["the", "cat"]} weights={attnscope.tensor(given.weights, [2, 2])} />
      <attn-heatmap tokens="the cat" key-tokens="the cat" weights={text} head="0" />
    </>
  );
}

createRoot(document.querySelector("#app")).render(<App />);
