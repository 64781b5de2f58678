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

type Tag = "attn-heads" | "attn-lines" | "attn-heatmap" | "attn-mask";

/** Sets properties of an element, in its own turn. What is undefined is written as "undefined". */
const set = (page: Page, name: string, properties: Record<string, unknown>) =>
  page.evaluate(
    ({ name, properties }) => {
      const element = document.querySelector(name) as HTMLElement;
      for (const [key, value] of Object.entries(properties)) {
        Reflect.set(element, key, value === "undefined" ? undefined : value);
      }
    },
    { name, properties },
  );

const errors = async (page: Page) => (await events(page)).filter(({ type }) => type === "error");

test("properties take what attributes hold, as frameworks give it", async ({ page }) => {
  await open(page, "<attn-heads></attn-heads><attn-lines></attn-lines><attn-heatmap></attn-heatmap>");
  for (const name of ["attn-heads", "attn-lines", "attn-heatmap"]) {
    await set(page, name, { tokens: "the cat", keyTokens: '["a b","c"]', weights: WEIGHTS });
  }
  await set(page, "attn-heatmap", { head: "1" });
  const cell = (name: string) => page.locator(name).getByRole("gridcell").last();
  await expect(cell("attn-heads")).toHaveAttribute("aria-label", "head 2, query the, key a␣b, 0.500");
  await expect(cell("attn-lines")).toHaveAttribute("aria-label", "head 1, query the, key a␣b, 1.000");
  await expect(cell("attn-heatmap")).toHaveAttribute("aria-label", "head 2, query the, key a␣b, 0.500");
  await page.evaluate(() => document.body.replaceChildren(document.createElement("attn-mask")));
  await set(page, "attn-mask", { tokens: "the cat", allowed: "[[0,1],[1,1]]" });
  await expect(cell("attn-mask")).toHaveAttribute("aria-label", "query the, key the, hidden");
  expect(await events(page)).toEqual([]);
});

test("properties that were set before an element was defined count, over its attributes", async ({ page }) => {
  await open(page, '<late-heads tokens="a b" hidden></late-heads><late-scope></late-scope>');
  await page.evaluate(
    ({ weights, src }) => {
      const { elements } = globalThis as unknown as { elements: typeof import("attnscope/elements") };
      const [heads, scope] = [...document.body.children] as [HTMLElement, HTMLElement];
      Object.assign(heads, { tokens: ["the", "cat"], weights: JSON.parse(weights), hidden: false, note: 1 });
      Object.assign(scope, { src, state: '{"attnscope":1,"sentence":"one two"}' });
      customElements.define("late-heads", class extends elements.AttnHeads {});
      customElements.define("late-scope", class extends elements.AttnScope {});
    },
    { weights: WEIGHTS, src: FILE },
  );
  const cell = page.locator("late-heads").getByRole("gridcell").first();
  await expect(cell).toHaveAttribute("aria-label", "head 1, query the, key the, 1.000");
  await expect(page.frameLocator("late-scope iframe").getByTestId("sentence")).toHaveValue("one two");
  expect(await page.evaluate(() => Object.keys(document.body.firstElementChild ?? {}))).toEqual(["note"]);
});

test("tokens in brackets are words unless they are JSON, and no words are no tokens", async ({ page }) => {
  await open(page, `<attn-heatmap tokens="[CLS] [SEP]" weights="[[1,0],[0,1]]"></attn-heatmap>`);
  const cell = page.getByRole("gridcell");
  await expect(cell).toHaveAttribute("aria-label", "head 1, query [CLS], key [CLS], 1.000");
  await set(page, "attn-heatmap", { tokens: "[1, 2]" });
  await expect(cell).toHaveAttribute("aria-label", "head 1, query [1,, key [1,, 1.000");
  for (const tokens of ["", "  ", "[]", [], null, "undefined"]) {
    await set(page, "attn-heatmap", { tokens: "the cat" });
    await expect(cell).toHaveAttribute("aria-label", /query the/);
    await set(page, "attn-heatmap", { tokens });
    await expect(cell).toHaveAttribute("aria-label", "head 1, query 0, key 0, 1.000");
  }
  expect(await errors(page)).toEqual([]);
  await set(page, "attn-heatmap", { keyTokens: [1, 2] });
  await set(page, "attn-heatmap", { tokens: 5 });
  expect(await errors(page)).toEqual(
    ["keyTokens", "tokens"].map((option) => ({
      type: "error",
      detail: expect.objectContaining({ code: "invalid_option", details: expect.objectContaining({ option }) }),
    })),
  );
});

