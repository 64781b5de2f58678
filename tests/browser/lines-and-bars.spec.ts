import { expect, type Page, test } from "@playwright/test";
import axe from "axe-core";
import { HARNESS } from "./ports.ts";

declare const views: typeof import("attnscope/views");
declare const attnscope: typeof import("attnscope");
declare const selection: import("attnscope").Selection;

const TOKENS = [
  "我",
  "עברית",
  "👩‍👩‍👧",
  "e\u0301",
  "   ",
  "\n",
  "\ud83d",
  "w".repeat(200),
  "</script><b>x</b>",
  "",
  "cat",
  "sat",
];

const errors: string[] = [];

test.beforeEach(async ({ page }) => {
  errors.length = 0;
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(HARNESS);
  await page.waitForFunction(() => "views" in globalThis);
});

test.afterEach(() => {
  expect(errors).toEqual([]);
});

/** Head h of query i gives all but a little of its weight to key (i + h) mod keys. */
async function open(page: Page, view: "headLines" | "rowBars", tokens: readonly string[], heads: number) {
  await page.evaluate(
    ({ view, tokens, heads }) => {
      document.body.innerHTML = '<main><h1>heads</h1><div id="at" style="inline-size: 700px"></div></main>';
      const n = tokens.length;
      const data = new Float32Array(heads * n * n).fill(0.1 / (n - 1));
      for (let head = 0; head < heads; head++) {
        for (let query = 0; query < n; query++) data[(head * n + query) * n + ((query + head) % n)] = 0.9;
      }
      const selection = new attnscope.Selection({ head: 1, query: 0, key: 1 });
      views[view](document.querySelector("#at") as HTMLElement, {
        values: { data, shape: [heads, n, n] },
        rowLabels: tokens,
        columnLabels: tokens,
        titles: Array.from({ length: heads }, (_, head) => ({ name: `head ${head + 1}`, note: "" })),
        selection,
        label: "weights",
        describe: (head, { row, column }, value) =>
          `head ${head + 1}, query ${views.visible(tokens[row] ?? "")}, key ${views.visible(tokens[column] ?? "")}, ${value.toFixed(2)}`,
      });
      Object.assign(globalThis, { selection });
    },
    { view, tokens, heads },
  );
  await expect(page.getByRole("grid")).toBeVisible();
}

const place = (page: Page) =>
  page.evaluate(() => {
    const { head, query, key } = selection.place;
    return { head, query, key };
  });

/** The heads whose colour is on the canvas that follows the selection, and how many pixels of it. */
const drawnHeads = (page: Page, heads: number) =>
  page.evaluate((heads) => {
    const canvas = document.querySelectorAll("canvas")[1] as HTMLCanvasElement;
    const context = canvas.getContext("2d") as CanvasRenderingContext2D;
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    const colors = Array.from({ length: heads }, (_, head) =>
      Number.parseInt(views.headColor(head, false).slice(1), 16),
    );
    const found = new Set<number>();
    for (let i = 0; i < data.length; i += 4) {
      const [red = 0, green = 0, blue = 0, alpha = 0] = data.slice(i, i + 4);
      // Lines of a large weight are nearly opaque.
      const head = colors.findIndex(
        (color) =>
          alpha > 225 &&
          Math.abs((color >> 16) - red) + Math.abs(((color >> 8) & 255) - green) + Math.abs((color & 255) - blue) < 7,
      );
      if (head >= 0) found.add(head);
    }
    return [...found].sort((a, b) => a - b);
  }, heads);

test("lines: sixteen heads in their colours, each shown and hidden", async ({ page }) => {
  await open(
    page,
    "headLines",
    Array.from({ length: 20 }, (_, i) => `t${i}`),
    16,
  );
  const all = Array.from({ length: 16 }, (_, head) => head);
  await expect.poll(() => drawnHeads(page, 16)).toEqual(all);
  await page.getByRole("button", { name: "head 3", exact: true }).click();
  await expect(page.getByRole("button", { name: "head 3", exact: true })).toHaveAttribute("aria-pressed", "false");
  await expect.poll(() => drawnHeads(page, 16)).toEqual(all.filter((head) => head !== 2));
});

