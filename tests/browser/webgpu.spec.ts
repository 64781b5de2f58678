// The GPU backend against the CPU's, on a software adapter.
import { readFile } from "node:fs/promises";
import { expect, type Page, test } from "@playwright/test";
import type { ScaledDotProductOptions } from "attnscope";
import { EVERY_CASE, type Files } from "../cases/all.ts";
import { link } from "./bench.ts";
import { HARNESS, PAGE } from "./ports.ts";

type Harness = typeof import("./harness/main.ts");

test.setTimeout(180_000);

/** Firefox names no adapter. */
const ADAPTER = /swiftshader|unnamed adapter/i;

async function open(page: Page): Promise<void> {
  await page.goto(HARNESS);
  await page.waitForFunction(() => "attnscope" in globalThis);
  await page.evaluate(() => {
    const { attnscope } = globalThis as unknown as Harness;
    type Engine = Awaited<ReturnType<typeof attnscope.createEngine>>;
    const submit = GPUQueue.prototype.submit;
    GPUQueue.prototype.submit = function (commands) {
      tools.submitted++;
      return submit.call(this, commands);
    };
    const tools = {
      /** Passes that went to the GPU. */
      submitted: 0,
      /** Two engines in this thread, where what they do with the GPU can be seen. */
      async both(): Promise<[Engine, Engine]> {
        const make = (backend: "cpu" | "webgpu") => attnscope.createEngine({ backend, worker: false });
        return [await make("cpu"), await make("webgpu")];
      },
      /**
       * The largest difference; relative to the number, or for numbers that are sums of such of both signs, and so may lie near 0,
       * at least to their root mean square. NaN must meet NaN, and infinity infinity.
       */
      difference(ours: ArrayLike<number>, theirs: ArrayLike<number>, areSums = true): number {
        const finite = Array.from(theirs).filter(Number.isFinite);
        const squares = finite.reduce((sum, x) => sum + x * x, 0);
        const least = areSums ? Math.sqrt(squares / Math.max(finite.length, 1)) : 0;
        let worst = ours.length === theirs.length ? 0 : Number.POSITIVE_INFINITY;
        for (let i = 0; i < theirs.length; i++) {
          const [our, their] = [ours[i] as number, theirs[i] as number];
          if (Object.is(our, their)) continue;
          const error = Math.abs(our - their) / Math.max(Math.abs(their), least, 1e-30);
          worst = Number.isFinite(error) ? Math.max(worst, error) : Number.POSITIVE_INFINITY;
        }
        return worst;
      },
    };
    Object.assign(globalThis, { tools });
  });
}

/** What `open` leaves in the page. */
interface Tools {
  submitted: number;
  both(): Promise<[Engine, Engine]>;
  difference(ours: ArrayLike<number>, theirs: ArrayLike<number>, areSums?: boolean): number;
}
type Engine = Awaited<ReturnType<Harness["attnscope"]["createEngine"]>>;
type InPage = Harness & { tools: Tools };

test("every golden case, on the GPU", async ({ page }) => {
  await open(page);
  const golden = new URL("../golden/", import.meta.url);
  const read = async (name: keyof Files) => ({
    manifest: JSON.parse(await readFile(new URL(`${name}.json`, golden), "utf8")) as object,
    base64: (await readFile(new URL(`${name}.safetensors`, golden))).toString("base64"),
  });
  const files = { golden: await read("golden"), onnx: await read("onnx"), arch: await read("arch") };
  const { reports, info, submitted } = await page.evaluate(async (files) => {
    const { attnscope, runAll, tools } = globalThis as unknown as InPage;
    const bytes = (base64: string) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)).buffer;
    const decoded = Object.entries(files).map(([name, { manifest, base64 }]) => {
      return [name, { manifest, tensors: bytes(base64) }];
    });
    const engine = await attnscope.createEngine({ backend: "webgpu", worker: false });
    const reports = await runAll(attnscope, engine, Object.fromEntries(decoded));
    return { reports, info: engine.info, submitted: tools.submitted };
  }, files);
  console.log(`${submitted} passes on ${info.adapter}`);
  for (const [name, report] of Object.entries(reports)) {
    expect(report.failed).toEqual([]);
    expect(report.passed).toEqual(EVERY_CASE[name as keyof Files]);
  }
  expect(info.backend).toBe("webgpu");
  expect(submitted).toBeGreaterThan(130);
});