test("a selection that moves copies no numbers and draws no picture anew", async ({ page }) => {
  const names: readonly Tag[] = ["attn-heads", "attn-lines", "attn-heatmap", "attn-mask"];
  await page.setViewportSize({ width: 800, height: 4000 });
  await open(page, names.map((name) => `<${name}></${name}>`).join(""));
  await page.evaluate(() => {
    const weights = { data: new Float32Array(2 * 40 * 40).fill(0.5), shape: [2, 40, 40] };
    for (const element of document.body.children) Object.assign(element, { tokens: "a ".repeat(40), weights });
  });
  await expect(page.getByRole("grid")).toHaveCount(5);
  const drawn = () =>
    page.evaluate(() =>
      [...document.body.children].every((element) => (element.shadowRoot?.querySelector("canvas")?.width ?? 0) > 300),
    );
  await expect.poll(drawn).toBe(true);
  const made = await page.evaluate(async () => {
    const turn = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 30)));
    await turn();
    const counts = { arrays: 0, pictures: 0, marks: 0 };
    const count = <Kind extends typeof Float32Array | typeof Uint8Array>(kind: Kind) =>
      new Proxy(kind, {
        construct(target, given, self) {
          counts.arrays++;
          return Reflect.construct(target, given, self);
        },
        get(target, name) {
          if (name === "from") counts.arrays++;
          return Reflect.get(target, name);
        },
      });
    Object.assign(globalThis, { Float32Array: count(Float32Array), Uint8Array: count(Uint8Array) });
    const { clearRect } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.clearRect = function (...box) {
      // Of a surface's two canvases the first one holds the picture.
      if (this.canvas.previousElementSibling) counts.marks++;
      else counts.pictures++;
      clearRect.apply(this, box);
    };
    for (const element of document.body.children as unknown as HTMLElementTagNameMap[Tag][]) {
      element.selection.set({ query: 3, key: 2 });
      await turn();
      element.selection.set({ query: 4 });
      await turn();
    }
    return counts;
  });
  expect(made).toEqual({ arrays: 0, pictures: 0, marks: expect.any(Number) });
  expect(made.marks).toBeGreaterThan(0);
  const cells = page.getByRole("gridcell");
  for (const at of [0, 1, 2, 3, 4]) await expect(cells.nth(at)).toHaveAttribute("aria-colindex", "3");
});

test("what is painted stays when the selection moves", async ({ page }) => {
  await open(page, '<attn-mask tokens="a b"></attn-mask>');
  const grid = page.getByRole("grid");
  await grid.focus();
  await page.keyboard.press("Space");
  await expect.poll(async () => (await events(page)).some(({ type }) => type === "maskchange")).toBe(true);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowLeft");
  await expect(grid.getByRole("gridcell")).toHaveAttribute("aria-label", "query a, key a, hidden");
});

