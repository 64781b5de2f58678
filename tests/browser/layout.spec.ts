import { expect, type Page } from "@playwright/test";
import { choose, head, rule, test, visit } from "./bench.ts";
import { PAGE } from "./ports.ts";

declare const written: [text: string, font: string][];

/** Notes what canvases are written on with from now on. */
const listen = (page: Page) =>
  page.evaluate(() => {
    const { fillText } = CanvasRenderingContext2D.prototype;
    const written: [string, string][] = [];
    Object.assign(globalThis, { written });
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
      written.push([text, this.font]);
      fillText.call(this, text, x, y);
    };
  });

async function sizeAt(page: Page, width: number, height: number) {
  await page.setViewportSize({ width, height });
  // What observes sizes, and the frames after it.
  await page.evaluate(() => new Promise((done) => setTimeout(done, 150)));
  const box = await head(page, 1).boundingBox();
  const right = (await head(page, 2).boundingBox())?.x ?? 0;
  return { width: box?.width ?? 0, height: box?.height ?? 0, isBeside: right > (box?.x ?? 0) + 10 };
}

test("a matrix is never smaller in a wider window, and its cells hold their numbers", async ({ page }) => {
  for (const height of [800, 1080]) {
    let before = { width: 0, height: 0 };
    for (const width of [1100, 1280, 1440, 1600, 1760, 1920, 2560]) {
      const size = await sizeAt(page, width, height);
      expect(size.isBeside, `${width}`).toBe(true);
      expect(size.width, `${width}`).toBeGreaterThanOrEqual(before.width);
      expect(size.height, `${width}`).toBeGreaterThanOrEqual(before.height);
      expect(size.width / 6, `${width}`).toBeGreaterThanOrEqual(26);
      before = size;
    }
  }
  for (const width of [320, 390, 768]) {
    const size = await sizeAt(page, width, 800);
    expect(size.width / 6, `${width}`).toBeGreaterThanOrEqual(26);
  }
  expect((await sizeAt(page, 390, 800)).isBeside).toBe(false);
});

test("no way to look is wider than a narrow window, be there one token or several", async ({ page }) => {
  await page.setViewportSize({ width: 320, height: 800 });
  for (const sentence of ["one", "the cat sat on the mat"]) {
    for (const looking of ["matrix", "lines", "bars"]) {
      for (const range of ["shared", "each"]) {
        await visit(page, { attnscope: 1, sentence, view: { range, scale: "log" } });
        await choose(page, "look", looking);
        await expect(page.getByTestId("status")).toContainText("ms");
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect(over, `${sentence}: ${looking}, ${range}`).toBeLessThanOrEqual(0);
      }
    }
  }
});

for (const locale of ["en", "zh-CN"]) {
  test(`the scale of all heads stands in one line in a narrow window, ${locale}`, async ({ browser }) => {
    for (const width of [320, 360, 390]) {
      const page = await browser.newPage({ locale, viewport: { width, height: 800 }, baseURL: PAGE });
      await page.goto("/");
      await expect(page.getByTestId("head-grid")).toBeVisible();
      const box = await page.locator(".attn-legend").first().boundingBox();
      expect(box?.height, `${width}`).toBeLessThan(30);
      await page.close();
    }
  });
}

test("side by side has the sums of rows where they fit", async ({ page }) => {
  await rule(page, "causal").click();
  await choose(page, "compare", "side by side");
  await listen(page);
  const sums = () => page.evaluate(() => written.filter(([text]) => text === "Σ").length);
  await page.setViewportSize({ width: 1920, height: 1000 });
  await expect.poll(sums).toBeGreaterThanOrEqual(3);
});

test("a matrix out of sight follows as well, so that a picture of the whole page is true", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 800 });
  await rule(page, "none").scrollIntoViewIfNeeded();
  await expect(head(page, 1)).not.toBeInViewport();
  const picture = () =>
    page
      .getByTestId("head-grid")
      .locator("canvas")
      .first()
      .evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL());
  const before = await picture();
  await rule(page, "causal").click();
  await expect.poll(picture).not.toBe(before);
  await expect(head(page, 1)).not.toBeInViewport();
  const after = await picture();
  await head(page, 1).scrollIntoViewIfNeeded();
  await page.evaluate(() => new Promise((done) => setTimeout(done, 150)));
  expect(await picture()).toBe(after);
});

test("the numbers of all heads are of one size", async ({ page }) => {
  await page.locator("[data-testid=strip] [value=query]").check();
  await sizeAt(page, 1280, 800);
  // Everything is drawn again where the window changes, and nothing of what was drawn before it.
  await listen(page);
  await sizeAt(page, 1300, 800);
  const fonts = await page.evaluate(() =>
    Array.from(new Set(written.flatMap(([text, font]) => (/^[−\d]+\.\d\d$/.test(text) ? [font] : [])))),
  );
  expect(fonts).toHaveLength(1);
});

test("the inspector stays beside the head that is chosen", async ({ page }) => {
  await page.setViewportSize({ width: 1280, height: 800 });
  await visit(page, { attnscope: 1, numbers: { source: "torch", nHeads: "16", dModel: "64" } });
  await head(page, 16).scrollIntoViewIfNeeded();
  await head(page, 16).click({ position: { x: 60, y: 60 } });
  await expect(page.getByTestId("inspector-place")).toContainText("head 16");
  await expect(page.getByTestId("inspector-place")).toBeInViewport({ ratio: 1 });
  // One that is taller than the window scrolls by itself.
  await page.setViewportSize({ width: 1280, height: 400 });
  const inspector = page.getByTestId("inspector");
  expect(await inspector.evaluate(({ clientHeight }) => clientHeight)).toBeLessThanOrEqual(400);
  await inspector.evaluate((element) => element.scrollTo(0, 1e6));
  await head(page, 16).scrollIntoViewIfNeeded();
  await expect(inspector.locator("li").last()).toBeInViewport();
});

test("the chosen stop is whole where layers take room beside it", async ({ page }) => {
  await choose(page, "model", "transformer blocks");
  await page.locator("[data-testid=strip] input").last().check({ force: true });
  await page.getByTestId("n-layers").fill("3");
  await expect(page.getByTestId("layer").getByRole("radio")).toHaveCount(3);
  const last = page.locator("[data-testid=strip] label").last();
  await expect(last.locator("input")).toBeChecked();
  await expect(last).toBeInViewport({ ratio: 0.99 });
});

test("with forced colours only what is chosen is underlined", async ({ page }) => {
  await page.emulateMedia({ forcedColors: "active" });
  await rule(page, "causal").click();
  await page.mouse.move(0, 0);
  const underlined = await page.evaluate(() => {
    const paper = getComputedStyle(document.body).backgroundColor;
    const isSeen = (element: Element) => {
      const { borderBlockEndWidth, borderBlockEndColor } = getComputedStyle(element);
      return borderBlockEndWidth === "2px" && borderBlockEndColor !== paper;
    };
    const radios = [...document.querySelectorAll<HTMLInputElement>("main [type=radio]")];
    const buttons = [...document.querySelectorAll("main [aria-pressed]")];
    const of = (isOn: boolean) => [
      ...radios.filter(({ checked }) => checked === isOn).map(({ nextElementSibling }) => nextElementSibling),
      ...buttons.filter(
        (button) =>
          (button.getAttribute("aria-pressed") === "true") === isOn && !button.closest("[data-testid=tokens]"),
      ),
    ];
    return [of(true), of(false)].map((all) => [...new Set(all.map((element) => element && isSeen(element)))]);
  });
  expect(underlined).toEqual([[true], [false]]);
});
