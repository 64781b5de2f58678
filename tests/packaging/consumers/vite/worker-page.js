const worker = new Worker(new URL("./in-worker.js", import.meta.url), { type: "module" });
worker.onmessage = ({ data }) => {
  globalThis.answer = data;
};
