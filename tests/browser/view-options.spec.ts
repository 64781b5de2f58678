// What views refuse: at once, with the option's name, and with nothing left in the element.
import { expect, type Page, test } from "@playwright/test";
import { HARNESS } from "./ports.ts";

declare const views: typeof import("attnscope/views");
declare const attnscope: typeof import("attnscope");

type Name = "heatmap" | "headGrid" | "headLines" | "rowBars" | "maskEditor" | "thumbnail" | "legend" | "cellInspector";

/** Changes of options that can be drawn, as JSON; a name with null takes the option away. */
type Case = readonly [view: Name, change: object, code: string, names: string];

async function open(page: Page): Promise<string[]> {
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(HARNESS);
  await page.waitForFunction(() => "views" in globalThis);
  await page.evaluate(() => {
    const labels = ["the", "cat"];
    const titles = [{ name: "head 1", note: "" }];
    const describe = () => "a cell";
    const values = { data: new Float32Array([1, 0, 0.5, 0.5]), shape: [1, 2, 2] };
    const axes = { rowLabels: labels, columnLabels: labels };
    const heads = { values, ...axes, titles, selection: new attnscope.Selection(), describe };
    const sound = {
      heatmap: { matrix: { data: [1, 0, 0.5, 0.5], rows: 2, columns: 2 }, ...axes, label: "weights", describe },
      headGrid: { ...heads, axes: { row: "query", column: "key" }, label: () => "weights" },
      headLines: { ...heads, label: "weights" },
      rowBars: { ...heads, label: "weights" },
      maskEditor: { rows: 2, columns: 2, allowed: new Uint8Array(4), ...axes, label: "mask", describe, onPaint() {} },
      thumbnail: { values, palette: "sequential", hidden: null, width: 40, height: 40 },
      legend: { palette: "sequential", domain: [0, 1], hidden: null },
      cellInspector: { steps: [], keyLabels: labels, text: { stage: String, factors() {} } },
    };
    const drawn = (name: Name, change: object) => {
      const element = document.createElement("div");
      element.style.inlineSize = "300px";
      document.body.replaceChildren(element);
      const view = views[name](element, { ...sound[name], ...change } as never);
      return { element, view };
    };
    const told = (error: unknown) => {
      if (!(error instanceof attnscope.AttnError)) return { code: String(error), details: {} };
      return { code: error.code, details: error.details };
    };
    Object.assign(globalThis, { drawn, told });
  });
  return complaints;
}

declare const drawn: (name: Name, change: object) => { element: HTMLElement; view: { update(change: object): void } };
declare const told: (error: unknown) => { code: string; details: { option?: string; argument?: string } };

/** What is refused when a view is made so, and when one that is there is changed so; and what is left in the element of the first. */
const refused = (page: Page, name: Name, change: object) =>
  page.evaluate(
    async ({ name, change: given }) => {
      const change = Object.fromEntries(Object.entries(given).map(([key, value]) => [key, value ?? undefined]));
      const trial = (run: () => unknown) => {
        try {
          run();
        } catch (error) {
          return told(error);
        }
        return { code: "nothing", details: {} };
      };
      const made = trial(() => drawn(name, change));
      const left = document.body.firstElementChild?.childElementCount;
      const { element, view } = drawn(name, {});
      const changed = trial(() => view.update(change));
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 50)));
      return { made, left, changed, stays: element.childElementCount > 0 };
    },
    { name, change },
  );

const THREE = ["the", "cat", "sat"];

const CASES: readonly Case[] = [
  ["heatmap", { describe: null }, "invalid_option", "describe"],
  ["heatmap", { label: 1 }, "invalid_option", "label"],
  ["heatmap", { palette: "viridis" }, "invalid_option", "palette"],
  ["heatmap", { scale: "square" }, "invalid_option", "scale"],
  ["heatmap", { domain: "shared" }, "invalid_option", "domain"],
  ["heatmap", { matrix: null }, "invalid_option", "matrix"],
  ["heatmap", { matrix: [[1]] }, "invalid_option", "matrix"],
  ["heatmap", { matrix: { data: [1, 2, 3], rows: 2, columns: 2 } }, "shape_mismatch", "matrix"],
  ["heatmap", { matrix: { data: [1, 2, 3, 4], shape: [1, 2, 2] } }, "shape_mismatch", "matrix"],
  ["heatmap", { rowLabels: THREE }, "shape_mismatch", "rowLabels"],
  ["heatmap", { rowLabels: [1, 2] }, "invalid_option", "rowLabels"],
  ["heatmap", { columnLabels: ["the"] }, "shape_mismatch", "columnLabels"],
  ["heatmap", { hidden: [1] }, "shape_mismatch", "hidden"],
  ["headGrid", { values: null }, "invalid_option", "values"],
  ["headGrid", { values: [[[1]]] }, "invalid_option", "values"],
  ["headGrid", { label: "weights" }, "invalid_option", "label"],
  ["headGrid", { axes: null }, "invalid_option", "axes"],
  ["headGrid", { selection: { head: 0 } }, "invalid_option", "selection"],
  ["headGrid", { domain: "all" }, "invalid_option", "domain"],
  ["headGrid", { titles: ["head 1"] }, "invalid_option", "titles"],
  ["headGrid", { titles: [{ name: "1" }, { name: "2" }] }, "shape_mismatch", "titles"],
  ["headGrid", { rowLabels: THREE }, "shape_mismatch", "rowLabels"],
  ["headLines", { selection: null }, "invalid_option", "selection"],
  ["headLines", { describe: "a cell" }, "invalid_option", "describe"],
  ["headLines", { columnLabels: THREE }, "shape_mismatch", "columnLabels"],
  ["rowBars", { label: null }, "invalid_option", "label"],
  ["rowBars", { columnLabels: ["the"] }, "shape_mismatch", "columnLabels"],
  ["maskEditor", { allowed: null }, "invalid_option", "allowed"],
  ["maskEditor", { onPaint: null }, "invalid_option", "onPaint"],
  ["maskEditor", { rows: 3 }, "shape_mismatch", "allowed"],
  ["thumbnail", { palette: "grey" }, "invalid_option", "palette"],
  ["thumbnail", { values: { rows: 1 } }, "invalid_option", "values"],
  ["legend", { domain: null }, "invalid_option", "domain"],
  ["legend", { kind: "square" }, "invalid_option", "kind"],
  ["cellInspector", { steps: null }, "invalid_option", "steps"],
  ["cellInspector", { text: null }, "invalid_option", "text"],
];