test("a result goes into the memory of an earlier one", async ({ page }) => {
  await open(page);
  const found = await page.evaluate(async () => {
    const { attnscope, tools } = globalThis as unknown as InPage;
    const engine = await attnscope.createEngine({ backend: "webgpu", worker: false });
    const [x, y] = [1, 2].map((seed) => engine.torchGenerator(seed).randn([9, 8]));
    const mha = engine.multiHeadAttention({ dModel: 8, nHeads: 2 });
    const alone = await mha.forward(await y);
    const first = await mha.forward(await x);
    const again = await mha.forward(await y, { reuse: first });
    return {
      left: [first.output.data.length, first.weights.data.length],
      difference: tools.difference(again.weights.data, alone.weights.data, false),
    };
  });
  expect(found).toEqual({ left: [0, 0], difference: 0 });
});

test("odd sizes, every mask and fill: weights and outputs as on the CPU", async ({ page }) => {
  await open(page);
  const { worst, submitted, passes } = await page.evaluate(async () => {
    const { attnscope, tools } = globalThis as unknown as InPage;
    const { mask } = attnscope;
    const engines = await tools.both();
    const generator = engines[0].torchGenerator(7);
    const worst: Record<string, number> = {};
    let passes = 0;
    const note = (what: string, ours: ArrayLike<number>, theirs: ArrayLike<number>) => {
      worst[what] = Math.max(worst[what] ?? 0, tools.difference(ours, theirs, !what.endsWith("weights")));
    };
    for (const n of [1, 3, 17, 65, 129]) {
      for (const d of [1, 3, 5, 8]) {
        const scattered = mask.dilated(Math.max(1, n >> 1), 2);
        const masks = [null, mask.causal(), mask.slidingWindow(4), mask.padding(Math.ceil(n / 2)), scattered];
        const rule = masks[passes % masks.length];
        const biased = mask.alibi(4).and(mask.causal());
        const ways: readonly [ScaledDotProductOptions, string][] = [
          [{ mask: rule, maskFill: -1e9 }, "-1e9"],
          [{ mask: rule, maskFill: Number.NEGATIVE_INFINITY, needWeights: false }, "sweep"],
          [{ mask: biased, softcap: 5, trace: true }, "bias, cap"],
          [{ mask: biased, needWeights: false, scale: 0.3 }, "bias, sweep"],
          [{ mask: mask.padding(0), emptyRow: "zero", maskFill: Number.NEGATIVE_INFINITY }, "empty rows"],
          [{ mask: mask.padding(0) }, "hidden rows"],
        ];
        for (const [options, name] of ways) {
          const [q, k, v] = await Promise.all(
            [
              [4, n, d],
              [2, n + 2, d],
              [2, n + 2, d + 1],
            ].map((s) => generator.randn(s)),
          );
          const run = (engine: Engine) => engine.scaledDotProductAttention(q, k, v, options);
          const [theirs, ours] = [await run(engines[0]), await run(engines[1])];
          passes++;
          note(`${name}: output`, ours.output.data, theirs.output.data);
          if (theirs.weights) note(`${name}: weights`, ours.weights?.data ?? [], theirs.weights.data);
          for (const stage of theirs.trace?.stages ?? []) {
            note(`${name}: ${stage}`, ours.trace?.stage(stage).data ?? [], theirs.trace?.stage(stage).data ?? []);
          }
        }
      }
    }
    return { worst, submitted: tools.submitted, passes };
  });
  console.log(worst);
  expect(submitted).toBe(passes);
  expect(Object.entries(worst).filter(([, difference]) => difference > 1e-5)).toEqual([]);
});

