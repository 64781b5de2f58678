// Matrices that are drawn where they were computed, on a software adapter, against pictures made of their numbers.
import { expect, test } from "@playwright/test";
import type { DeviceTensor, Trace } from "attnscope";
import type { HeatmapOptions } from "attnscope/views";
import { HARNESS } from "./ports.ts";

type Harness = typeof import("./harness/main.ts");

test.setTimeout(120_000);

test.beforeEach(async ({ page }) => {
  await page.goto(HARNESS);
  await page.waitForFunction(() => "attnscope" in globalThis);
  await page.evaluate(() => {
    const { views } = globalThis as unknown as Harness;
    const map = GPUBuffer.prototype.getMappedRange;
    GPUBuffer.prototype.getMappedRange = function (...where) {
      const range = map.apply(this, where);
      tools.bytesRead += range.byteLength;
      return range;
    };
    const tools = {
      /** What was copied out of the GPU by engines in this thread. */
      bytesRead: 0,
      /** A place of this width for a picture. */
      place(width: number): HTMLElement {
        const element = document.createElement("div");
        // In sight, where alone a view draws.
        element.style.cssText = `position: absolute; inset: 0 auto auto 0; width: ${width}px`;
        document.body.append(element);
        return element;
      },
      /** The picture as it is seen: every canvas of a view on white. */
      pixels(element: HTMLElement): Uint8ClampedArray {
        const canvases = [...element.querySelectorAll("canvas")];
        const [width, height] = [canvases[0]?.width ?? 0, canvases.reduce((sum, { height }) => sum + height, 0)];
        const context = new OffscreenCanvas(width, Math.max(1, height)).getContext("2d");
        if (!context) throw new Error("no canvas");
        let y = 0;
        for (const canvas of canvases) {
          context.drawImage(canvas, 0, y);
          y += canvas.height;
        }
        return context.getImageData(0, 0, width, height).data;
      },
      /** How many pixels differ and how many colours there are, once the two are the same or have had their time. */
      async compared(one: HTMLElement, other: HTMLElement) {
        let [differing, colors] = [Number.NaN, 0];
        for (let tries = 0; tries < 100 && (differing !== 0 || colors < 3); tries++) {
          await new Promise((resolve) => setTimeout(resolve, 50));
          const [ours, theirs] = [tools.pixels(one), tools.pixels(other)];
          differing = ours.length === theirs.length ? 0 : Number.POSITIVE_INFINITY;
          const [a, b] = [ours, theirs].map((data) => new Uint32Array(data.buffer));
          for (let i = 0; i < (a?.length ?? 0); i++) if (a?.[i] !== b?.[i]) differing++;
          colors = new Set(b).size;
        }
        return { differing, colors };
      },
      heatmap(width: number, matrix: HeatmapOptions["matrix"], more: Partial<HeatmapOptions>) {
        const element = tools.place(width);
        const [rows, columns] = "shape" in matrix ? matrix.shape : [matrix.rows, matrix.columns];
        const labels = (length = 0) => Array.from({ length }, (_, i) => `t${i}`);
        const view = views.heatmap(element, {
          matrix,
          rowLabels: labels(rows),
          columnLabels: labels(columns),
          label: "weights",
          describe: ({ row, column }, value) => `${row}, ${column}: ${value.toFixed(4)}`,
          ...more,
        });
        return { element, view };
      },
    };
    Object.assign(globalThis, { tools });
  });
});

interface Tools {
  bytesRead: number;
  place(width: number): HTMLElement;
  compared(one: HTMLElement, other: HTMLElement): Promise<{ differing: number; colors: number }>;
  heatmap(
    width: number,
    matrix: HeatmapOptions["matrix"],
    more: Partial<HeatmapOptions>,
  ): { element: HTMLElement; view: ReturnType<Harness["views"]["heatmap"]> };
}
type InPage = Harness & { tools: Tools };

