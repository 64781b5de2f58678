// npm run bench [-- --node] [-- --only mha] [-- --size L] [-- --rounds 9] [-- --threads 1] [-- --json FILE]
// npm run bench -- webgpu [--size L] [--rounds 9] [--json FILE]    attention on a graphics processor
// npm run bench -- --growth FILE.svg    how our own time grows instead
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { fail } from "../scripts/cargo.mjs";
import { measureInBrowser, measureOnGpu, startsInBrowser } from "./browser.mjs";
import { build } from "./build.mjs";
import { GROWTH, growth } from "./growth.mjs";
import { measure } from "./measure.mjs";
import { figures, fullName, tables } from "./report.mjs";
import { ATTENTION, cases, MATMUL, WORK } from "./work.mjs";

/** Packages and crates that stand against ours. */
const MEASURED = {
  cpu: [
    "@jax-js/jax",
    "@tensorflow/tfjs-backend-wasm",
    "@tensorflow/tfjs-core",
    "onnxruntime-web",
    "ndarray",
    "gemm",
    "rten-gemm",
  ],
  webgpu: ["@tensorflow/tfjs-backend-webgpu", "@tensorflow/tfjs-core", "onnxruntime-web"],
};

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    node: { type: "boolean" },
    only: { type: "string" },
    size: { type: "string" },
    rounds: { type: "string", default: "9" },
    threads: { type: "string", default: "1" },
    json: { type: "string" },
    growth: { type: "string" },
  },
});
const { only, size } = options;
const [rounds, threads] = [Number(options.rounds), Number(options.threads)];
const sizes = Object.keys({ ...ATTENTION, ...MATMUL });
if (size && !sizes.includes(size)) fail(`--size is one of ${sizes.join(", ")}`);
for (const [name, number] of Object.entries({ rounds, threads })) {
  if (!(Number.isInteger(number) && number >= 1)) fail(`--${name} is a whole number of at least 1`);
}
const works = [...Object.keys(WORK), "start"];
if (only && !works.includes(only)) fail(`--only is one of ${works.join(", ")}`);
const [on = "cpu", ...others] = positionals;
if (!Object.hasOwn(MEASURED, on) || others.length > 0) fail(`what is measured is "cpu" or "webgpu"`);
if (on === "webgpu" && (options.node || options.growth || (only && only !== "mha")))
  fail("webgpu measures attention in a browser");

/** What was measured, of the packages and crates. */
function versions() {
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  const { dependencies } = JSON.parse(readFileSync("benches/package.json", "utf8"));
  const lock = readFileSync("Cargo.lock", "utf8");
  const versionOf = (name) => dependencies[name] ?? lock.match(new RegExp(`name = "${name}"\nversion = "(.*)"`))[1];
  return { attnscope: version, ...Object.fromEntries(MEASURED[on].map((name) => [name, versionOf(name)])) };
}

/** Prints the tables, and writes the figures where they are wanted. */
function report(about, measured) {
  const date = new Date().toISOString().slice(0, 10);
  const env = { date, cores: availableParallelism(), load, threads, rounds, versions: versions(), ...about };
  const summary = figures({ env, ...measured });
  console.log(`\n${tables({ env, ...measured }, summary)}`);
  if (options.json) writeFileSync(options.json, JSON.stringify(summary, null, 2));
}

const run = async (plan) =>
  options.node
    ? { runtime: `Node.js ${process.versions.node}`, ...(await measure(plan, { threads })) }
    : measureInBrowser(plan, threads);

// Node.js 20 has relaxed SIMD behind a flag.
if (options.node && Number.parseInt(process.versions.node, 10) < 22)
  setFlagsFromString("--experimental-wasm-relaxed-simd");
if (on === "cpu") build();
const load = loadavg()[0];

if (on === "webgpu") {
  const plan = { on, cases: cases({ only: "mha", size }), rounds };
  const { runtime, adapter, notRun, ...measured } = await measureOnGpu(plan, threads);
  report({ runtime, adapter, notRun }, measured);
} else if (options.growth) {
  const { races } = await run({ on, cases: GROWTH, rounds, only: ["attnscope"] });
  const { text, svg } = growth(races, "relaxed");
  writeFileSync(options.growth, svg);
  console.log(`\n${text}`);
} else {
  const { runtime, peak, races, notRun } = await run({ on, cases: cases({ only, size }), rounds });
  const bytes = {};
  const wantsStart = (!only || only === "start") && (!size || size === "S");
  if (wantsStart && options.node) {
    notRun.push({ contender: "everyone", variant: "all", work: "start", reason: "a fresh page needs a browser" });
  } else if (wantsStart) {
    const spec = { work: "start", size: "S", ...ATTENTION.S, causal: false };
    const starts = await startsInBrowser(spec, rounds, threads);
    for (const entrant of starts.race.entrants) bytes[fullName(entrant)] = entrant.bytes;
    races.push(starts.race);
    notRun.push(...starts.notRun);
  }
  report({ runtime, bytes, notRun }, { peak, races });
}
