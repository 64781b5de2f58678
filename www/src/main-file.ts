// The page as one file begins here; single-file.ts, beside the configuration, puts the parts into it.
import EngineWorker from "attnscope/worker?worker&inline";
import type { Home } from "./home.ts";
import { unpacked } from "./link.ts";
import { start } from "./start.ts";
import { store, stored } from "./storage.ts";

const part = (id: string) => document.getElementById(id) as HTMLElement;
const content = (id: string) => part(id).textContent;

const state = content("state");
part("state").textContent = "";
// Before anything is drawn into it.
const page = `<!doctype html>\n${document.documentElement.outerHTML}`;

// What is done here stays in the tab, each file's for itself: a reload loses nothing, and a file opened again shows what it holds.
const keyOf = (key: string) => `${key} ${location.pathname}`;
const [visit] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];

const file: Home = {
  isFile: true,
  state: state === "" ? null : state,
  isResumed: visit?.type !== "navigate",
  engineOptions: async () => {
    const parts = ["engine", "analysis", "files"].map((id) => unpacked(content(id)));
    const [wasm, analysisWasm, filesWasm] = await Promise.all(parts);
    // The script for graphics processors would be one more, which the file's policy does not let in.
    return { backend: "cpu", wasm, analysisWasm, filesWasm, worker: () => new EngineWorker() };
  },
  page: async () => page,
  stored: (key) => stored(keyOf(key), "sessionStorage"),
  store: (key, value) => store(keyOf(key), value, "sessionStorage"),
};

await start(file);