test("modules, blocks, stacks and decoders as on the CPU, every stage of them", async ({ page }) => {
  await open(page);
  const { worst, submitted, passes } = await page.evaluate(async () => {
    const { attnscope, tools } = globalThis as unknown as InPage;
    const { mask } = attnscope;
    const engines = await tools.both();
    const worst: Record<string, number> = {};
    let passes = 0;
    const compare = async (name: string, run: (engine: Engine) => Promise<unknown>) => {
      const [theirs, ours] = [await run(engines[0]), await run(engines[1])] as [Traced, Traced];
      passes++;
      for (const trace of theirs.trace?.nLayers ? [theirs.trace] : []) {
        for (let layer = 0; layer < trace.nLayers; layer++) {
          for (const stage of trace.stages) {
            try {
              trace.stage(stage, { layer });
            } catch {
              continue;
            }
            const [our, their] = [ours.trace, trace].map((trace) => trace?.stage(stage, { layer }).data ?? []);
            const areSums = !stage.endsWith("weights");
            worst[`${name}: ${stage}`] = tools.difference(our as Float32Array, their as Float32Array, areSums);
          }
        }
      }
      worst[`${name}: output`] = tools.difference(ours.output.data, theirs.output.data);
    };
    type Traced = Awaited<ReturnType<ReturnType<Engine["transformer"]>["forward"]>>;
    const x = await engines[0].torchGenerator(3).randn([2, 17, 20]);
    for (const trace of [true, false]) {
      const options = { trace, mask: mask.causal(), needWeights: trace };
      const mha = { dModel: 20, nHeads: 5, nKvHeads: 1, dK: 3, dV: 7, seed: 1 };
      await compare("attention", (engine) =>
        engine
          .multiHeadAttention({ ...mha, residualNorm: true })
          .forward(x, { ...options, headMask: [1, 0, 0.5, 1, 2] }),
      );
      await compare("its own keys", (engine) =>
        engine.multiHeadAttention({ ...mha, biasKv: true, addZeroAttn: true }).forward(x, options),
      );
      await compare("cross", (engine) =>
        engine
          .multiHeadAttention({ ...mha, nKvHeads: 5 })
          .forward(x, { trace, key: { data: x.data.slice(0, 120), shape: [2, 3, 20] } }),
      );
      const stack = { dModel: 20, nHeads: 2, nLayers: 2, seed: 1 };
      for (const activation of ["relu", "gelu", "gelu_tanh", "silu", "quick_gelu"] as const) {
        await compare(activation, (engine) => engine.transformer({ ...stack, activation }).forward(x, options));
      }
      await compare("llama", (engine) =>
        engine
          .transformer({
            ...stack,
            norm: "rms",
            gated: true,
            positions: "rope",
            normFirst: true,
            finalNorm: true,
            bias: false,
          })
          .forward(x, options),
      );
      await compare("positions", (engine) =>
        engine.transformer({ ...stack, positions: "sinusoidal" }).forward(x, options),
      );
      await compare("decoder", (engine) =>
        engine.decoder(stack).forward(x, x, { ...options, memoryMask: mask.padding(9) }),
      );
      await compare("training", (engine) =>
        engine
          .transformer({ ...stack, dropout: 0.3 })
          .forward(x, { ...options, training: true, generator: engine.torchGenerator(5) }),
      );
    }
    return { worst, submitted: tools.submitted, passes };
  });
  const largest = Object.entries(worst).sort(([, a], [, b]) => b - a);
  console.log(largest.slice(0, 8));
  expect(submitted).toBe(passes);
  expect(largest.filter(([, difference]) => difference > 1e-5)).toEqual([]);
});

test("another mask on the GPU: what it does not reach is used again", async ({ page }) => {
  await open(page);
  const found = await page.evaluate(async () => {
    const { attnscope, tools } = globalThis as unknown as InPage;
    const { mask } = attnscope;
    const dispatch = GPUComputePassEncoder.prototype.dispatchWorkgroups;
    let dispatched = 0;
    GPUComputePassEncoder.prototype.dispatchWorkgroups = function (...counts) {
      dispatched++;
      return dispatch.apply(this, counts);
    };
    const counts: number[] = [];
    const results: (ArrayLike<number> | undefined)[][] = [];
    for (const engine of await tools.both()) {
      const stack = engine.transformer({ dModel: 12, nHeads: 2, nLayers: 2, seed: 4 });
      const first = await stack.forward(await engine.torchGenerator(1).randn([9, 12]), { trace: true });
      counts.push(dispatched);
      const second = await first.trace?.remask(mask.causal());
      counts.push(dispatched);
      // The first trace may go; the second still holds what both use.
      first.trace?.dispose();
      const third = await second?.trace.remask(mask.slidingWindow(2), { maskFill: Number.NEGATIVE_INFINITY });
      const cell = await third?.trace.explain("weights", [1, 3, 2]);
      results.push([second?.output.data, third?.output.data, third?.trace.stage("masked").data, [cell?.value ?? -1]]);
    }
    const differences = (results[0] ?? []).map((theirs, i) => tools.difference(results[1]?.[i] ?? [], theirs ?? []));
    return { counts, differences, submitted: tools.submitted };
  });
  expect(found.submitted).toBe(3);
  const [, , all = 0, again = 0] = found.counts;
  expect(again - all).toBeLessThan(all);
  for (const difference of found.differences) expect(difference).toBeLessThan(1e-5);
});