test("lines: tokens and arrow keys choose the query and the key for all views", async ({ page }) => {
  await open(page, "headLines", TOKENS, 2);
  const grid = page.getByRole("grid");
  const box = await grid.boundingBox();
  if (!box) throw new Error("no box");
  const row = (i: number) => ((i + 0.5) * box.height) / TOKENS.length;
  await grid.click({ position: { x: 20, y: row(10) } });
  expect(await place(page)).toEqual({ head: 1, query: 10, key: 1 });
  await grid.click({ position: { x: box.width - 20, y: row(11) } });
  expect(await place(page)).toEqual({ head: 1, query: 10, key: 11 });
  await expect(grid.getByRole("gridcell")).toHaveAttribute("aria-label", "head 2, query cat, key sat, 0.90");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowUp");
  await expect(grid.getByRole("gridcell")).toHaveAttribute("aria-label", "head 2, query ∅, key cat, 0.90");
  await expect(page.locator(".attn-live")).toHaveText("head 2, query ∅, key cat, 0.90");
});

test("lines: a long sentence scrolls, and the selected query comes into sight", async ({ page }) => {
  await open(
    page,
    "headLines",
    Array.from({ length: 400 }, (_, i) => `token${i}`),
    4,
  );
  const scroller = page.locator(".attn-scroll");
  await expect.poll(() => scroller.evaluate((at) => at.scrollHeight > 4 * at.clientHeight)).toBe(true);
  await page.evaluate(() => selection.set({ query: 300, key: 300 }));
  await expect.poll(() => scroller.evaluate((at) => at.scrollTop)).toBeGreaterThan(5000);
  await expect.poll(() => drawnHeads(page, 4)).toContain(0);
});

test("bars: a line for each key, a column for each head, and the arrows move through both", async ({ page }) => {
  await open(page, "rowBars", TOKENS, 12);
  const grid = page.getByRole("grid");
  await expect(grid).toHaveAttribute("aria-rowcount", String(TOKENS.length));
  await expect(grid).toHaveAttribute("aria-colcount", "12");
  await grid.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  expect(await place(page)).toEqual({ head: 2, query: 0, key: 2 });
  await expect(grid.getByRole("gridcell")).toHaveAttribute("aria-label", "head 3, query 我, key 👩‍👩‍👧, 0.90");
  // The last head lies outside the window until it is selected.
  await page.keyboard.press("End");
  expect((await place(page)).head).toBe(11);
  await expect.poll(() => page.locator(".attn-scroll").evaluate((at) => at.scrollLeft)).toBeGreaterThan(100);
});

