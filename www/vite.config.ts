import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: here("."),
  base: "./",
  plugins: [svelte()],
  resolve: {
    alias: [
      { find: /^attnscope$/, replacement: here("../dist/index.js") },
      { find: /^attnscope\/views$/, replacement: here("../dist/views/index.js") },
    ],
  },
  worker: { format: "es" },
  build: { outDir: here("../dist-site"), emptyOutDir: true, target: "es2022" },
});