for (const nothing of [null, "undefined"]) {
  test(`${nothing} is for every property as if it were not given`, async ({ page }) => {
    const complaints: string[] = [];
    page.on("pageerror", (error) => complaints.push(String(error)));
    const names: readonly Tag[] = ["attn-heads", "attn-lines", "attn-heatmap"];
    await open(page, names.map((name) => `<${name}></${name}>`).join(""));
    const cell = (name: Tag) => page.locator(name).getByRole("gridcell").first();
    for (const name of names) {
      await set(page, name, { tokens: "the cat", keyTokens: "a b", head: 1, weights: JSON.parse(WEIGHTS) });
      await expect(cell(name)).toHaveAttribute("aria-label", /query the, key a/);
      await set(page, name, { tokens: nothing, keyTokens: nothing, head: nothing, selection: nothing });
      await expect(cell(name)).toHaveAttribute("aria-label", "head 1, query 0, key 0, 1.000");
      await set(page, name, { weights: nothing });
      await expect(page.locator(name).getByRole("grid")).toHaveCount(0);
      await set(page, name, { weights: WEIGHTS });
      await expect(cell(name)).toBeVisible();
    }
    await page.evaluate(() => document.body.replaceChildren(document.createElement("attn-mask")));
    await set(page, "attn-mask", {
      tokens: "the cat",
      allowed: [
        [0, 1],
        [1, 1],
      ],
    });
    await expect(cell("attn-mask")).toHaveAttribute("aria-label", /hidden/);
    await set(page, "attn-mask", { allowed: nothing });
    await expect(cell("attn-mask")).toHaveAttribute("aria-label", /allowed/);
    await set(page, "attn-mask", { tokens: nothing });
    await expect(page.getByRole("grid")).toHaveCount(0);
    await page.evaluate(() => document.body.replaceChildren());
    expect(await events(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });
}

test("an attribute that is taken away leaves no picture", async ({ page }) => {
  await open(page, `<attn-heads tokens="the cat" weights="${WEIGHTS}"></attn-heads>`);
  await expect(page.getByRole("grid")).toHaveCount(2);
  await page.evaluate(() => document.querySelector("attn-heads")?.removeAttribute("weights"));
  await expect(page.getByRole("grid")).toHaveCount(0);
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

test("a bench goes back to its start, the browser's language and the system's theme", async ({ page }) => {
  await page.emulateMedia({ colorScheme: "light" });
  const state = JSON.stringify(STATE);
  await open(page, `<attn-scope src="${FILE}" state='${state}' language="zh" theme="dark"></attn-scope>`);
  const html = bench(page).locator("html");
  const sentence = bench(page).getByTestId("sentence");
  await expect(sentence).toHaveValue(STATE.sentence);
  await expect(html).toHaveAttribute("lang", "zh-CN");
  await set(page, "attn-scope", { state: null, language: null, theme: "undefined" });
  await expect(sentence).toHaveValue("the cat sat on the mat");
  await expect(html).toHaveAttribute("lang", "en");
  await expect(html).toHaveCSS("color-scheme", "light");
  await set(page, "attn-scope", { src: "undefined" });
  await expect(page.locator("attn-scope iframe")).toHaveCount(0);
});

for (const [what, blocked] of [
  ["is not there", { status: 404 }],
  [
    "may run no scripts",
    {
      headers: { "Content-Security-Policy": "script-src 'none'" },
      body: "<script>parent.postMessage({ attnscope: 'ready' }, '*')</script>",
    },
  ],
] as const) {
  test(`a bench says that its page ${what}`, async ({ page }) => {
    await page.clock.install();
    await page.route(FILE, (route) => route.fulfill({ contentType: "text/html", ...blocked }));
    await open(page, `<attn-scope src="${FILE}"></attn-scope>`);
    await expect(page.locator("attn-scope iframe")).toBeVisible();
    expect(await events(page)).toEqual([]);
    await page.clock.fastForward(20_000);
    const details = expect.objectContaining({ option: "src", found: expect.stringContaining(FILE) });
    await expect
      .poll(() => events(page))
      .toEqual([{ type: "error", detail: expect.objectContaining({ code: "invalid_option", details }) }]);
  });
}

test("a bench that is there in time says nothing", async ({ page }) => {
  await page.clock.install();
  await open(page, `<attn-scope src="${FILE}"></attn-scope>`);
  await page.clock.resume();
  await expect(bench(page).getByTestId("status")).toContainText("simd");
  await page.clock.fastForward(20_000);
  expect(await errors(page)).toEqual([]);
});
