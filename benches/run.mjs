// npm run bench [-- --browser] [-- --json FILE]
import { mkdirSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { CHROMIUM_ARGS, chromium } from "../scripts/browsers.mjs";
import { compile, run } from "../scripts/cargo.mjs";
import { measure } from "./matmul.mjs";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const { values: options } = parseArgs({ options: { browser: { type: "boolean" }, json: { type: "string" } } });

function buildBaseline() {
  // The rival is built fast, as our kernels are.
  process.env.CARGO_PROFILE_RELEASE_OPT_LEVEL = "3";
  mkdirSync("target/bench", { recursive: true });
  const wasmOpt = "node_modules/binaryen/bin/wasm-opt";
  run(process.execPath, [wasmOpt, "-O3", compile("baseline"), "-o", "target/bench/baseline.wasm"]);
}

/** The same measurement in headless Chromium, its files handed over from this folder. */
async function measureInBrowser() {
  const playwright = await import("@playwright/test");
  const browser = await playwright.chromium.launch({ executablePath: chromium(), args: CHROMIUM_ARGS });
  try {
    const page = await browser.newPage();
    await page.route("**/*", (route) => {
      const path = new URL(route.request().url()).pathname.slice(1);
      return path === "" ? route.fulfill({ contentType: "text/html", body: "" }) : route.fulfill({ path });
    });
    await page.goto("http://localhost/");
    return await page.evaluate(async () => {
      const { measure } = await import("/benches/matmul.mjs");
      return measure(async (path) => (await fetch(`/${path}`)).arrayBuffer());
    });
  } finally {
    await browser.close();
  }
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

function report({ size: { m, k, n }, errors, samples }) {
  const flops = 2 * m * k * n;
  console.log(`out[${m}, ${n}] = left[${m}, ${k}] · right[${k}, ${n}], ${samples.ours.length} rounds`);
  for (const [name, times] of Object.entries(samples)) {
    const middle = median(times);
    const range = `${Math.min(...times).toFixed(1)} to ${Math.max(...times).toFixed(1)}`;
    const speed = (flops / middle / 1e6).toFixed(1);
    console.log(
      `${name.padEnd(8)} ${middle.toFixed(1)} ms (${range}), ${speed} GFLOP/s, relative error ${errors[name].toExponential(1)}`,
    );
  }
  const ratio = median(samples.ndarray.map((time, round) => time / samples.ours[round]));
  console.log(`ndarray / ours, median of the rounds: ${ratio.toFixed(2)}`);
  return ratio;
}

buildBaseline();
const result = options.browser ? await measureInBrowser() : await measure((path) => readFile(path));
const ratio = report(result);
const where = options.browser ? "chromium" : `node ${process.versions.node}`;
if (options.json) writeFileSync(options.json, JSON.stringify({ where, ratio, ...result }, null, 2));