for (const worker of [true, false]) {
  test(`the same picture from the GPU as from numbers, at every size and look${worker ? ", in a worker" : ""}`, async ({
    page,
  }) => {
    const found = await page.evaluate(async (worker) => {
      const { attnscope, tools, views } = globalThis as unknown as InPage;
      const { mask } = attnscope;
      const engine = await attnscope.createEngine({ backend: "webgpu", worker });
      const results: Record<string, { differing: number; colors: number }> = {};
      for (const [n, width] of [
        [12, 560],
        [70, 300],
        [333, 200],
        [333, 90],
      ] as const) {
        const mha = engine.multiHeadAttention({ dModel: 12, nHeads: 3, seed: n });
        const rule = mask.slidingWindow({ left: Math.ceil(n / 3), right: 2 });
        const x = await engine.torchGenerator(n).normal([n, 12], 0, 3);
        const options = { mask: rule, maskFill: Number.NEGATIVE_INFINITY, trace: true, lazy: true } as const;
        const { trace } = await mha.forward(x, options);
        const { allowed } = await engine.materialize(rule, { nQ: n, nK: n });
        const hidden = allowed.map((is) => 1 - is);
        const looks: [string, Parameters<Trace["stage"]>[0], Partial<HeatmapOptions>][] = [
          ["weights", "weights", {}],
          ["hidden", "weights", { hidden }],
          ["hidden with colour", "weights", { hidden, hiddenKeepsColor: true, transposed: true }],
          ["log", "weights", { scale: "log", hidden }],
          ["rows", "weights", { scale: "row", hidden }],
          ["rows across", "weights", { scale: "row", transposed: true }],
          ["scores", "scores", { palette: "diverging" }],
          ["scores, log, turned", "scores", { palette: "diverging", scale: "log", transposed: true, hidden }],
          ["rows of scores", "scores", { palette: "diverging", scale: "row" }],
          ["-infinity", "masked", { palette: "diverging" }],
          ["cut off", "weights", { domain: [0.01, 0.05] }],
          ["queries", "query", { palette: "diverging" }],
        ];
        // What was read once is drawn from here.
        const drawable = new Map(trace.stages.map((stage) => [stage, trace.drawable(stage) as DeviceTensor]));
        for (const [name, stage, look] of looks) {
          const onDevice = drawable.get(stage) as DeviceTensor;
          const [, rows = 1, columns = 1] = onDevice.shape;
          const ours = tools.heatmap(width, onDevice.at(1), look);
          const again = await onDevice.at(1).read();
          const theirs = tools.heatmap(width, { data: again.data, rows, columns }, look);
          results[`${n} at ${width}, ${name}`] = await tools.compared(ours.element, theirs.element);
          for (const { element, view } of [ours, theirs]) {
            view.destroy();
            element.remove();
          }
        }
        if (n !== 333) continue;
        // Zoomed in on some place, as far as numbers in cells.
        for (const zoom of [2.5, 7, 60]) {
          const viewports = [new views.Viewport(), new views.Viewport()] as const;
          const device = (drawable.get("weights") as DeviceTensor).at(2);
          const numbers = { data: (await device.read()).data, rows: n, columns: n };
          const pair = [device, numbers].map((matrix, i) =>
            tools.heatmap(width, matrix, { viewport: viewports[i] as never, hidden }),
          );
          const [ours, theirs] = pair as [(typeof pair)[0], (typeof pair)[0]];
          await tools.compared(ours.element, theirs.element);
          for (const viewport of viewports) viewport.set({ zoom, x: 0.3, y: 0.3 });
          results[`${n} at ${width}, ${zoom} times`] = await tools.compared(ours.element, theirs.element);
          for (const { element, view } of pair) {
            view.destroy();
            element.remove();
          }
        }
      }
      return results;
    }, worker);
    expect(Object.entries(found).filter(([, { differing, colors }]) => differing !== 0 || colors < 3)).toEqual([]);
    expect(Object.keys(found)).toHaveLength(4 * 12 + 2 * 3);
  });
}