test("what the GPU made outlives it: a trace is explained and gets another mask", async ({ page }) => {
  await open(page);
  const found = await page.evaluate(async () => {
    const { attnscope, tools } = globalThis as unknown as InPage;
    Object.defineProperty(GPUAdapterInfo.prototype, "isFallbackAdapter", { get: () => false });
    const request = GPUAdapter.prototype.requestDevice;
    const devices: GPUDevice[] = [];
    GPUAdapter.prototype.requestDevice = async function (descriptor) {
      const device = await request.call(this, descriptor);
      devices.push(device);
      return device;
    };
    const results = [];
    for (const backend of ["cpu", "auto"] as const) {
      const engine = await attnscope.createEngine({ backend, worker: false });
      const x = await engine.torchGenerator(1).randn([256, 256]);
      const mha = engine.multiHeadAttention({ dModel: 256, nHeads: 4, seed: 1 });
      let { trace } = await mha.forward(x, { trace: true });
      // The first pass for which a GPU might pay asks for it, the next one that comes when it is there goes to it.
      for (let pass = 0; backend === "auto" && engine.info.backend === "cpu" && pass < 50; pass++) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        // So that nothing of it is taken over.
        trace.dispose();
        trace = (await mha.forward(x, { trace: true })).trace;
      }
      const before = engine.info.backend;
      for (const device of devices) {
        device.destroy();
        await device.lost;
      }
      const again = await trace?.remask(attnscope.mask.causal());
      const cell = await again?.trace.explain("output", [3, 5]);
      const last = await mha.forward(x);
      results.push({
        before,
        after: engine.info.backend,
        numbers: [again?.output.data, last.output.data, [cell?.value ?? -1]],
      });
    }
    const [cpu, auto] = results;
    const differences = cpu?.numbers.map((theirs, i) => tools.difference(auto?.numbers[i] ?? [], theirs ?? []));
    return { before: auto?.before, after: auto?.after, differences };
  });
  expect(found).toMatchObject({ before: "webgpu", after: "cpu" });
  for (const difference of found.differences ?? [1]) expect(difference).toBeLessThan(1e-5);
});

test("NaN, infinity and rows that see nothing are the CPU's", async ({ page }) => {
  await open(page);
  const found = await page.evaluate(async () => {
    const { attnscope, tools } = globalThis as unknown as InPage;
    const { mask } = attnscope;
    const engines = await tools.both();
    const differences: number[] = [];
    for (const [number, options] of [
      [Number.NaN, {}],
      [Number.POSITIVE_INFINITY, {}],
      [3e38, { trace: true }],
      [1, { mask: mask.padding(0), maskFill: Number.NEGATIVE_INFINITY }],
      [1, { mask: mask.additive([[0, Number.NaN]]) }],
    ] as const) {
      const q = [
        [1, number],
        [3, 4],
      ];
      const run = (engine: Engine) =>
        engine.scaledDotProductAttention(
          q,
          [
            [1, 2],
            [3, 4],
          ],
          q,
          options,
        );
      const [theirs, ours] = [await run(engines[0]), await run(engines[1])];
      differences.push(tools.difference(ours.output.data, theirs.output.data));
      differences.push(tools.difference(ours.weights?.data ?? [], theirs.weights?.data ?? []));
    }
    return { differences, submitted: tools.submitted };
  });
  expect(found.submitted).toBe(0);
  expect(new Set(found.differences)).toEqual(new Set([0]));
});

