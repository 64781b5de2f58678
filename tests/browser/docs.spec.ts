// The documentation as any static host serves it, under any path: its examples draw, its links lead somewhere, its policy holds.
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, type Page, test } from "@playwright/test";
import { blocksOf } from "../../docs/site/blocks.ts";
import { type Example, examples, expected, isDrawn } from "../../docs/site/examples.ts";
import { guides, pageNames } from "../../docs/site/pages.ts";
import { serve } from "../packaging/static-server.mjs";
import { expectAccessible } from "./bench.ts";
import { PAGE } from "./ports.ts";

const repository = fileURLToPath(new URL("../..", import.meta.url));

let host: Awaited<ReturnType<typeof serve>>;

test.beforeAll(async () => {
  host = await serve(repository);
});
test.afterAll(() => host.close());

const address = (name: string) => `${host.address}/dist-site/docs/${name}.html`;

/** Opens an address; gives what goes wrong there from then on. */
async function open(page: Page, url: string): Promise<string[]> {
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("request", (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(host.address)) complaints.push(request.url());
  });
  page.on("response", (response) => response.status() >= 400 && complaints.push(response.url()));
  await page.goto(url);
  return complaints;
}

/** What has a picture: a grid, a table of terms, an image, a canvas or a frame. */
const DRAWN = "[role=grid], table, img[src], canvas, iframe";

for (const { name, source } of guides) {
  const examples = blocksOf(source).filter(({ language, role }) => language === "html" && role === "");
  test(`${name}: ${examples.length} examples are drawn, and nothing goes wrong`, async ({ page }) => {
    const complaints = await open(page, address(name));
    await expect(page.locator(".live")).toHaveCount(examples.length);
    for (const [i, { code }] of examples.entries()) {
      const figure = page.locator("figure", { has: page.locator(".live") }).nth(i);
      expect(await figure.locator("pre").textContent()).toBe(code);
      await expect(figure.locator(".live").locator(DRAWN).first()).toBeVisible();
    }
    expect(complaints).toEqual([]);
  });
}

test("whole documents draw, beside an installed package", async ({ page }) => {
  const documents = guides.flatMap(({ source }) => blocksOf(source).filter(({ role }) => role === "document"));
  expect(documents).toHaveLength(1);
  for (const { code } of documents) {
    const folder = `${host.address}/document`;
    await page.route(`${folder}/index.html`, (route) => route.fulfill({ contentType: "text/html", body: code }));
    await page.route(`${folder}/node_modules/attnscope/**`, (route) => {
      const file = new URL(route.request().url()).pathname.replace("/document/node_modules/attnscope/", "");
      return route.fulfill({ path: path.join(repository, file) });
    });
    const complaints = await open(page, `${folder}/index.html`);
    await expect(page.locator(DRAWN).first()).toBeVisible();
    expect(complaints.filter((complaint) => !complaint.endsWith("/favicon.ico"))).toEqual([]);
  }
});

// A page of modules without a bundler, with the import map that is told of, and what an example of the package takes for granted there.
const entries = guides.find(({ name }) => name === "entries")?.source ?? "";
const IMPORT_MAP = blocksOf(entries)
  .map(({ code }) => code)
  .find((code) => code.includes('type="importmap"'))
  ?.replaceAll("./node_modules/attnscope/", "/")
  .replaceAll("./node_modules/", "/node_modules/");
const PRELUDE = `import { createEngine, Selection } from "attnscope";
  import { heatmap, headGrid, maskEditor, number, palette, step, visible } from "attnscope/views";
  import "attnscope/elements";
  const element = document.querySelector("#element");
  const engine = await createEngine();`;
const pageOf = ({ language, code }: Example) => `<!doctype html><title>An example</title>
  ${IMPORT_MAP}
  <div id="element">${language === "html" ? code : ""}</div>
  <script type="module">${PRELUDE}${language === "html" ? "" : code}
    globalThis.isDone = true;</script>`;

for (const example of examples.filter(isDrawn)) {
  test(`js/${example.file}:${example.line} does what it says`, async ({ page }) => {
    const printed: string[] = [];
    page.on("console", (message) => message.type() === "log" && printed.push(message.text()));
    await page.route(`${host.address}/example.html`, (route) =>
      route.fulfill({ contentType: "text/html", body: pageOf(example) }),
    );
    const complaints = await open(page, `${host.address}/example.html`);
    await page.waitForFunction(() => "isDone" in globalThis);
    expect(printed).toEqual(expected(example.code, "//"));
    if (/element|</.test(example.code.split("console")[0] ?? "")) {
      await expect(page.locator("#element").locator(DRAWN).first()).toBeVisible();
    }
    expect(complaints.filter((complaint) => !complaint.endsWith("/favicon.ico"))).toEqual([]);
  });
}

