// The package's parts from another origin, as from a CDN, and what is said where one of them does not come.
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, type Page, test } from "@playwright/test";
import { ISOLATION, serve } from "../packaging/static-server.mjs";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const SHARED = { ...ISOLATION, "Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin" };
const ICON = `<!doctype html><link rel="icon" href="data:,">`;

const served: Awaited<ReturnType<typeof serve>>[] = [];
let folder: string;
let cdn: string;

async function serving(policy: string | null, headers: Record<string, string>): Promise<string> {
  const server = await serve(folder, policy, headers);
  served.push(server);
  return server.address;
}

test.beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "attnscope-cdn-"));
  symlinkSync(repository, path.join(folder, "attnscope"), "junction");
  cdn = `${await serving(null, SHARED)}/attnscope`;
});
test.afterAll(() => {
  for (const { close } of served) close();
  rmSync(folder, { recursive: true });
});

/** Opens a page with this text, at an origin of its own, when the package is there. */
async function open(page: Page, text: string, policy: string | null = null): Promise<string> {
  writeFileSync(path.join(folder, "page.html"), `${ICON}${text}`);
  const site = await serving(policy, ISOLATION);
  await page.goto(`${site}/page.html`);
  await page.waitForFunction(() => "attnscope" in globalThis);
  return `${site}/attnscope`;
}

const classic = (address: string) => `<script src="${address}"></script>`;
const modules = (home: string) => `
  <script type="importmap">{ "imports": { "attnscope": "${home}/dist/index.js" } }</script>
  <script type="module">globalThis.attnscope = await import("attnscope")</script>`;

/** What an engine gives that needs every part of the package, or how it is refused. */
function attend(page: Page, options: Record<string, unknown> = {}) {
  return page.evaluate(async (options) => {
    const { attnscope } = globalThis as unknown as typeof import("./harness/main.ts");
    let engine: Awaited<ReturnType<typeof attnscope.createEngine>> | undefined;
    try {
      engine = await attnscope.createEngine({ backend: "cpu", threads: 1, ...options });
      const x = await engine.torchGenerator(1).randn([300, 256]);
      const { weights } = await engine.multiHeadAttention({ dModel: 256, nHeads: 8 }).forward(x);
      const read = await engine.readTensors("1,2", { format: "csv" });
      const entropy = await engine.analysis.entropy([[1, 0]]);
      const { threads } = engine.info;
      return { weights: weights.shape, read: [...(read.tensor?.data ?? [])], entropy: [...entropy.data], threads };
    } catch (reason) {
      const { name, code, details, message } = reason as InstanceType<typeof attnscope.AttnError>;
      return { name, code, details, message };
    } finally {
      engine?.destroy();
    }
  }, options);
}

const COMPUTED = { weights: [8, 300, 300], read: [1, 2], entropy: [0], threads: 1 };
const WITH_HELPERS = { ...COMPUTED, threads: 2 };

test("modules of another origin compute in a worker, with its helpers", async ({ page }) => {
  await open(page, modules(cdn));
  expect(await attend(page, { threads: 2 })).toEqual(WITH_HELPERS);
});

test("a classic script of another origin, by its address", async ({ page }) => {
  await open(page, classic(`${cdn}/bundled/attnscope.global.js`));
  expect(await attend(page, { threads: 2 })).toEqual(WITH_HELPERS);
});

test("a classic script of another origin, by the package's name", async ({ page }) => {
  const script = path.join(repository, "bundled/attnscope.global.js");
  await page.route(cdn, (route) => route.fulfill({ path: script, headers: SHARED }));
  await open(page, classic(cdn));
  expect(await attend(page, { threads: 2 })).toEqual(WITH_HELPERS);
});

test("modules of another origin in a worker of one's own, with helpers", async ({ page }) => {
  const script = `import { createEngine } from "${cdn}/dist/index.js";
    const engine = await createEngine({ backend: "cpu", threads: 2 });
    const x = await engine.torchGenerator(1).randn([300, 256]);
    await engine.multiHeadAttention({ dModel: 256, nHeads: 8 }).forward(x);
    postMessage(engine.info.threads);`;
  writeFileSync(path.join(folder, "own.js"), script);
  await open(page, modules(cdn));
  const threads = await page.evaluate(
    () =>
      new Promise((resolve) => {
        new Worker("own.js", { type: "module" }).onmessage = ({ data }) => resolve(data);
      }),
  );
  expect(threads).toBe(2);
});

for (const [part, file] of [
  ["the engine's worker", "worker.js"],
  ["the engine", "wasm/attnscope_relaxed.wasm"],
  ["the analysis", "wasm/attnscope_analysis.wasm"],
  ["the reader of files", "wasm/attnscope_files.wasm"],
] as const) {
  test(`no_engine: ${file} that is not there`, async ({ page }) => {
    await page.context().route(`**/${file}`, (route) => route.fulfill({ status: 404, headers: SHARED }));
    for (const isElsewhere of [false, true]) {
      const site = await open(page, modules(isElsewhere ? cdn : "./attnscope"));
      const from = `${isElsewhere ? cdn : site}/dist/${file}`;
      const refusal = await attend(page);
      expect(refusal).toMatchObject({ name: "AttnError", code: "no_engine", details: { part, from } });
      expect(refusal.message).toContain(`${part} could not be loaded from ${from}: `);
    }
    await page.context().unrouteAll();
    expect(await attend(page)).toEqual(COMPUTED);
  });
}

test("no_engine: the script of an engine in the page's thread", async ({ page }) => {
  await page.context().route("**/shared-local.js", (route) => route.fulfill({ status: 404 }));
  await open(page, modules("./attnscope"));
  const details = { part: "the engine's script", found: expect.stringContaining("shared-local.js") };
  expect(await attend(page, { worker: false })).toMatchObject({ name: "AttnError", code: "no_engine", details });
});

for (const [what, policy] of [
  ["workers of other scripts", `script-src 'unsafe-inline' 'wasm-unsafe-eval' *; worker-src 'self'`],
  ["addresses that nobody vouched for", "require-trusted-types-for 'script'"],
] as const) {
  test(`no_engine: a policy that forbids ${what}`, async ({ page, browserName }) => {
    test.skip(browserName === "firefox" && policy.startsWith("require"), "Firefox has no such policy");
    await open(page, modules(cdn), policy);
    const details = { part: "the engine's worker", from: `${cdn}/dist/worker.js` };
    expect(await attend(page)).toMatchObject({ name: "AttnError", code: "no_engine", details });
  });
}

test("a relative address is one of the page's base", async ({ page }) => {
  await open(page, `<base href="/attnscope/dist/">${modules("/attnscope")}`);
  const at = (name: string) => `./wasm/attnscope_${name}.wasm`;
  const parts = { wasm: at("relaxed"), analysisWasm: at("analysis"), filesWasm: at("files") };
  expect(await attend(page, parts)).toEqual(COMPUTED);
  await open(page, `<base href="/attnscope/dist/">${modules("/attnscope")}`);
  expect(await attend(page, { ...parts, worker: false })).toEqual(COMPUTED);
});
