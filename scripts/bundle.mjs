// Shrinks the glue in dist/wasm/, joins the modules in dist/ to a few, and bundles what must be one file, to bundled/:
//   attnscope.global.js      the package for classic scripts
//   attnscope.anywidget.js   a widget for notebooks
//   attnscope.gpu.js         what computes on graphics processors, which the engine loads by its address
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const NOTICE = "/*! attnscope, MIT OR Apache-2.0, and d3-format, ISC: see NOTICE */";

const GLUES = ["attnscope", "attnscope_analysis", "attnscope_files"];
for (const glue of GLUES) {
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
var attnscopeHome = globalThis.document?.currentScript?.src;
// A CDN gives this file for the package's name too.
attnscopeHome &&= new URL((/\\.js([?#]|$)/.test(attnscopeHome) ? ".." : attnscopeHome) + "/dist/global.js", attnscopeHome).href;`,
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

// A page without a bundler fetches a few files instead of one for each of ours, one behind the other: half the time to a first result.
// Addresses stay as they are written, for the bundlers of users to see, and the types as `tsc` made them.
const ENTRIES = ["index", "slim", "elements", "worker", "views/index"];
const { output } = await build({
  input: Object.fromEntries(ENTRIES.map((entry) => [entry, `dist/${entry}.js`])),
  external: [/[\\/]wasm[\\/]attnscope\.js$/, "d3-format"],
  output: {
    dir: "dist",
    format: "esm",
    chunkFileNames: "shared-[name].js",
    // Small, and of use to every entry: a file for each would be one more to wait for.
    codeSplitting: {
      groups: [{ name: "tensors", test: /[\\/]dist[\\/](errors|shown|tensor|selection|options|node-worker)\.js$/ }],
    },
  },
  write: false,
});
for (const file of readdirSync("dist", { recursive: true })) {
  if (/\.js$/.test(file) && !/^wasm[\\/]/.test(file)) rmSync(`dist/${file}`);
}
// That of the engine alone stays by itself, for its realm has one.
for (const glue of GLUES.slice(1)) rmSync(`dist/wasm/${glue}.js`);
const imports = new Map(output.map(({ fileName, imports }) => [fileName, imports]));
for (const { fileName, code, isEntry } of output) {
  mkdirSync(path.dirname(`dist/${fileName}`), { recursive: true });
  writeFileSync(`dist/${fileName}`, isEntry ? withAllImports(code, fileName) : code);
}

/** An entry that imports at once all that it needs: what only its imports name would be fetched when these are there. */
function withAllImports(code, entry) {
  const direct = imports.get(entry);
  const found = new Set(direct);
  for (const file of found) {
    for (const further of imports.get(file) ?? []) found.add(further);
  }
  const ours = [...found].filter((file) => !direct.includes(file) && file !== entry && /\.js$/.test(file));
  const address = (file) => {
    const relative = path.posix.relative(path.posix.dirname(entry), file);
    return relative.startsWith(".") ? relative : `./${relative}`;
  };
  return ours.map((file) => `import "${address(file)}";\n`).join("") + code;
}

// What is no module of its own for TypeScript: what a classic script leaves, and what a bundler's loader makes of WebAssembly.
writeFileSync(
  "dist/global.d.ts",
  `declare global {
  /** What the classic script gives. */
  const attnscope: typeof import("./index.js") & { readonly views: typeof import("./views/index.js") };
}
export {};
`,
);
writeFileSync(
  "dist/wasm/part.d.ts",
  `import type { WasmSource } from "../index.js";
/** An address, bytes or a module: what the loader of the bundler makes of it. */
declare const part: WasmSource;
export default part;
`,
);