test("heads side by side from the GPU: one scale, one zoom, and not a number more than is seen", async ({ page }) => {
  const found = await page.evaluate(async () => {
    const { attnscope, tools, views } = globalThis as unknown as InPage;
    const [n, nHeads] = [300, 4];
    const engine = await attnscope.createEngine({ backend: "webgpu", worker: false });
    const mha = engine.multiHeadAttention({ dModel: 16, nHeads, seed: 1 });
    const x = await engine.torchGenerator(1).normal([n, 16], 0, 4);
    const { output, trace } = await mha.forward(x, { mask: attnscope.mask.causal(), lazy: true });
    const bytes = { pass: tools.bytesRead, pictures: 0, output: output.data.byteLength };
    const labels = Array.from({ length: n }, (_, i) => `t${i}`);
    const said: string[] = [];
    const show = (values: Parameters<typeof views.headGrid>[1]["values"]) => {
      const element = tools.place(900);
      const view = views.headGrid(element, {
        values,
        rowLabels: labels,
        columnLabels: labels,
        titles: Array.from({ length: nHeads }, (_, i) => ({ name: `head ${i + 1}`, note: "" })),
        axes: { row: "query", column: "key" },
        selection: new attnscope.Selection(),
        label: (head) => `head ${head}`,
        describe: (head, cell, value) => {
          const text = `${head}: ${cell.row}, ${cell.column}, ${value.toFixed(6)}`;
          said.push(text);
          return text;
        },
      });
      return { element, view };
    };
    const before = tools.bytesRead;
    const ours = show(trace.drawable("weights"));
    // Until the selected cell was told.
    for (let tries = 0; tries < 100 && said.length < nHeads; tries++) await new Promise((go) => setTimeout(go, 50));
    bytes.pictures = tools.bytesRead - before;
    const told = [...new Set(said)].sort();
    const weights = await trace.read("weights");
    const theirs = show(weights);
    const compared = await tools.compared(ours.element, theirs.element);
    const active = (element: HTMLElement) =>
      [...element.querySelectorAll("[aria-label]")].map((part) => part.getAttribute("aria-label"));
    const labelled = [active(ours.element), active(theirs.element)];
    let refused = "";
    try {
      ours.view.toSvg();
    } catch (error) {
      refused = (error as Error).message;
    }
    ours.view.update({ values: weights });
    const svg = ours.view.toSvg() === theirs.view.toSvg();
    for (const { view } of [ours, theirs]) view.destroy();
    return { bytes, compared, told, first: weights.data[0], labelled, refused, svg, matrix: 4 * n * n };
  });
  expect(found.bytes.pass).toBeLessThan(found.bytes.output + 256);
  // A row's largest, and the cells about the selected one.
  expect(found.bytes.pictures).toBeLessThan(4 * (300 * 8 + 128 * 128 * 4));
  expect(found.bytes.pictures).toBeLessThan(found.matrix);
  expect(found.compared.differing).toBe(0);
  expect(found.compared.colors).toBeGreaterThan(20);
  expect(found.told).toContain(`0: 0, 0, ${found.first?.toFixed(6)}`);
  expect(found.labelled[0]).toEqual(found.labelled[1]);
  expect(found.refused).toContain("graphics processor");
  expect(found.svg).toBe(true);
});

test("elements draw what was left on the GPU, and say what they cannot", async ({ page }) => {
  const found = await page.evaluate(async () => {
    const { attnscope, tools } = globalThis as unknown as InPage;
    const engine = await attnscope.createEngine({ backend: "webgpu", worker: false });
    const mha = engine.multiHeadAttention({ dModel: 12, nHeads: 3, seed: 1 });
    const { trace } = await mha.forward(await engine.torchGenerator(2).randn([70, 12]), { lazy: true });
    const [drawable, numbers] = [trace.drawable("weights"), await trace.read("weights")];
    const refused: string[] = [];
    const shown = (name: "attn-heads" | "attn-heatmap" | "attn-lines", weights: typeof numbers | typeof drawable) => {
      const place = tools.place(300);
      const element = document.createElement(name);
      element.addEventListener("error", (event) => refused.push((event as unknown as CustomEvent).detail.message));
      if (name === "attn-heatmap") element.setAttribute("head", "2");
      element.weights = weights as never;
      place.append(element);
      return { place, view: element.shadowRoot as unknown as HTMLElement };
    };
    const results: Record<string, { differing: number; colors: number }> = {};
    for (const name of ["attn-heads", "attn-heatmap"] as const) {
      const [one, other] = [shown(name, drawable), shown(name, numbers)];
      results[name] = await tools.compared(one.view, other.view);
      for (const { place } of [one, other]) place.remove();
    }
    shown("attn-lines", drawable);
    shown("attn-heads", (drawable as DeviceTensor).at(0));
    await Promise.resolve();
    return { results, refused };
  });
  for (const [name, { differing, colors }] of Object.entries(found.results)) {
    expect([name, differing], `${colors} colours`).toEqual([name, 0]);
    expect(colors).toBeGreaterThan(3);
  }
  expect(found.refused).toHaveLength(2);
  expect(found.refused[0]).toContain("found numbers on a graphics processor");
  expect(found.refused[1]).toContain("expected [heads, n_q, n_k]");
});

