// Installs what the other scripts need, and only what is missing; safe to run again.
//   --browsers   also what the tests drive: Chromium, Firefox and WebKit; without the last two their tests are skipped,
//                but fail with CI=1
//   --lint       also asks for rustfmt and clippy
//   --bench      also installs what the engine is measured against
//   WASM_TOOLCHAIN=rustup|debian   allows only that Rust toolchain
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { missingBrowsers } from "./browsers.mjs";
import { ask, fail, run, TARGET, toolchain } from "./cargo.mjs";

/** Of each line that has what Vite needs; all later lines do. */
const OLDEST_NODE = [
  [20, 19],
  [22, 12],
];
const DEBIAN_RUST = ["rustc-web", "cargo-web", "rust-web-src", "rust-web-llvm", "lld-22", "gcc", "libc6-dev"];

const say = (text) => console.log(`setup: ${text}`);

/** Installs Debian packages where we may; elsewhere names the command and stops. */
function apt(what, packages) {
  const install = ["install", "--yes", "--no-install-recommends", ...packages];
  if (process.getuid() !== 0)
    fail(`${what} is missing. Install it and run this again:\n  sudo apt-get ${install.join(" ")}`);
  say(`installing ${what}: ${packages.join(" ")}`);
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  run("apt-get", ["-qq", "update"], env);
  run("apt-get", ["-qq", ...install], env);
}

const hasApt = ask("apt-get", "--version") !== "";

function node() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  const isKnown = OLDEST_NODE.some(([least, from]) => major === least && minor >= from);
  if (!isKnown && major <= OLDEST_NODE.at(-1)[0]) {
    const lines = OLDEST_NODE.map((version) => version.join("."));
    fail(`Node.js from ${lines.join(" or ")} on is needed; this is ${process.versions.node}`);
  }
}

function rust() {
  const only = process.env.WASM_TOOLCHAIN ?? "auto";
  if (!["auto", "rustup", "debian"].includes(only)) fail(`WASM_TOOLCHAIN is "rustup" or "debian", not "${only}"`);
  if (!toolchain() && only !== "debian" && ask("rustup", "--version") !== "") {
    say(`rustup target add ${TARGET}`);
    ask("rustup", "target", "add", TARGET);
  }
  if (!toolchain() && only !== "rustup" && hasApt) apt("a Rust toolchain for WebAssembly", DEBIAN_RUST);
  const found =
    toolchain() ?? fail(`no Rust toolchain for ${TARGET}: get Rust from https://rustup.rs and run this again`);
  say(`WebAssembly by ${found.name}${found.args.length ? ", standard library from source" : ""}`);
}

function lint() {
  for (const [component, command] of [
    ["rustfmt", "fmt"],
    ["clippy", "clippy"],
  ]) {
    if (ask("cargo", command, "--version") === "")
      fail(`${component} is missing:\n  rustup component add ${component}`);
  }
}

function browsers() {
  const mayInstall = hasApt && process.getuid() === 0;
  if (mayInstall && missingBrowsers().length > 0) {
    apt(
      "browsers",
      missingBrowsers().flatMap(({ packages }) => packages),
    );
  }
  for (const { name, packages } of missingBrowsers()) {
    const missing = `no ${name} found; Debian has it as ${packages.join(", ")}`;
    if (name === "Chromium" || process.env.CI) fail(missing);
    say(`${missing}. ITS TESTS WILL BE SKIPPED`);
  }
}

/** The packages of a folder's package-lock.json. */
function packages(folder, ...flags) {
  const stamp = `${folder}/node_modules/.package-lock.sha256`;
  const hash = createHash("sha256")
    .update(readFileSync(`${folder}/package-lock.json`))
    .digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === hash) return;
  const ci = ["ci", "--prefix", folder, "--no-audit", "--no-fund", ...flags];
  say(`npm ${ci.join(" ")}`);
  // npm names itself to the scripts it runs; node runs it by that path on every system
  const npm = process.env.npm_execpath;
  if (npm) run(process.execPath, [npm, ...ci]);
  else run("npm", ci);
  writeFileSync(stamp, hash);
}

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
node();
rust();
if (process.argv.includes("--lint")) lint();
if (process.argv.includes("--browsers")) browsers();
packages(".");
if (process.argv.includes("--bench")) packages("benches", "--ignore-scripts");
