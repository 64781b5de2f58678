import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";
import { offline } from "./offline.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: here("."),
  base: "./",
  plugins: [svelte(), offline(here("service-worker.js"))],
  resolve: {
    alias: [
      { find: /^attnscope$/, replacement: here("../dist/index.js") },
      { find: /^attnscope\/views$/, replacement: here("../dist/views/index.js") },
    ],
  },
  worker: { format: "es" },
  build: {
    outDir: here("../dist-site"),
    emptyOutDir: true,
    target: "es2022",
    // These know light-dark(), which must follow the scheme that the page sets, not the system alone.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    // What the first view needs comes in one file, which packs better than many.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "page", tags: ["$initial"] }] } } },
  },
});
