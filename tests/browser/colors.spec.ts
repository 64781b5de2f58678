import { expect, type Page, test } from "@playwright/test";
import { HARNESS } from "./ports.ts";

declare const views: typeof import("attnscope/views");
declare const attnscope: typeof import("attnscope");

type Rgb = readonly [number, number, number];

test.beforeEach(async ({ page }) => {
  await page.goto(HARNESS);
  await page.waitForFunction(() => "views" in globalThis);
});

interface Case {
  readonly rows: readonly (readonly (number | "NaN" | "Infinity" | "-Infinity")[])[];
  readonly palette: "sequential" | "diverging";
  readonly scale: "linear" | "log" | "row";
  readonly domain?: readonly [number, number];
}

/** Draws a matrix with its legend; gives the colours of the cells, the legend's colours, its texts and its swatches. */
async function draw(page: Page, { rows, ...look }: Case) {
  await page.evaluate(
    ({ rows, look }) => {
      document.body.innerHTML = '<div id="at" style="inline-size: 500px"></div><div id="legend"></div>';
      const labels = (length = 0) => Array.from({ length }, (_, i) => String(i));
      const legendAt = document.querySelector("#legend") as HTMLElement;
      views.heatmap(document.querySelector("#at") as HTMLElement, {
        ...look,
        matrix: {
          data: Float32Array.from(rows.flat(), Number),
          rows: rows.length,
          columns: rows[0]?.length ?? 0,
        },
        rowLabels: labels(rows.length),
        columnLabels: labels(rows[0]?.length),
        write: () => "",
        label: "matrix",
        describe: () => "",
        onShown: (shown) => views.legend(legendAt, { ...shown, hidden: null }),
      });
    },
    { rows, look },
  );
  await expect(page.locator("#legend canvas").first()).toBeVisible();
  return page.evaluate(
    ({ rows }) => {
      const pixel = (canvas: HTMLCanvasElement, x: number, y: number) => {
        const context = canvas.getContext("2d") as CanvasRenderingContext2D;
        return [...context.getImageData(Math.round(x), Math.round(y), 1, 1).data.slice(0, 3)] as unknown as Rgb;
      };
      const canvas = document.querySelector("#at canvas") as HTMLCanvasElement;
      const grid = (document.querySelector("[role=grid]") as HTMLElement).getBoundingClientRect();
      const origin = canvas.getBoundingClientRect();
      const columns = rows[0]?.length ?? 1;
      const cells = rows.map((row, i) =>
        row.map((_, j) =>
          pixel(
            canvas,
            grid.left - origin.left + ((j + 0.2) * grid.width) / columns,
            grid.top - origin.top + ((i + 0.2) * grid.height) / rows.length,
          ),
        ),
      );
      const [ramp, ...swatches] = document.querySelectorAll<HTMLCanvasElement>("#legend canvas");
      return {
        cells,
        ramp: Array.from({ length: 100 }, (_, x) => pixel(ramp as HTMLCanvasElement, x, 4)),
        texts: [...document.querySelectorAll("#legend span")].map(({ textContent }) => textContent),
        swatches: swatches.map((swatch) => pixel(swatch, 8, 4)),
      };
    },
    { rows },
  );
}

const apart = (a: Rgb | undefined, b: Rgb | undefined) =>
  a && b ? Math.max(...a.map((part, i) => Math.abs(part - (b[i] ?? 0)))) : 255;

/** Where on the legend a cell's colour lies, from 0 to 1. */
function placeOf(color: Rgb | undefined, ramp: readonly Rgb[]): number {
  const distances = ramp.map((step) => apart(step, color));
  const nearest = Math.min(...distances);
  expect(nearest).toBeLessThan(9);
  return (distances.indexOf(nearest) + 0.5) / 100;
}

for (const { name, values, places, texts, ...look } of [
  {
    name: "linear weights",
    values: [0.2, 0.5, 0.8, 1],
    places: [0.2, 0.5, 0.8, 1],
    texts: ["0", "1"],
    palette: "sequential",
    scale: "linear",
    domain: [0, 1],
  },
  {
    name: "logarithmic weights",
    values: [1e-3, 1e-2, 0.1, 1],
    places: [0.25, 0.5, 0.75, 1],
    texts: ["≤ 1e-4", "1"],
    palette: "sequential",
    scale: "log",
    domain: [0, 1],
  },
  {
    name: "signed numbers, as far as they reach",
    values: [-4, -2, 1, 3],
    places: [0, 0.25, 0.625, 0.875],
    texts: ["−4", "4"],
    palette: "diverging",
    scale: "linear",
  },
  {
    name: "signed numbers by powers of ten",
    values: [-100, -1, 1, 100],
    places: [0, 0.25, 0.75, 1],
    texts: ["−100", "100", "(±0.01 = 0)"],
    palette: "diverging",
    scale: "log",
  },
] as const) {
  test(`the legend agrees with the pixels: ${name}`, async ({ page }) => {
    const drawn = await draw(page, { rows: [values], ...look });
    expect(drawn.texts).toEqual(texts);
    places.forEach((place, i) => {
      expect(Math.abs(placeOf(drawn.cells[0]?.[i], drawn.ramp) - place)).toBeLessThan(0.02);
    });
  });
}

