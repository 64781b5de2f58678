// Builds everything, in seven steps; a step is skipped while its inputs are what they were.
//   xtask     the build tools, compiled for this machine
//   types     js/generated.ts: TypeScript declarations of the Rust types
//   shaders   js/gpu/shaders.ts: the GPU's kernels as text
//   wasm      js/wasm/: the engine and its glue
//   package   dist/ and bundled/: what npm publishes
//   site      dist-site/: the page
//   docs      dist-site/docs/: the documentation, which goes with the site
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { fileURLToPath } from "node:url";
import { compile, fail, run, toolchain } from "./cargo.mjs";
import { withoutClosures } from "./closures.mjs";
import { Names, renamed } from "./names.mjs";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const XTASK = `target/debug/xtask${process.platform === "win32" ? ".exe" : ""}`;
const RUST = ["Cargo.toml", "Cargo.lock", "src", "files", "boundary"];
const STAMPS = "target/build-stamps.json";
const ENGINE_GLUE = "js/wasm/attnscope.js";
/** What wasm-opt is told that each variant may use. */
const OPTIMIZING = {
  simd128: ["--enable-simd"],
  relaxed: ["--enable-simd", "--enable-relaxed-simd"],
  threads: ["--enable-simd", "--enable-relaxed-simd", "--enable-threads"],
};

/** What an engine of each variant must hold. */
const INSTRUCTIONS = {
  simd128: ["f32x4.mul"],
  relaxed: ["f32x4.relaxed_madd"],
  threads: ["f32x4.relaxed_madd", "memory.atomic.wait32"],
};

const npx = (command, ...args) => run(process.execPath, [`node_modules/${command}`, ...args]);

function filesUnder(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .sort()
    .flatMap((name) => filesUnder(`${path}/${name}`));
}

function fingerprint(inputs, tool) {
  const hash = createHash("sha256").update(tool);
  for (const file of inputs.flatMap(filesUnder)) hash.update(`\0${file}\0`).update(readFileSync(file));
  return hash.digest("hex");
}

const stamps = existsSync(STAMPS) ? JSON.parse(readFileSync(STAMPS, "utf8")) : {};

function stamp(name, fingerprint) {
  stamps[name] = fingerprint;
  mkdirSync("target", { recursive: true });
  writeFileSync(STAMPS, JSON.stringify(stamps, null, 2));
}

function step(name, { inputs, output, tool = "" }, build) {
  const wanted = fingerprint([...inputs, "scripts/build.mjs", "scripts/cargo.mjs"], tool);
  if (stamps[name] === wanted && existsSync(output)) return console.log(`${name}: unchanged`);
  const start = performance.now();
  console.log(`${name}: building`);
  // What a step leaves that fails is of no sources.
  stamp(name, "");
  build();
  stamp(name, wanted);
  console.log(`${name}: built in ${((performance.now() - start) / 1000).toFixed(1)} s`);
}

// Carried by the package and by its WebAssembly, as the name of a section: the package refuses one of another build.
process.env.ATTNSCOPE_BUILD = fingerprint([...RUST, "bindings", "analysis", "gpu"], "").slice(0, 16);

step("xtask", { inputs: [...RUST, "xtask"], output: XTASK }, () => {
  run("cargo", ["build", "--quiet", "-p", "xtask"]);
});

step("types", { inputs: [...RUST, "bindings", "xtask"], output: "js/generated.ts" }, () => {
  writeFileSync("js/generated.ts", execFileSync(XTASK, ["types"]));
});

step("shaders", { inputs: ["src/shaders"], output: "js/gpu/shaders.ts" }, () => {
  const entries = filesUnder("src/shaders").map((file) => {
    return `  ${file.match(/(\w+)\.wgsl$/)[1]}: ${JSON.stringify(readFileSync(file, "utf8"))},\n`;
  });
  const head = "// Generated from src/shaders; do not edit.\n/** The GPU's kernels by name. */\n";
  writeFileSync("js/gpu/shaders.ts", `${head}export const SHADERS = {\n${entries.join("")}};\n`);
});

/** What the package calls an engine's file, and the build that it is. */
const ENGINES = { simd128: "simd128", relaxed: toolchain("threads") ? "threads" : "relaxed" };

step(
  "wasm",
  {
    inputs: [
      ...RUST,
      "bindings",
      "analysis",
      "gpu",
      "scripts/names.mjs",
      "scripts/closures.mjs",
      "scripts/binary.mjs",
      "package-lock.json",
    ],
    output: ENGINE_GLUE,
    tool: [toolchain()?.name, toolchain("threads")?.name].join(),
  },
  () => {
    rmSync("js/wasm", { recursive: true, force: true });
    mkdirSync("js/wasm", { recursive: true });
    const names = new Names();
    if (toolchain() && ENGINES.relaxed !== "threads")
      console.log(`wasm: no threads: ${toolchain().name} has no sources of std`);
    for (const [engine, variant] of Object.entries(ENGINES)) {
      // One glue serves both: that of the last, which knows memory that is shared.
      const text = wasm("attnscope-bindings", variant, "attnscope", `attnscope_${engine}`, "engine", names);
      const missing = INSTRUCTIONS[variant].find((instruction) => !text.includes(instruction));
      if (missing) fail(`the ${engine} engine holds no ${missing}`);
    }
    wasm("attnscope-analysis", "simd128", "attnscope_analysis", "attnscope_analysis", "analysis");
    wasm("attnscope-files-bindings", "simd128", "attnscope_files", "attnscope_files", "files");
    wasm("attnscope-gpu", "simd128", "attnscope_gpu", "attnscope_gpu", "gpu");
  },
);