/** What an engine gives when something has been done to WebGPU before it was made. */
async function disturbed(page: Page, backend: "auto" | "webgpu", disturbance: () => void) {
  await open(page);
  await page.evaluate(`(${disturbance})()`);
  return page.evaluate(async (backend) => {
    const { attnscope, tools } = globalThis as unknown as InPage;
    const cpu = await attnscope.createEngine({ backend: "cpu", worker: false });
    const of = { dModel: 256, nHeads: 4, seed: 1 };
    const x = await cpu.torchGenerator(1).randn([256, 256]);
    const expected = await cpu.multiHeadAttention(of).forward(x);
    try {
      const engine = await attnscope.createEngine({ backend, worker: false });
      const mha = engine.multiHeadAttention(of);
      const info = [];
      let [difference, failure] = [0, ""];
      for (let pass = 0; pass < 3; pass++) {
        // Time for "auto" to find the GPU after the first pass.
        if (pass === 1) await new Promise((resolve) => setTimeout(resolve, 2000));
        try {
          // Two at once, the second of which must not overtake.
          const [first, second] = await Promise.all([mha.forward(x), mha.forward(x, { isCausal: true })]);
          difference = Math.max(difference, tools.difference(first.output.data, expected.output.data));
          if (second.output.data[0] === first.output.data[0]) failure = "mixed up";
        } catch (error) {
          failure = `${(error as { code: string }).code}: ${(error as Error).message}`;
        }
        info.push(engine.info.backend);
      }
      return { difference, failure, info, submitted: tools.submitted };
    } catch (error) {
      return {
        difference: 0,
        failure: `${(error as { code: string }).code}: ${(error as Error).message}`,
        info: [],
        submitted: 0,
      };
    }
  }, backend);
}

const REAL = () => {
  Object.defineProperty(GPUAdapterInfo.prototype, "isFallbackAdapter", { get: () => false });
};
/** The device goes away when it was given its first work, and the adapter seems to be a real one. */
const LOST = () => {
  Object.defineProperty(GPUAdapterInfo.prototype, "isFallbackAdapter", { get: () => false });
  const request = GPUAdapter.prototype.requestDevice;
  GPUAdapter.prototype.requestDevice = async function (descriptor) {
    const device = await request.call(this, descriptor);
    const submit = device.queue.submit;
    device.queue.submit = (commands) => {
      submit.call(device.queue, commands);
      device.destroy();
    };
    return device;
  };
};
const NULL_ADAPTER = () => {
  GPU.prototype.requestAdapter = async () => null;
};
const REFUSED = () => {
  Object.defineProperty(GPUAdapterInfo.prototype, "isFallbackAdapter", { get: () => false });
  GPUAdapter.prototype.requestDevice = async () => {
    throw new DOMException("refused", "OperationError");
  };
};
const BROKEN_SHADER = () => {
  Object.defineProperty(GPUAdapterInfo.prototype, "isFallbackAdapter", { get: () => false });
  const create = GPUDevice.prototype.createShaderModule;
  GPUDevice.prototype.createShaderModule = function (descriptor) {
    return create.call(this, { ...descriptor, code: descriptor.code.replace("@compute", "@computed") });
  };
};
const SMALL = () => {
  Object.defineProperty(GPUSupportedLimits.prototype, "maxStorageBufferBindingSize", { get: () => 65536 });
};

test("auto takes an adapter that is no program, and no other", async ({ page }) => {
  const real = await disturbed(page, "auto", REAL);
  expect(real).toMatchObject({ failure: "", submitted: expect.any(Number) });
  expect(real.submitted).toBeGreaterThan(0);
  expect(real.difference).toBeLessThan(1e-5);
  const program = await disturbed(page, "auto", () => {});
  expect(program).toMatchObject({ failure: "", submitted: 0, difference: 0, info: ["cpu", "cpu", "cpu"] });
});

