// Fuzzes the engine's readers, masks and options with libFuzzer, each target a minute.
//   --seconds N     each target that long
//   --only TARGET   one of fuzz/fuzz_targets
// A finding is left in fuzz/artifacts; run it again with fuzz/target/.../release/TARGET FILE.
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ask, fail, run } from "./cargo.mjs";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

// The coverage that libFuzzer follows; a stable compiler has it too.
const COVERAGE = [
  "-Cpasses=sancov-module",
  "-Cllvm-args=-sanitizer-coverage-level=4",
  "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
  "-Cllvm-args=-sanitizer-coverage-pc-table",
  "-Cllvm-args=-sanitizer-coverage-trace-compares",
  "-Ccodegen-units=1",
  "--cfg=fuzzing",
].join(" ");
const LONGEST_INPUT = 8192;
const SECONDS_PER_INPUT = 5;

const { values } = parseArgs({ options: { seconds: { type: "string", default: "60" }, only: { type: "string" } } });
const all = readdirSync("fuzz/fuzz_targets").map((file) => file.replace(/\.rs$/, ""));
const targets = values.only ? all.filter((target) => target === values.only) : all;
if (targets.length === 0) fail(`no target ${values.only}; there are ${all.join(", ")}`);

// Named, so that build scripts and macros are compiled without the coverage.
const host = ask("rustc", "-vV").match(/^host: (.*)$/m)?.[1] ?? fail("no rustc");
const build = ["build", "--quiet", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", host];
run("cargo", [...build, ...targets.flatMap((target) => ["--bin", target])], { RUSTFLAGS: COVERAGE });

for (const target of targets) {
  const [corpus, artifacts] = [`fuzz/corpus/${target}`, `fuzz/artifacts/${target}`];
  for (const folder of [corpus, artifacts]) mkdirSync(folder, { recursive: true });
  const own = `fuzz/seeds/${target}`;
  const seeds = existsSync(own) ? own : "tests/golden/samples";
  console.log(`fuzz ${target}: ${values.seconds} s`);
  run(`fuzz/target/${host}/release/${target}`, [
    corpus,
    seeds,
    `-artifact_prefix=${artifacts}/`,
    `-max_total_time=${values.seconds}`,
    `-max_len=${LONGEST_INPUT}`,
    `-timeout=${SECONDS_PER_INPUT}`,
    "-print_final_stats=1",
    "-verbosity=0",
  ]);
}
