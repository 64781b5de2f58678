// Shrinks the glue in dist/wasm/, and bundles what must be one file, to bundled/:
//   attnscope.global.js      the package for classic scripts
//   attnscope.anywidget.js   a widget for notebooks
//   attnscope.gpu.js         what computes on graphics processors, which the engine loads by its address
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const NOTICE = "/*! attnscope, MIT OR Apache-2.0, and d3-format, ISC: see NOTICE */";

for (const glue of ["attnscope", "attnscope_files"]) {
  const file = `dist/wasm/${glue}.js`;
  await build({ input: file, output: { file, format: "esm", minify: true } });
}

const bundles = await build([
  {
    input: "dist/global.js",
    // A classic script knows its address only while it runs first; what lies beside dist/ is found from there.
    transform: { define: { "import.meta.url": "attnscopeHome" } },
    output: {
      file: "bundled/attnscope.global.js",
      format: "iife",
      name: "attnscope",
      codeSplitting: false,
      minify: true,
      banner: `${NOTICE}
var attnscopeHome = globalThis.document?.currentScript && new URL("../dist/global.js", document.currentScript.src).href;`,
    },
  },
  {
    input: "dist/anywidget.js",
    output: { file: "bundled/attnscope.anywidget.js", format: "esm", minify: true, banner: NOTICE },
  },
  {
    input: "dist/gpu/gpu.js",
    moduleTypes: { ".wasm": "binary" },
    output: { file: "bundled/attnscope.gpu.js", format: "esm", minify: true, banner: NOTICE },
  },
]);

const notice = readFileSync("NOTICE", "utf8");
for (const id of bundles.flatMap(({ output }) => output.flatMap(({ moduleIds = [] }) => moduleIds))) {
  const [, name] = /.*\bnode_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(id) ?? [];
  if (name && !notice.includes(name)) throw new Error(`NOTICE does not name ${name}, which is bundled`);
}
