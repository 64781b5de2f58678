import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: here(".."),
  plugins: [svelte()],
  worker: { format: "es" },
  build: {
    target: "es2022",
    rolldownOptions: { input: ["index", "worker", "react", "svelte", "vue"].map((page) => here(`${page}.html`)) },
  },
});