test("a device lost in the middle of a pass: auto repeats it on the CPU, webgpu says so", async ({ page }) => {
  const auto = await disturbed(page, "auto", LOST);
  expect(auto).toMatchObject({ failure: "", submitted: 1, info: ["cpu", "cpu", "cpu"] });
  expect(auto.difference).toBeLessThan(1e-5);
  const webgpu = await disturbed(page, "webgpu", LOST);
  expect(webgpu.failure).toMatch(/^gpu_lost: /);
});

test("no adapter, a refused device, a kernel with an error: auto computes, webgpu says why", async ({ page }) => {
  for (const [disturbance, message] of [
    [NULL_ADAPTER, "gives no adapter"],
    [REFUSED, "refused"],
    [BROKEN_SHADER, /src\/shaders\/\w+\.wgsl:\d+:\d+/],
  ] as const) {
    const auto = await disturbed(page, "auto", disturbance);
    expect(auto).toMatchObject({ failure: "", info: ["cpu", "cpu", "cpu"] });
    const { failure } = await disturbed(page, "webgpu", disturbance);
    expect(failure).toMatch(/^gpu_unavailable: /);
    expect(failure).toMatch(message);
  }
});

test("what is larger than the adapter's limits is computed on the CPU", async ({ page }) => {
  expect(await disturbed(page, "webgpu", SMALL)).toMatchObject({ failure: "", submitted: 0, difference: 0 });
});

test("in a worker too, in the order of the calls", async ({ page }) => {
  await open(page);
  const found = await page.evaluate(async () => {
    const { attnscope, tools } = globalThis as unknown as InPage;
    const cpu = await attnscope.createEngine({ backend: "cpu" });
    const engine = await attnscope.createEngine({ backend: "webgpu" });
    const x = await cpu.torchGenerator(1).randn([5, 8]);
    const of = { dModel: 8, nHeads: 2, seed: 1 };
    const theirs = await cpu.multiHeadAttention(of).forward(x);
    const mha = engine.multiHeadAttention(of);
    const order: string[] = [];
    const seen = (name: string) => () => order.push(name);
    const waiting = [
      mha.forward(x).then((ours) => {
        order.push("forward");
        return tools.difference(ours.output.data, theirs.output.data);
      }),
      engine.ops.relu(x).then(seen("relu")),
      mha.forward(x, { trace: true }).then(seen("trace")),
      engine.torchGenerator(1).randn([2]).then(seen("randn")),
    ] as const;
    const [difference] = await Promise.all(waiting);
    return { order, difference, info: engine.info };
  });
  expect(found.order).toEqual(["forward", "relu", "trace", "randn"]);
  expect(found.difference).toBeLessThan(1e-5);
  expect(found.info).toMatchObject({ backend: "webgpu", adapter: expect.stringMatching(ADAPTER) });
});

test("the page says what computes: a GPU, or why none", async ({ browser }) => {
  // The worker comes from the site, where this test can reach it.
  const page = await browser.newPage({ serviceWorkers: "block" });
  const large = {
    attnscope: 1,
    sentence: Array.from({ length: 256 }, (_, i) => `w${i}`).join(" "),
    numbers: { source: "torch", seed: "1", dModel: "512", nHeads: "8" },
  };
  const status = page.getByTestId("status");
  /** The first pass for which a GPU might pay asks for one; what came of it is known some pass later. */
  const expectStatus = (said: RegExp) =>
    expect(async () => {
      const nHeads = page.getByTestId("n-heads");
      await nHeads.fill((await nHeads.inputValue()) === "8" ? "4" : "8");
      await expect(status).toContainText(said, { timeout: 3000 });
    }).toPass();
  await page.goto(`${PAGE}#${link(large)}`);
  await expect(status).toContainText(/^cpu · relaxed-simd · /);
  await expectStatus(/^cpu · no GPU: .*(swiftshader|unnamed adapter).* is a software renderer · /i);
  // As if it were none.
  await page.route("**/worker*.js", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: `(${REAL})();${await response.text()}` });
  });
  await page.goto("about:blank");
  await page.goto(`${PAGE}#${link(large)}`);
  await expectStatus(/^webgpu .*(swiftshader|unnamed adapter)/i);
  await expect(page.getByTestId("head-grid").locator("canvas").first()).toBeVisible();
  await expect(page.getByRole("alert")).toHaveCount(0);
  await page.close();
});
