import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type UserConfig } from "vite";
import { fonts } from "./fonts.ts";
import { licences } from "./licences.ts";
import { offline } from "./offline.ts";
import { singleFile } from "./single-file.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// That a plugin takes most of a build's time is no news: one of them builds the page once more.
const checks = { pluginTimings: false };

const page: UserConfig = {
  root: here("."),
  base: "./",
  resolve: {
    alias: [
      { find: /^attnscope$/, replacement: here("../dist/index.js") },
      { find: /^attnscope\/views$/, replacement: here("../dist/views/index.js") },
      { find: /^attnscope\/worker/, replacement: here("../dist/worker.js") },
    ],
  },
  worker: { format: "es", rolldownOptions: { checks } },
  build: {
    target: "es2022",
    // These know light-dark(), which must follow the scheme that the page sets, not the system alone.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    rolldownOptions: { checks },
  },
};

const file = singleFile(
  {
    page: here("index.html"),
    entry: here("src/main-file.ts"),
    parts: {
      engine: here("../dist/wasm/attnscope_simd128.wasm"),
      analysis: here("../dist/wasm/attnscope_analysis.wasm"),
      files: here("../dist/wasm/attnscope_files.wasm"),
    },
  },
  { ...page, plugins: [svelte(), fonts()] },
);

export default defineConfig({
  ...page,
  plugins: [svelte(), fonts(), file, licences(), offline(here("service-worker.js"))],
  build: {
    ...page.build,
    outDir: here("../dist-site"),
    emptyOutDir: true,
    // What the first view needs comes in one file, which packs better than many.
    rolldownOptions: { checks, output: { codeSplitting: { groups: [{ name: "page", tags: ["$initial"] }] } } },
  },
});