/** Compiles a crate to js/wasm/, a binary beside its glue; gives the binary as text. */
function wasm(crate, variant, glue, binary, part, names = new Names()) {
  const out = `target/${variant}/bindgen`;
  const compiled = compile(crate, variant);
  const options = ["--experimental-reset-state-function", "--omit-default-module-path", "--target", "web"];
  run(XTASK, ["bindgen", compiled, ...options, "--out-dir", out, "--out-name", glue]);
  const to = `js/wasm/${binary}.wasm`;
  const script = readFileSync(`${out}/${glue}.js`, "utf8");
  if (/make\w*Closure/.test(script)) fail(`${crate} hands a closure over, which would be emptied`);
  writeFileSync(to, renamed(withoutClosures(readFileSync(`${out}/${glue}_bg.wasm`)), names));
  // Nothing lies in the first kilobyte but the end of the stack.
  const small = ["-Oz", "--converge", "--low-memory-unused", "--strip-producers", "--strip-target-features"];
  npx("binaryen/bin/wasm-opt", ...small, ...OPTIMIZING[variant], to, "-o", to);
  const disassemble = ["node_modules/binaryen/bin/wasm-dis", to];
  const text = execFileSync(process.execPath, disassemble, { encoding: "utf8", maxBuffer: 2 ** 30 });
  const exported = new Set(Array.from(text.matchAll(/^ \(export "\w+" \(func (\S+)\)\)$/gm), ([, name]) => name));
  for (const [, name] of text.matchAll(/^ \(func (\S+) .*\(result externref\)$/gm)) {
    if (exported.has(name)) fail(`${crate} exports a function that returns a reference alone: see bindings/src/lib.rs`);
  }
  const [, build] = readFileSync("js/generated.ts", "utf8").match(/BUILD = "(.+)"/);
  appendFileSync(to, section(`attnscope ${part} ${build}`));
  writeFileSync(`js/wasm/${glue}.js`, withNames(script, names));
  // Users whose TypeScript has no library for explicit disposal could not check the glue's types. Names by which nobody calls are
  // left out.
  const types = readFileSync(`${out}/${glue}.d.ts`, "utf8");
  writeFileSync(
    `js/wasm/${glue}.d.ts`,
    types.replaceAll(/^ *\[Symbol\.dispose\]\(\): void;\n|^ {4}readonly (?!memory).*\n/gm, ""),
  );
  return text;
}

/** A custom section that is a name alone, of less than 127 bytes. */
function section(name) {
  return Buffer.from([0, name.length + 1, name.length, ...Buffer.from(name)]);
}

/** The glue with the names by which it and its WebAssembly call each other, which were shortened there. */
function withNames(glue, names) {
  return (
    glue
      .replace(/"[^"]+": import0/, "a: import0")
      .replaceAll(/^( {8})(\w+)(: function)/gm, (line, indent, name, rest) =>
        names.of(name) ? `${indent}${names.of(name)}${rest}` : line,
      )
      .replaceAll(/\bwasm\.(\w+)/g, (call, name) => (names.of(name) ? `wasm.${names.of(name)}` : call))
      // Shared memory is made for an engine that imports it, and only for it.
      .replace(/^( {8})memory: (memory \|\| new .*),$/m, "$1get memory() { return $2; },")
  );
}

step(
  "package",
  {
    inputs: ["js", "scripts/bundle.mjs", "tsconfig.json", "tsconfig.build.json", "package-lock.json"],
    output: "dist/index.js",
  },
  () => {
    rmSync("dist", { recursive: true, force: true });
    npx("typescript/bin/tsc", "-p", "tsconfig.build.json");
    cpSync("js/wasm", "dist/wasm", { recursive: true });
    run(process.execPath, ["scripts/bundle.mjs"]);
  },
);

step(
  "site",
  { inputs: ["dist", "bundled", "www", "NOTICE", "package-lock.json"], output: "dist-site/index.html" },
  () => {
    npx("vite/bin/vite.js", "build", "www", "--logLevel", "warn");
  },
);

step(
  "docs",
  {
    inputs: ["dist", "bundled", "docs/site", "www/licences.ts", "www/src/app.css", "NOTICE", "package-lock.json"],
    output: "dist-site/docs/index.html",
  },
  () => {
    npx("vite/bin/vite.js", "build", "docs/site", "--logLevel", "warn");
  },
);
