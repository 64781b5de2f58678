import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { licences } from "../../www/licences.ts";
import { pages } from "./pages.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: here("."),
  base: "./",
  plugins: [pages(), licences()],
  resolve: {
    alias: [
      { find: /^attnscope$/, replacement: here("../../dist/index.js") },
      { find: /^attnscope\/elements$/, replacement: here("../../dist/elements.js") },
      { find: /^attnscope\/views$/, replacement: here("../../dist/views/index.js") },
    ],
  },
  worker: { format: "es" },
  build: {
    outDir: here("../../dist-site/docs"),
    emptyOutDir: true,
    target: "es2022",
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    modulePreload: false,
  },
});
