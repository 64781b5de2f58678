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
  return given && <attn-heads tokens={["the", "cat"]} weights={attnscope.tensor(given.weights, [2, 2])} />;
}

createRoot(document.querySelector("#app")).render(<App />);
