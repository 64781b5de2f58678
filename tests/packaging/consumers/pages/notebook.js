// As a notebook does: the script comes as text, without an address and anew for each widget, and numbers as bytes among others.
import * as attnscope from "/node_modules/attnscope/dist/index.js";
import { answer } from "../answer.js";

const script = await (await fetch("/node_modules/attnscope/bundled/attnscope.anywidget.js")).blob();

const given = await answer(attnscope, await attnscope.createEngine());
const message = new Uint8Array(17);
message.set(new Uint8Array(Float32Array.from(given.weights).buffer), 1);
const values = { weights: new DataView(message.buffer, 1), shape: [1, 2, 2], tokens: ["the", "cat"], key_tokens: [] };
const model = {
  get: (name) => values[name],
  set: (name, value) => Object.assign(values, { [name]: value }),
  save_changes() {},
  on() {},
  off() {},
};
for (const look of ["heads", "lines"]) {
  values.look = look;
  const { default: widget } = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  widget.render({ model, el: document.querySelector("#app") });
}
globalThis.answer = given;
