// The page's service worker with the names of the page's files in it.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Plugin } from "vite";

/** Files that a page may do without: kept when they are fetched. The page itself is "./". */
const LATER = /\.(wasm|html|txt)$/;

export function offline(worker: string): Plugin {
  return {
    name: "offline",
    apply: "build",
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        const files = ["./", ...Object.keys(bundle).filter((name) => !LATER.test(name))];
        const hash = createHash("sha256");
        // Other names hold a hash of what the file holds.
        for (const [name, file] of Object.entries(bundle)) {
          hash.update(name.endsWith(".html") && file.type === "asset" ? file.source : name);
        }
        const version = hash.digest("hex").slice(0, 12);
        const source = readFileSync(worker, "utf8")
          .replace("__FILES__", JSON.stringify(files))
          .replace("__VERSION__", JSON.stringify(version));
        this.emitFile({ type: "asset", fileName: "service-worker.js", source });
      },
    },
  };
}
