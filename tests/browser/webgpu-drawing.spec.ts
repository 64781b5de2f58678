// Matrices that are drawn where they were computed, on a software adapter, against pictures made of their numbers.
import { expect, test } from "@playwright/test";
import type { DeviceTensor, Trace } from "attnscope";
import type { HeatmapOptions } from "attnscope/views";
import { HARNESS } from "./ports.ts";

type Harness = typeof import("./harness/main.ts");

test.setTimeout(120_000);

test.beforeEach(async ({ page }) => {
  page.on("console", (m) => console.log(m.text()));
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
        element.style.width = `${width}px`;
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
      heatmap(width: number, matrix: HeatmapOptions["matrix"], size: number, more: Partial<HeatmapOptions>) {
        const element = tools.place(width);
        const labels = Array.from({ length: size }, (_, i) => `t${i}`);
        const view = views.heatmap(element, {
          matrix,
          rowLabels: labels,
          columnLabels: labels,
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
    size: number,
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
        console.log("forward", n, width, performance.now());
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
          const ours = tools.heatmap(width, onDevice.at(1), n, look);
          const again = await onDevice.at(1).read();
          const theirs = tools.heatmap(width, { data: again.data, rows, columns }, n, look);
          console.log(name, performance.now());
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
            tools.heatmap(width, matrix, n, { viewport: viewports[i] as never, hidden }),
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
