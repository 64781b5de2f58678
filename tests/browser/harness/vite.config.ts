import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const repository = fileURLToPath(new URL("../../..", import.meta.url));

const ISOLATION = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

export default defineConfig(({ mode }) => ({
  cacheDir: `${repository}node_modules/.vite/harness-${mode}`,
  resolve: {
    alias: [
      { find: /^attnscope$/, replacement: `${repository}dist/index.js` },
      { find: /^attnscope\/elements$/, replacement: `${repository}dist/elements.js` },
      { find: /^attnscope\/views$/, replacement: `${repository}dist/views/index.js` },
    ],
  },
  server: { fs: { allow: [repository] }, headers: mode === "isolated" ? ISOLATION : {} },
  // The package finds its worker and its .wasm beside itself, so it is served as it is.
  optimizeDeps: { exclude: ["attnscope", "attnscope/elements", "attnscope/views"] },
}));