test("by row maximum every row has the whole scale", async ({ page }) => {
  const rows = [
    [0.9, 0.45, 0],
    [0.02, 0.01, 0],
  ];
  const { cells, ramp, texts } = await draw(page, { rows, palette: "sequential", scale: "row" });
  expect(texts).toEqual(["0", "row maximum"]);
  expect(cells[0]).toEqual(cells[1]);
  expect(Math.abs(placeOf(cells[1]?.[1], ramp) - 0.5)).toBeLessThan(0.02);
});

test("a sink does not wash out the rest on a logarithmic scale", async ({ page }) => {
  const rows = [[0.99, 0.006, 0.0006]];
  const linear = await draw(page, { rows, palette: "sequential", scale: "linear", domain: [0, 1] });
  const log = await draw(page, { rows, palette: "sequential", scale: "log", domain: [0, 1] });
  expect(apart(linear.cells[0]?.[1], linear.cells[0]?.[2])).toBeLessThan(12);
  expect(apart(log.cells[0]?.[1], log.cells[0]?.[2])).toBeGreaterThan(50);
});

test("NaN and infinities have colours of their own, and the legend names them", async ({ page }) => {
  const rows = [[-3, "-Infinity", "Infinity", "NaN", 3]] as const;
  const { cells, swatches, texts, ramp } = await draw(page, { rows, palette: "diverging", scale: "linear" });
  expect(texts).toEqual(["−3", "3", "−∞", "+∞", "NaN"]);
  const [row = []] = cells;
  expect(swatches).toEqual([row[1], row[2], row[3]]);
  for (const swatch of swatches) {
    for (const step of ramp) expect(apart(step, swatch)).toBeGreaterThan(20);
  }
  const without = await draw(page, { rows: [[1, 2]], palette: "diverging", scale: "linear" });
  expect(without.texts).toEqual(["−2", "2"]);
});

test("a lone NaN among thousands of rows stays visible", async ({ page }) => {
  const n = 600;
  await page.evaluate((n) => {
    document.body.innerHTML = '<div id="at" style="inline-size: 260px"></div>';
    const data = new Float32Array(n * n).fill(0.5);
    data[n * 411 + 87] = Number.NaN;
    const labels = Array.from({ length: n }, () => "t");
    views.heatmap(document.querySelector("#at") as HTMLElement, {
      matrix: { data, rows: n, columns: n },
      rowLabels: labels,
      columnLabels: labels,
      label: "matrix",
      describe: () => "",
    });
  }, n);
  const pixels = () =>
    page.evaluate(() => {
      const canvas = document.querySelector("canvas") as HTMLCanvasElement;
      const { data } = (canvas.getContext("2d") as CanvasRenderingContext2D).getImageData(
        0,
        0,
        canvas.width,
        canvas.height,
      );
      let count = 0;
      for (let i = 0; i < data.length; i += 4)
        if (data[i] === 200 && data[i + 1] === 30 && data[i + 2] === 140) count++;
      return count;
    });
  await expect.poll(pixels).toBeGreaterThan(0);
});

test("heads share one scale, or each has its own legend", async ({ page }) => {
  const legends = await page.evaluate(async () => {
    document.body.innerHTML = '<div id="at" style="inline-size: 700px"></div>';
    const shown: unknown[] = [];
    const view = views.headGrid(document.querySelector("#at") as HTMLElement, {
      values: { data: Float32Array.of(1, 2, 3, 4, -10, 20, 30, -40), shape: [2, 2, 2] },
      palette: "diverging",
      domain: "shared",
      titles: [
        { name: "head 1", note: "" },
        { name: "head 2", note: "" },
      ],
      axes: { row: "query", column: "key" },
      rowLabels: ["a", "b"],
      columnLabels: ["a", "b"],
      selection: new attnscope.Selection(),
      label: String,
      describe: String,
      onShown: (colors) => shown.push(colors?.domain ?? null),
    });
    const frames = () => new Promise((resolve) => setTimeout(resolve, 200));
    const own = () => [...document.querySelectorAll(".attn-legend")].map(({ textContent }) => textContent);
    await frames();
    const shared = own();
    view.update({ domain: "each" });
    await frames();
    return { shown, shared, each: own() };
  });
  expect(legends).toEqual({ shown: [[-40, 40], null], shared: [], each: ["−44", "−4040"] });
});
