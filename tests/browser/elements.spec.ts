// The custom elements: attributes and properties, events, errors, and nothing left behind.
import { expect, type Page, test } from "@playwright/test";
import { link } from "./bench.ts";
import { HARNESS, PAGE } from "./ports.ts";

const WEIGHTS = "[[[1,0],[0.25,0.75]],[[0.5,0.5],[0.5,0.5]]]";

async function open(page: Page, html: string): Promise<void> {
  await page.goto(HARNESS);
  await page.waitForFunction(() => "elements" in globalThis);
  await page.evaluate((html) => {
    const events: { type: string; detail: unknown }[] = [];
    Object.assign(globalThis, { events });
    for (const type of ["select", "maskchange", "statechange", "error"]) {
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
  // It is told once a frame.
  const told = async () => (await events(page)).filter(({ type }) => type === "maskchange");
  await expect.poll(told).toEqual([{ type: "maskchange", detail: expect.objectContaining({ shape: [3, 3] }) }]);
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

const FILE = `${PAGE}/attnscope.html`;
const STATE = { attnscope: 1, sentence: "one two three" };
const bench = (page: Page, at = 0) => page.frameLocator(`attn-scope >> nth=${at} >> iframe`);

test("the bench opens with its state, and tells what is done on it", async ({ page }) => {
  await open(
    page,
    `<attn-scope src="${FILE}" state='${JSON.stringify(STATE)}' language="zh" theme="dark"></attn-scope>`,
  );
  const html = bench(page).locator("html");
  await expect(html).toHaveAttribute("lang", "zh-CN");
  await expect(html).toHaveCSS("color-scheme", "dark");
  await page.evaluate(() => document.querySelector("attn-scope")?.setAttribute("language", "en"));
  const head = bench(page).getByRole("grid", { name: /^head 1, / });
  await expect(head).toHaveAttribute("aria-rowcount", "3");
  await head.press("ArrowUp");
  await bench(page).getByTestId("mask-presets").getByRole("button", { name: "causal", exact: true }).click();
  await expect
    .poll(async () => (await events(page)).map(({ type }) => type))
    .toEqual(expect.arrayContaining(["select", "maskchange", "statechange"]));
  expect(await events(page)).toContainEqual({ type: "select", detail: expect.objectContaining({ head: 0, query: 1 }) });
  const masks = await page.evaluate(() =>
    (globalThis as unknown as { events: { type: string; detail: { allowed: Uint8Array; shape: number[] } }[] }).events
      .filter(({ type }) => type === "maskchange")
      .map(({ detail }) => ({ allowed: [...detail.allowed], shape: detail.shape })),
  );
  expect(masks.at(-1)).toEqual({ allowed: [1, 0, 0, 1, 1, 0, 1, 1, 1], shape: [3, 3] });
  const state = () =>
    page.evaluate(() => (document.querySelector("attn-scope") as HTMLElementTagNameMap["attn-scope"]).state);
  await expect.poll(async () => JSON.parse((await state()) ?? "{}").masks?.length).toBe(1);
});

test("several benches, of links and of JSON, and each its own", async ({ page }) => {
  await open(
    page,
    `<attn-scope src="${FILE}" state="${link(STATE)}"></attn-scope><attn-scope src="${FILE}"></attn-scope>`,
  );
  await expect(bench(page, 0).getByTestId("status")).toContainText("simd");
  await page.evaluate(
    (state) => {
      (document.querySelectorAll("attn-scope")[1] as HTMLElementTagNameMap["attn-scope"]).state = state;
    },
    JSON.stringify({ attnscope: 1, sentence: "four five" }),
  );
  await expect(bench(page, 0).getByTestId("sentence")).toHaveValue("one two three");
  await expect(bench(page, 1).getByTestId("sentence")).toHaveValue("four five");
});

test("a bench says what it cannot open", async ({ page }) => {
  await open(page, "<attn-scope></attn-scope>");
  await page.evaluate((src) => {
    const scope = document.querySelector("attn-scope") as HTMLElementTagNameMap["attn-scope"];
    scope.src = src;
    scope.state = '{"attnscope":1,"sentence":7}';
  }, FILE);
  await expect.poll(async () => (await events(page)).filter(({ type }) => type === "error")).toHaveLength(2);
  expect(await events(page)).toEqual([
    {
      type: "error",
      detail: expect.objectContaining({ code: "invalid_option", details: expect.objectContaining({ option: "src" }) }),
    },
    {
      type: "error",
      detail: expect.objectContaining({ code: "bad_file", message: expect.stringContaining("sentence") }),
    },
  ]);
});

test("a bench that is removed leaves neither listener nor worker, and may come back", async ({ page }) => {
  await open(page, `<attn-scope src="${FILE}"></attn-scope>`);
  for (let round = 0; round < 3; round++) {
    await expect(bench(page).getByTestId("status")).toContainText("simd");
    expect(page.workers()).toHaveLength(1);
    const left = await page.evaluate(() => {
      const scope = document.querySelector("attn-scope") as HTMLElementTagNameMap["attn-scope"];
      let listeners = 1;
      const { removeEventListener } = window;
      window.removeEventListener = (...given: Parameters<typeof removeEventListener>) => {
        if (given[0] === "message") listeners--;
        removeEventListener.apply(window, given);
      };
      scope.remove();
      Object.assign(window, { removeEventListener });
      Object.assign(globalThis, { scope });
      return { listeners, frames: window.length, inside: scope.shadowRoot?.querySelectorAll("iframe").length };
    });
    expect(left).toEqual({ listeners: 0, frames: 0, inside: 0 });
    await expect.poll(() => page.workers().length).toBe(0);
    await page.evaluate(() => document.body.append((globalThis as unknown as { scope: HTMLElement }).scope));
  }
});
