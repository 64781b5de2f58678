// The same measurement in headless Chromium, from a server of this folder. A server rather than Playwright's routes: those hand
// files over as text through the debugger, which would count against the large.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { CHROMIUM_ARGS, chromium } from "../scripts/browsers.mjs";
import { contenders, threadsOf } from "./contenders/index.mjs";

// Exact timestamps, and what an adapter is.
const WEBGPU = ["--enable-unsafe-webgpu", "--enable-webgpu-developer-features"];
/** With WebGPU on SwiftShader, a program in Chromium. */
const SOFTWARE_GPU = [...CHROMIUM_ARGS, ...WEBGPU];
/** With WebGPU on the machine's graphics processor, on Linux by way of Vulkan. */
const REAL_GPU = [
  ...CHROMIUM_ARGS.filter((arg) => arg !== "--disable-gpu"),
  ...WEBGPU,
  ...(process.platform === "linux"
    ? ["--enable-features=Vulkan", "--use-angle=vulkan", "--disable-vulkan-surface"]
    : []),
];

const PEERS = "/benches/node_modules";
/** Where a page finds what Node.js finds by name: the builds that their authors publish for pages. */
const IMPORTS = {
  "onnxruntime-web": `${PEERS}/onnxruntime-web/dist/ort.wasm.min.mjs`,
  "onnxruntime-web/webgpu": `${PEERS}/onnxruntime-web/dist/ort.webgpu.min.mjs`,
  "@tensorflow/tfjs-core": `${PEERS}/@tensorflow/tfjs-core/dist/tf-core.fesm.min.js`,
  "@tensorflow/tfjs-backend-wasm": `${PEERS}/@tensorflow/tfjs-backend-wasm/dist/tf-backend-wasm.fesm.min.js`,
  "@tensorflow/tfjs-backend-webgpu": `${PEERS}/@tensorflow/tfjs-backend-webgpu/dist/tf-backend-webgpu.fesm.min.js`,
  // TensorFlow.js imports these in Node.js alone, but names them everywhere.
  ...Object.fromEntries(
    ["fs", "os", "path", "perf_hooks"].map((name) => [name, "data:text/javascript,export default {}"]),
  ),
  "@jax-js/jax": `${PEERS}/@jax-js/jax/dist/index.js`,
};
const PAGE = `<!doctype html><link rel="icon" href="data:,"><script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>`;
const TYPES = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };
// Shared memory, threads and a precise clock need these.
const ISOLATED = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };

