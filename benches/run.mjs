// npm run bench [-- --node] [-- --only mha] [-- --size L] [-- --rounds 9] [-- --threads 1] [-- --json FILE]
// npm run bench -- --growth FILE.svg    how our own time grows instead
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { fail } from "../scripts/cargo.mjs";
import { measureInBrowser, startsInBrowser } from "./browser.mjs";
import { build } from "./build.mjs";
import { GROWTH, growth } from "./growth.mjs";
import { measure } from "./measure.mjs";
import { figures, fullName, tables } from "./report.mjs";
import { ATTENTION, cases, WORK } from "./work.mjs";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const { values: options } = parseArgs({
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
const works = [...Object.keys(WORK), "start"];
if (only && !works.includes(only)) fail(`--only is one of ${works.join(", ")}`);

/** What was measured, of the packages and crates. */
function versions() {
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  const { dependencies } = JSON.parse(readFileSync("benches/package.json", "utf8"));
  const lock = readFileSync("Cargo.lock", "utf8");
  const crates = ["ndarray", "gemm", "rten-gemm"].map((name) => [
    name,
    lock.match(new RegExp(`name = "${name}"\nversion = "(.*)"`))[1],
  ]);
  return { attnscope: version, ...dependencies, ...Object.fromEntries(crates) };
}

const run = async (plan) =>
  options.node
    ? { runtime: `Node.js ${process.versions.node}`, ...(await measure(plan, { threads })) }
    : measureInBrowser(plan, threads);

// Node.js 20 has relaxed SIMD behind a flag.
if (options.node && Number.parseInt(process.versions.node, 10) < 22)
  setFlagsFromString("--experimental-wasm-relaxed-simd");
build();
const load = loadavg()[0];

if (options.growth) {
  const { races } = await run({ cases: GROWTH, rounds, only: ["attnscope"] });
  const { text, svg } = growth(races, "relaxed");
  writeFileSync(options.growth, svg);
  console.log(`\n${text}`);
} else {
  const { runtime, peak, races, notRun } = await run({ cases: cases({ only, size }), rounds });
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
  const date = new Date().toISOString().slice(0, 10);
  const cores = availableParallelism();
  const env = { date, runtime, cores, load, threads, rounds, versions: versions(), bytes, notRun };
  const summary = figures({ env, peak, races });
  console.log(`\n${tables({ env, peak, races }, summary)}`);
  if (options.json) writeFileSync(options.json, JSON.stringify(summary, null, 2));
}