for (const scheme of ["light", "dark"] as const) {
  test(`tokens of every kind break nothing, and axe finds nothing: ${scheme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: scheme });
    await page.addStyleTag({
      content:
        ":root { color-scheme: light dark; color: light-dark(#171a21, #e9e7e2); background: light-dark(#fdfcfa, #14171c); }",
    });
    for (const view of ["headLines", "rowBars"] as const) {
      await open(page, view, TOKENS, 3);
      expect(await page.locator("b").filter({ hasText: /^x$/ }).count()).toBe(0);
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
      await page.evaluate(axe.source);
      const violations = await page.evaluate(async () => {
        const { axe } = window as unknown as { axe: { run(): Promise<{ violations: { id: string }[] }> } };
        return (await axe.run()).violations.map(({ id }) => id);
      });
      expect(violations).toEqual([]);
    }
  });
}

test("where the pointer is, every view knows", async ({ page }) => {
  await open(page, "headLines", TOKENS, 2);
  const grid = page.getByRole("grid");
  const box = await grid.boundingBox();
  if (!box) throw new Error("no box");
  const row = (i: number) => box.y + ((i + 0.5) * box.height) / TOKENS.length;
  await page.evaluate(() => {
    const points: unknown[] = [];
    selection.addEventListener("point", () => points.push(selection.pointed));
    Object.assign(globalThis, { points });
  });
  await page.mouse.move(box.x + 20, row(10));
  await page.mouse.move(box.x + 22, row(10));
  await page.mouse.move(box.x + 20, box.y - 300);
  const points = await page.evaluate(() => (globalThis as unknown as { points: unknown[] }).points);
  expect(points).toEqual([{ query: 10, key: 1 }, null]);
  expect(await place(page)).toEqual({ head: 1, query: 0, key: 1 });
});

test("on the page the three ways to look share one selection", async ({ page }) => {
  await page.goto("/");
  const look = (name: string) => page.getByTestId("look").getByRole("radio", { name }).check();
  await look("bars");
  const bars = page.getByTestId("row-bars").getByRole("grid");
  await bars.focus();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowRight");
  await expect(bars.getByRole("gridcell")).toHaveAttribute("aria-label", "head 2, query sat, key the, 0.95");
  await look("lines");
  const lines = page.getByTestId("head-lines").getByRole("grid");
  await expect(lines.getByRole("gridcell")).toHaveAttribute("aria-label", "head 2, query sat, key the, 0.95");
  await lines.focus();
  await page.keyboard.press("ArrowDown");
  await look("matrix");
  await expect(page.getByRole("grid", { name: /^head 2, / }).getByRole("gridcell")).toHaveAttribute(
    "aria-label",
    "head 2, query on, key the, 0.95",
  );
  await expect(page.getByTestId("inspector-place")).toHaveText("head 2, query on, key the");
});

for (const scheme of ["light", "dark"] as const) {
  test(`the page with each look, a large matrix and its zoom: axe finds nothing, nothing overflows: ${scheme}`, async ({
    page,
  }) => {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await page.goto("/");
    await page.getByTestId("sentence").fill(Array.from({ length: 30 }, (_, i) => `word${i}`).join(" "));
    await expect(page.getByRole("spinbutton", { name: "query number, from 0" })).toBeVisible();
    await page.getByTestId("range").getByRole("radio", { name: "per head" }).check();
    for (const look of ["matrix", "lines", "bars"]) {
      await page.getByTestId("look").getByRole("radio", { name: look }).check();
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: 800 });
        await page.evaluate(axe.source);
        const violations = await page.evaluate(async () => {
          const { axe } = window as unknown as {
            axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
          };
          return (await axe.run()).violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => html) }));
        });
        expect(violations).toEqual([]);
        const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        await expect.poll(overflow).toBeLessThanOrEqual(0);
      }
    }
  });
}

test("a cell that is not there is refused where its number is typed", async ({ page }) => {
  await page.goto("/");
  await page.getByTestId("sentence").fill(Array.from({ length: 30 }, (_, i) => `word${i}`).join(" "));
  const query = page.getByRole("spinbutton", { name: "query number, from 0" });
  await query.fill("7");
  const place = page.getByTestId("inspector-place");
  await expect(place).toContainText("query word7");
  for (const wrong of ["99", "-3", "1.5", ""]) {
    await query.fill(wrong);
    await expect(query).toHaveAttribute("aria-invalid", "true");
    await expect(place).toContainText("query word7");
  }
  await query.blur();
  await expect(query).toHaveValue("7");
  await expect(query).toHaveAttribute("aria-invalid", "false");
});

test("the page saves what it shows as SVG and PNG", async ({ page }) => {
  await page.goto("/");
  for (const [look, kind] of [
    ["matrix", "svg"],
    ["lines", "png"],
    ["bars", "svg"],
  ] as const) {
    await page.getByTestId("look").getByRole("radio", { name: look }).check();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: `the picture as ${kind}` }).click();
    expect((await download).suggestedFilename()).toBe(`weights-${look}.${kind}`);
  }
});