/** Hands `use` a browser's `newPage` and the set of paths that were asked for. */
async function serving(threads, args, use) {
  const asked = new Set();
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    asked.add(pathname);
    if (pathname === "/") return response.writeHead(200, { "Content-Type": "text/html", ...ISOLATED }).end(PAGE);
    try {
      const body = readFileSync(path.join(".", pathname));
      response.writeHead(200, { "Content-Type": TYPES[path.extname(pathname)] ?? "text/plain", ...ISOLATED }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const playwright = await import("@playwright/test");
  const browser = await playwright.chromium.launch({ executablePath: chromium(), args });
  try {
    const newPage = async () => {
      const context = await browser.newContext();
      const page = await context.newPage();
      // Some make as many threads as they see cores.
      await page.addInitScript(
        (cores) => Object.defineProperty(navigator, "hardwareConcurrency", { value: cores }),
        threads,
      );
      await page.goto(`http://localhost:${server.address().port}/`);
      return page;
    };
    return await use({ newPage, asked, name: `Chromium ${browser.version()}` });
  } finally {
    await browser.close();
    server.close();
  }
}

/** Calls a function of a file of this folder in a page. */
const call = (page, file, name, ...args) =>
  page.evaluate(
    async ([file, name, args]) => {
      const functions = await import(`/benches/${file}`);
      return functions[name](...args);
    },
    [file, name, args],
  );

/** A page that says what it does. */
async function talking(newPage) {
  const page = await newPage();
  page.on("console", (message) => console.log(message.text()));
  return page;
}

export const measureInBrowser = (plan, threads) =>
  serving(threads, CHROMIUM_ARGS, async ({ newPage, name }) => {
    const page = await talking(newPage);
    const result = await call(page, "measure.mjs", "measure", plan, { threads, peers: PEERS });
    return { runtime: name, ...result };
  });

/** Chromium's arguments for WebGPU. Where it finds no graphics processor, looking for one by Vulkan may end the software renderer. */
const gpuArgs = (threads) =>
  serving(threads, REAL_GPU, async ({ newPage }) => {
    const { isSoftware } = await call(await newPage(), "gpu.mjs", "describe");
    return isSoftware ? SOFTWARE_GPU : REAL_GPU;
  }).catch(() => SOFTWARE_GPU);

/** On a graphics processor; its kernels are timed in a page of their own, whose WebGPU is wrapped for it. */
export const measureOnGpu = async (plan, threads) =>
  serving(threads, await gpuArgs(threads), async ({ newPage, name }) => {
    const page = await talking(newPage);
    const { adapter, isSoftware } = await call(page, "gpu.mjs", "describe");
    const isTooLarge = ({ size }) => isSoftware && size === "XL";
    const cases = plan.cases.filter((spec) => !isTooLarge(spec));
    const result = await call(page, "measure.mjs", "measure", { ...plan, cases }, { threads, peers: PEERS });
    const notRun = plan.cases.filter(isTooLarge).map(({ work, size, causal }) => {
      return { contender: "everyone", variant: "all", work, size, causal, reason: "takes a program seconds" };
    });
    const shapes = cases.filter(({ causal }) => !causal);
    const passes = shapes.flatMap((spec) => ["mha", "output"].map((work) => ({ ...spec, work })));
    const ofItsOwn = await talking(newPage);
    const kernels = await call(ofItsOwn, "kernels.mjs", "kernels", passes, plan.rounds).catch(({ message }) => {
      const [reason] = message.split("\n");
      notRun.push({ contender: "attnscope", variant: "webgpu", work: "kernels", reason });
      return [];
    });
    return { runtime: name, adapter, ...result, notRun: [...result.notRun, ...notRun], kernels };
  });

/** A race of starts: `{ spec, entrants }`, each with the bytes of what it fetched, compressed by gzip. */
export const startsInBrowser = (spec, rounds, threads) =>
  serving(threads, CHROMIUM_ARGS, async ({ newPage, asked }) => {
    const entrants = contenders.cpu.flatMap((of) =>
      of.variants.map((variant) => {
        const entrant = { kind: of.kind, contender: of.name, variant, threads: threadsOf(of, variant, threads) };
        return { ...entrant, work: "start", samples: [], bytes: 0 };
      }),
    );
    const notRun = new Map();
    for (let round = 0; round < rounds; round++) {
      for (const entrant of round % 2 === 0 ? entrants : entrants.toReversed()) {
        const { contender, variant, samples } = entrant;
        const page = await newPage();
        try {
          await page.evaluate(async () => void (await import("/benches/measure.mjs")));
          asked.clear();
          const where = { threads, peers: PEERS };
          samples.push(await call(page, "measure.mjs", "firstResult", contender, variant, spec, where));
          entrant.bytes = [...asked].reduce(
            (sum, file) => sum + gzipSync(readFileSync(path.join(".", file))).length,
            0,
          );
        } catch (reason) {
          notRun.set(entrant, { contender, variant, work: "start", reason: reason.message.split("\n")[0] });
        } finally {
          await page.context().close();
        }
      }
    }
    for (const { contender, variant, reason } of notRun.values())
      console.log(`NOT RUN: ${contender}, ${variant}: start: ${reason}`);
    return {
      race: { spec, entrants: entrants.filter((entrant) => !notRun.has(entrant)) },
      notRun: [...notRun.values()],
    };
  });
