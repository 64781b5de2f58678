// Bundles what must be one file: the package for classic scripts.
//   bundled/attnscope.global.js
import { fileURLToPath } from "node:url";
import { build } from "rolldown";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

await build({
  input: "dist/global.js",
  // A classic script knows its address only while it runs first; what lies beside dist/ is found from there.
  transform: { define: { "import.meta.url": "attnscopeHome" } },
  output: {
    file: "bundled/attnscope.global.js",
    format: "iife",
    name: "attnscope",
    codeSplitting: false,
    minify: true,
    banner: `/*! attnscope, MIT OR Apache-2.0, and d3-format, ISC: see NOTICE */
var attnscopeHome = document.currentScript && new URL("../dist/global.js", document.currentScript.src).href;`,
  },
});
