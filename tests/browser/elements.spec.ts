// The custom elements: attributes and properties, events, errors, and nothing left behind.
import { expect, type Page, test } from "@playwright/test";
import { HARNESS } from "./ports.ts";

const WEIGHTS = "[[[1,0],[0.25,0.75]],[[0.5,0.5],[0.5,0.5]]]";

async function open(page: Page, html: string): Promise<void> {
  await page.goto(HARNESS);
  await page.waitForFunction(() => "elements" in globalThis);
  await page.evaluate((html) => {
    const events: { type: string; detail: unknown }[] = [];
    Object.assign(globalThis, { events });
    for (const type of ["select", "maskchange", "error"]) {
      document.addEventListener(
        type,
        (event) => {
          const { detail } = event as CustomEvent;
          events.push({ type, detail: detail instanceof Error ? { ...detail, message: detail.message } : detail });
        },
        true,
      );
    }
    document.body.innerHTML = html;
  }, html);
}

const events = (page: Page) =>
  page.evaluate(() => (globalThis as unknown as { events: { type: string; detail: unknown }[] }).events);

test("attributes draw, and a selection is told", async ({ page }) => {
  await open(page, `<attn-heads tokens="the cat" weights="${WEIGHTS}"></attn-heads>`);
  const second = page.getByRole("grid", { name: "head 2" });
  await expect(page.getByRole("grid")).toHaveCount(2);
  await second.focus();
  await page.keyboard.press("ArrowDown");
  await expect(second.getByRole("gridcell")).toHaveAttribute("aria-label", /head 2, query cat, key the, 0.50/);
  expect(await events(page)).toContainEqual({ type: "select", detail: { head: 1, query: 1, key: 0 } });
});

test("properties draw tensors that come from elsewhere, and elements share a selection", async ({ page }) => {
  await open(page, `<attn-lines></attn-lines><attn-heatmap head="1"></attn-heatmap>`);
  await page.evaluate((weights) => {
    const lines = document.querySelector("attn-lines") as HTMLElementTagNameMap["attn-lines"];
    const map = document.querySelector("attn-heatmap") as HTMLElementTagNameMap["attn-heatmap"];
    map.selection = lines.selection;
    for (const element of [lines, map]) {
      element.tokens = ["你好", " "];
      element.weights = JSON.parse(weights);
    }
    lines.selection.set({ query: 1, key: 1 });
  }, WEIGHTS);
  const cell = page.locator("attn-heatmap").getByRole("gridcell");
  await expect(cell).toHaveAttribute("aria-label", /head 2, query ␣, key ␣, 0.50/);
});

test("a mask is painted, and told", async ({ page }) => {
  await open(page, `<attn-mask tokens='["a","b","c"]'></attn-mask>`);
  const grid = page.getByRole("grid", { name: "mask" });
  await grid.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Space");
  await expect(grid.getByRole("gridcell")).toHaveAttribute("aria-label", "query a, key b, hidden");
  const told = (await events(page)).filter(({ type }) => type === "maskchange");
  expect(told.map(({ detail }) => (detail as { shape: number[] }).shape)).toEqual([[3, 3]]);
  const works = await page.evaluate(async () => {
    const { attnscope } = globalThis as unknown as typeof import("./harness/main.ts");
    const { allowed } = document.querySelector("attn-mask") as HTMLElementTagNameMap["attn-mask"];
    const engine = await attnscope.createEngine();
    const sized = await engine.materialize(attnscope.mask.fromKeep(allowed as never), { nQ: 3, nK: 3 });
    return [...sized.allowed];
  });
  expect(works).toEqual([1, 0, 1, 1, 1, 1, 1, 1, 1]);
});

test("what cannot be drawn is told, and the last picture stays", async ({ page }) => {
  await open(page, `<attn-heads tokens="the cat" weights="${WEIGHTS}"></attn-heads>`);
  await expect(page.getByRole("grid")).toHaveCount(2);
  await page.evaluate(() => {
    const heads = document.querySelector("attn-heads") as HTMLElementTagNameMap["attn-heads"];
    heads.setAttribute("weights", "[[1, 2");
    heads.setAttribute("tokens", "one two three");
  });
  await expect.poll(() => events(page)).toHaveLength(2);
  expect(await events(page)).toEqual([
    { type: "error", detail: expect.objectContaining({ code: "invalid_tensor" }) },
    { type: "error", detail: expect.objectContaining({ code: "shape_mismatch" }) },
  ]);
  await expect(page.getByRole("grid")).toHaveCount(2);
});

test("elements that are removed leave nothing behind, and may come back", async ({ page }) => {
  await open(page, "");
  const left = await page.evaluate(async (weights) => {
    const turn = () => new Promise((resolve) => setTimeout(resolve, 20));
    let listeners = 0;
    const target = EventTarget.prototype;
    const { addEventListener, removeEventListener } = target;
    target.addEventListener = function (...given: Parameters<typeof addEventListener>) {
      if (this === window || this === document || this instanceof MediaQueryList) listeners++;
      addEventListener.apply(this, given);
    };
    target.removeEventListener = function (...given: Parameters<typeof removeEventListener>) {
      if (this === window || this === document || this instanceof MediaQueryList) listeners--;
      removeEventListener.apply(this, given);
    };
    for (let round = 0; round < 20; round++) {
      for (const name of ["attn-heads", "attn-lines", "attn-heatmap", "attn-mask"] as const) {
        const element = document.createElement(name);
        element.setAttribute("tokens", "the cat");
        element.setAttribute("weights", weights);
        document.body.append(element);
        await turn();
        element.remove();
        document.body.append(element);
        element.remove();
      }
    }
    await turn();
    Object.assign(target, { addEventListener, removeEventListener });
    return { listeners, elements: document.body.children.length };
  }, WEIGHTS);
  expect(left).toEqual({ listeners: 0, elements: 0 });
});