test("a lazy pass is read, explained and masked anew as any other", async ({ page }) => {
  const found = await page.evaluate(async () => {
    const { attnscope, tools } = globalThis as unknown as InPage;
    const { mask } = attnscope;
    const engine = await attnscope.createEngine({ backend: "webgpu", worker: false });
    const x = await engine.torchGenerator(2).randn([2, 40, 12]);
    const mha = engine.multiHeadAttention({ dModel: 12, nHeads: 3, seed: 1, residualNorm: true });
    const options = { mask: mask.causal(), trace: true } as const;
    const whole = await mha.forward(x, options);
    const before = tools.bytesRead;
    const { output, trace } = await mha.forward(x, { ...options, lazy: true });
    const bytes = tools.bytesRead - before;
    const different = [];
    const same = (a: ArrayLike<number>, b: ArrayLike<number>) =>
      a.length === b.length && [...Array(a.length).keys()].every((i) => Object.is(a[i], b[i]));
    if (!same(output.data, whole.output.data)) different.push("output");
    const early = (() => {
      try {
        return trace.stage("weights").shape;
      } catch (error) {
        return (error as { code: string }).code;
      }
    })();
    // Some before the whole is fetched, some after.
    const [first, second] = [trace.stages.slice(0, 5), trace.stages.slice(5)];
    const compare = async (stages: typeof first) => {
      for (const stage of stages) {
        const [ours, theirs] = [await trace.read(stage), whole.trace.stage(stage)];
        if (String(ours.shape) !== String(theirs.shape) || !same(ours.data, theirs.data)) different.push(stage);
        if (trace.stage(stage) !== ours) different.push(`${stage} again`);
      }
    };
    await compare(first);
    const cells = [await trace.explain("weights", [1, 2, 5, 3]), await whole.trace.explain("weights", [1, 2, 5, 3])];
    const masked = await Promise.all([trace, whole.trace].map((one) => one.remask(mask.slidingWindow(3))));
    if (!same(masked[0]?.output.data ?? [], masked[1]?.output.data ?? [0])) different.push("remask");
    await compare(second);
    // Of a stack every layer, and a decoder's second attention.
    const stack = engine.transformer({ dModel: 12, nHeads: 2, nLayers: 2, seed: 3 });
    const lazy = await stack.forward(x, { lazy: true });
    const { weights } = await stack.forward(x);
    for (const [layer, expected] of weights.entries()) {
      const ours = await lazy.trace.read("weights", { layer });
      if (!same(ours.data, expected.data)) different.push(`layer ${layer}`);
    }
    const decoder = engine.decoder({ dModel: 12, nHeads: 2, nLayers: 1, seed: 3 });
    const memory = await engine.torchGenerator(3).randn([2, 7, 12]);
    const crossed = await decoder.forward(x, memory, { lazy: true });
    const { crossWeights } = await decoder.forward(x, memory);
    const cross = await crossed.trace.read("cross_weights");
    if (!same(cross.data, crossWeights[0]?.data ?? [])) different.push("cross");
    const unkept = await crossed.trace.explain("weights", [0, 0, 0, 0]).catch((error) => error.code);
    // A past that was given comes back.
    const past = await engine.torchGenerator(4).randn([3, 5, 4]);
    const [q, k] = [await engine.torchGenerator(5).randn([3, 6, 4]), await engine.torchGenerator(6).randn([3, 6, 4])];
    const given = { pastKey: past, pastValue: past, isCausal: true };
    const [one, other] = [
      await engine.scaledDotProductAttention(q, k, k, { ...given, lazy: true }),
      await engine.scaledDotProductAttention(q, k, k, given),
    ];
    if (!same(one.presentKey?.data ?? [], other.presentKey?.data ?? [0])) different.push("present");
    if (!same((await one.trace.read("weights")).data, other.weights.data)) different.push("past");
    // What is disposed is gone, what was read stays.
    const last = await mha.forward(x, { ...options, lazy: true });
    const shown = last.trace.drawable("weights");
    last.trace.dispose();
    const disposed = await last.trace.read("weights").catch((error) => error.code);
    // As a view asks for it.
    const matrix = (shown as DeviceTensor).at(0).at(0) as unknown as { open(look: object): Promise<unknown> };
    const gone = await matrix.open({ hidden: null, byRow: false, transposed: false });
    return { bytes, expected: output.data.byteLength, early, different, cells, unkept, disposed, gone };
  });
  expect(found.bytes).toBeLessThan(found.expected + 256);
  expect(found.early).toBe("no_such_stage");
  expect(found.different).toEqual([]);
  expect(found.cells[0]).toEqual(found.cells[1]);
  expect(found).toMatchObject({ unkept: "no_such_stage", disposed: "disposed", gone: null });
});