test("every view refuses wrong options at once, and stays as it was", async ({ page }) => {
  const complaints = await open(page);
  for (const [name, change, code, names] of CASES) {
    const { made, left, changed, stays } = await refused(page, name, change);
    const where = `${name} ${JSON.stringify(change)}`;
    for (const { code: found, details } of [made, changed]) {
      expect([found, details.option ?? details.argument], where).toEqual([code, names]);
    }
    expect({ left, stays }, where).toEqual({ left: 0, stays: true });
  }
  expect(complaints).toEqual([]);
});

test("numbers that do not fill their shape are refused", async ({ page }) => {
  await open(page);
  const found = await page.evaluate(() =>
    (["headGrid", "headLines", "rowBars", "thumbnail"] as const).flatMap((name) =>
      [
        { data: new Float32Array(3), shape: [1, 2, 2] },
        { data: new Float32Array(4), shape: [4] },
      ].map((values) => {
        try {
          drawn(name, { values });
        } catch (error) {
          return told(error).code;
        }
        return "nothing";
      }),
    ),
  );
  expect(new Set(found)).toEqual(new Set(["shape_mismatch"]));
});

test("a heat map takes a tensor of two axes as well as a matrix", async ({ page }) => {
  const complaints = await open(page);
  await page.evaluate(() => {
    const matrix = { data: new Float32Array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), shape: [2, 3] };
    const columnLabels = ["the", "cat", "sat"];
    drawn("heatmap", { matrix, columnLabels, describe: (_: unknown, value: number) => value.toFixed(2) });
  });
  const grid = page.getByRole("grid");
  await expect(grid).toHaveAttribute("aria-colcount", "3");
  await grid.focus();
  await expect(grid.getByRole("gridcell")).toHaveAttribute("aria-label", "0.10");
  expect(complaints).toEqual([]);
});

test("a view that fails to draw is told of and holds up no other", async ({ page }) => {
  const complaints = await open(page);
  const isDrawn = await page.evaluate(async () => {
    const elements = ["", "x"].map((text) => {
      const element = document.createElement("div");
      element.style.inlineSize = "300px";
      element.title = text;
      return element;
    });
    document.body.replaceChildren(...elements);
    const labels = ["the", "cat"];
    const [failing, other] = elements.map((element) =>
      views.heatmap(element, {
        matrix: { data: [1, 0, 0.5, 0.5], rows: 2, columns: 2 },
        rowLabels: labels,
        columnLabels: labels,
        label: "weights",
        describe: () => "a cell",
        write: (value) => {
          if (element.title === "") throw new Error("no words");
          return String(value);
        },
      }),
    );
    const frames = (count: number) => new Promise((done) => setTimeout(done, 20 * count));
    await frames(5);
    other?.update({ maxCell: 30 });
    await frames(5);
    failing?.destroy();
    return (elements[1]?.querySelector("canvas")?.height ?? 0) > 60;
  });
  expect(isDrawn).toBe(true);
  expect([...new Set(complaints)]).toEqual(["Error: no words"]);
});

test("a view that comes under another root brings its styles there", async ({ page }) => {
  await open(page);
  const position = await page.evaluate(async () => {
    const { element } = drawn("heatmap", {});
    const host = document.createElement("div");
    document.body.append(host);
    const shadow = host.attachShadow({ mode: "open" });
    element.style.inlineSize = "200px";
    shadow.append(element);
    await new Promise((done) => setTimeout(done, 100));
    return getComputedStyle(element.querySelector(".attn-surface") as HTMLElement).position;
  });
  expect(position).toBe("relative");
});