test("a mask that is painted changes the heads", async ({ page }) => {
  await open(page, address("masks"));
  const head = page.getByRole("grid", { name: "head 1" });
  const cell = head.getByRole("gridcell");
  await head.focus();
  await page.keyboard.press("ArrowRight");
  await expect(cell).toHaveAttribute("aria-label", /query the, key cat, 0\.[1-9]/);
  await page.getByRole("grid", { name: "mask" }).focus();
  await page.keyboard.press("Space");
  await expect(cell).toHaveAttribute("aria-label", /query the, key cat, 0$/);
});

test("views of the gallery share one selection", async ({ page }) => {
  await open(page, address("gallery"));
  await page.getByRole("grid", { name: "head 2" }).first().press("ArrowUp");
  for (const view of ["head 2", "attention", "the row of one query"]) {
    const cell = page.getByRole("grid", { name: view, exact: true }).first().getByRole("gridcell");
    await expect(cell).toHaveAttribute("aria-label", /^head 2, on to cat, 0\.04$/);
  }
});

test("every link leads to a page and a place that are there, and no id is given twice", async ({ page }) => {
  const ids = new Map<string, Set<string>>();
  const links: { from: string; to: string }[] = [];
  for (const name of pageNames) {
    await page.goto(address(name));
    const found = await page.evaluate(() => ({
      ids: [...document.querySelectorAll("[id]")].map(({ id }) => id),
      links: [...document.querySelectorAll("a")].map(({ href }) => href).filter(Boolean),
    }));
    expect(found.ids.filter((id, i) => found.ids.indexOf(id) !== i)).toEqual([]);
    ids.set(address(name), new Set(found.ids));
    for (const to of found.links) if (to.startsWith(host.address)) links.push({ from: name, to });
  }
  expect(links.length).toBeGreaterThan(100);
  const dead = links.filter(({ to }) => {
    const [url = "", id] = to.split("#");
    if ([`${host.address}/dist-site/`, `${host.address}/dist-site/docs/licences.txt`].includes(url)) return false;
    return !ids.has(url) || (id !== undefined && !ids.get(url)?.has(id));
  });
  expect(dead).toEqual([]);
});

for (const colorScheme of ["light", "dark"] as const) {
  for (const width of [1280, 320]) {
    test(`axe finds nothing, and nothing is wider than the window: ${colorScheme}, ${width} px`, async ({ page }) => {
      test.slow();
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 800 });
      for (const name of pageNames) {
        await page.goto(address(name));
        for (const live of await page.locator(".live").all()) await expect(live.locator(DRAWN).first()).toBeVisible();
        await expectAccessible(page);
      }
    });
  }
}

test("the keyboard goes past the navigation, and shows where it is", async ({ page }) => {
  await page.goto(address("index"));
  await page.keyboard.press("Tab");
  const skip = page.getByRole("link", { name: "To the text" });
  await expect(skip).toBeFocused();
  await expect(skip).toBeInViewport();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  const inMain = () => page.evaluate(() => document.activeElement?.closest("main") !== null);
  expect(await inMain()).toBe(true);
});