test("a lazy pass holds its weights and no scratch, until it is disposed", async ({ page }) => {
  const made = await page.evaluate(async () => {
    const { attnscope } = globalThis as unknown as InPage;
    const [n, nHeads] = [64, 4];
    const sizes: number[] = [];
    const create = GPUDevice.prototype.createBuffer;
    GPUDevice.prototype.createBuffer = function (descriptor) {
      sizes.push(descriptor.size);
      return create.call(this, descriptor);
    };
    const engine = await attnscope.createEngine({ backend: "webgpu", worker: false });
    const mha = engine.multiHeadAttention({ dModel: 8, nHeads, seed: 1 });
    const x = await engine.torchGenerator(1).randn([n, 8]);
    const counts: number[] = [];
    const count = () => counts.push(sizes.filter((size) => size === 4 * nHeads * n * n).length);
    const first = await mha.forward(x, { lazy: true });
    count();
    const second = await mha.forward(x, { lazy: true });
    count();
    first.trace.dispose();
    await mha.forward(x, { lazy: true });
    count();
    const weights = await second.trace.read("weights");
    return { counts, sum: weights.data.reduce((sum, weight) => sum + weight, 0) };
  });
  // Weights, which take the place of their scores; weights beside those of the first pass; nothing, in the place of these.
  expect(made.counts).toEqual([1, 2, 2]);
  expect(made.sum).toBeCloseTo(4 * 64, 2);
});

for (const backend of ["auto", "webgpu"] as const) {
  test(`a device lost under a lazy pass: ${backend}`, async ({ page }) => {
    const found = await page.evaluate(async (backend) => {
      const { attnscope, tools } = globalThis as unknown as InPage;
      Object.defineProperty(GPUAdapterInfo.prototype, "isFallbackAdapter", { get: () => false });
      const request = GPUAdapter.prototype.requestDevice;
      const devices: GPUDevice[] = [];
      GPUAdapter.prototype.requestDevice = async function (descriptor) {
        const device = await request.call(this, descriptor);
        devices.push(device);
        return device;
      };
      const [n, of] = [256, { dModel: 256, nHeads: 4, seed: 1 }];
      const engine = await attnscope.createEngine({ backend, worker: false });
      const x = await engine.torchGenerator(1).randn([n, 256]);
      const mha = engine.multiHeadAttention(of);
      const forward = () => mha.forward(x, { trace: true, lazy: true });
      let { trace } = await forward();
      for (let pass = 0; engine.info.backend === "cpu" && pass < 50; pass++) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        trace.dispose();
        trace = (await forward()).trace;
      }
      const drawable = trace.drawable("weights");
      if (!("at" in drawable)) throw new Error("the pass was not computed on the GPU");
      const ours = tools.heatmap(200, drawable.at(1), {});
      const left = tools.heatmap(200, drawable.at(1), {});
      await tools.compared(ours.element, left.element);
      for (const device of devices) {
        device.destroy();
        await device.lost;
      }
      const codes = [];
      const weights = await trace.read("weights").catch((error) => error.code as string);
      if (typeof weights === "string") codes.push(weights);
      codes.push(
        await trace.explain("weights", [0, 0, 0]).then(
          () => "explained",
          (error) => error.code as string,
        ),
      );
      const cpu = await attnscope.createEngine({ backend: "cpu", worker: false });
      const expected = await cpu.multiHeadAttention(of).forward(x);
      const numbers = { data: expected.weights.data.subarray(n * n, 2 * n * n), rows: n, columns: n };
      const theirs = tools.heatmap(200, numbers, { palette: "diverging" });
      // The one that was there before asks for other colours.
      ours.view.update({ palette: "diverging" });
      const compared = backend === "auto" ? await tools.compared(ours.element, theirs.element) : null;
      const worst =
        typeof weights === "string"
          ? 0
          : weights.data.reduce(
              (worst, weight, i) => Math.max(worst, Math.abs(weight - (expected.weights.data[i] ?? 1))),
              0,
            );
      return { codes, compared, worst, info: engine.info.backend };
    }, backend);
    if (backend === "webgpu") return expect(found).toMatchObject({ codes: ["gpu_lost", "gpu_lost"] });
    expect(found).toMatchObject({ codes: ["explained"], compared: { differing: 0 }, info: "cpu" });
    expect(found.worst).toBeLessThan(1e-6);
  });
}