test("search leads to guides, exports, options and error codes, by the keyboard alone", async ({ page }) => {
  await open(page, address("gallery"));
  const field = page.getByRole("combobox", { name: "Search the documentation" });
  const options = page.getByRole("option");
  for (const [query, title, end] of [
    ["multihead", "MultiHeadAttention", /api-attention\.html#MultiHeadAttention$/],
    ["maxBytes", "EngineOptions.maxBytes", /api-engine\.html#EngineOptions\.maxBytes$/],
    ["bad_file", "bad_file", /api-errors\.html#ErrorCodes\.bad_file$/],
    ["sliding window", "mask.slidingWindow()", /api-masks\.html#mask\.slidingWindow$/],
    ["slides", "Slides", /embedding\.html#slides$/],
    ["heatmpa", "heatmap", /#heatmap$/],
  ] as const) {
    await page.locator("body").press("/");
    await expect(field).toBeFocused();
    await field.fill(query);
    await expect(options.first()).toContainText(title);
    await expect(page.getByRole("status")).toHaveText(/^\d+ results?$/);
    await field.press("Enter");
    await expect(page).toHaveURL(end);
    await expect(page.locator(":target")).toBeInViewport();
  }
});

test("the list of what was found is walked by arrows and closed by Escape", async ({ page }) => {
  const complaints = await open(page, address("index"));
  const field = page.getByRole("combobox");
  const options = page.getByRole("option");
  await field.fill("mask");
  await expect(options.nth(2)).toBeVisible();
  await expect(field).toHaveAttribute("aria-expanded", "true");
  const isActive = async (i: number) => {
    await expect(options.nth(i)).toHaveAttribute("aria-selected", "true");
    await expect(page.getByRole("listbox").locator("[aria-selected=true]")).toHaveCount(1);
    await expect(field).toHaveAttribute("aria-activedescendant", (await options.nth(i).getAttribute("id")) ?? "");
  };
  await isActive(0);
  await field.press("ArrowDown");
  await isActive(1);
  await field.press("ArrowUp");
  await field.press("ArrowUp");
  await isActive((await options.count()) - 1);
  await field.press("Escape");
  await expect(options).toHaveCount(0);
  await expect(field).toHaveAttribute("aria-expanded", "false");
  await expect(field).toBeFocused();
  await field.fill("xyzzyx");
  await expect(page.getByRole("status")).toHaveText("Nothing found");
  expect(complaints).toEqual([]);
});

test("a slash that is typed into a field is a slash", async ({ page }) => {
  await open(page, address("index"));
  const field = page.getByRole("combobox");
  await field.pressSequentially("a/b");
  await expect(field).toHaveValue("a/b");
});

test("what was fetched once finds without a network", async ({ page, context }) => {
  await open(page, address("index"));
  await page.getByRole("combobox").fill("causal");
  await expect(page.getByRole("option").first()).toBeVisible();
  await context.setOffline(true);
  await page.getByRole("combobox").fill("entropy");
  await expect(page.getByRole("option").first()).toContainText("Analysis.entropy()");
});

for (const colorScheme of ["light", "dark"] as const) {
  for (const width of [1280, 320]) {
    test(`what was found fits and axe finds nothing: ${colorScheme}, ${width} px`, async ({ page }) => {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 640 });
      await page.goto(address("masks"));
      await page.getByRole("combobox").fill("weights");
      await expect(page.getByRole("option").nth(3)).toBeVisible();
      const { x = -1, width: wide = 0 } = (await page.getByRole("listbox").boundingBox()) ?? {};
      expect(x).toBeGreaterThanOrEqual(0);
      expect(x + wide).toBeLessThanOrEqual(width);
      await expectAccessible(page);
    });
  }
}

test("where there is no room beside the text, a button opens the list of pages", async ({ page }) => {
  await page.setViewportSize({ width: 360, height: 640 });
  await page.goto(address("files"));
  const pages = page.getByRole("navigation", { name: "Documentation" });
  await expect(pages).toBeHidden();
  await page.getByRole("button", { name: "Pages" }).click();
  await expect(pages).toBeVisible();
  await expectAccessible(page);
  await pages.getByRole("link", { name: "Masks", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Masks");
});

test("no script, style or policy of a page is looser than the page's own", async ({ page }) => {
  for (const name of pageNames) {
    await page.goto(address(name));
    const policy = await page.locator("meta[http-equiv=Content-Security-Policy]").getAttribute("content");
    expect(policy).not.toMatch(/unsafe-inline|'unsafe-eval'|\*|https?:/);
    expect(await page.locator("script:not([src]), style, [style]:not(.live *)").count()).toBe(0);
  }
});

test("the page keeps none of it for times without a network", async ({ page }) => {
  await page.goto(PAGE);
  await expect(page.getByTestId("status")).toContainText("simd");
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await page.goto(`${PAGE}/docs/index.html`);
  await expect(page.locator(".live").locator(DRAWN).first()).toBeVisible();
  const kept = await page.evaluate(async () => {
    const names = await caches.keys();
    const all = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
    return all.flat().map(({ url }) => url);
  });
  expect(kept.length).toBeGreaterThan(0);
  expect(kept.filter((url) => url.includes("/docs/"))).toEqual([]);
});
