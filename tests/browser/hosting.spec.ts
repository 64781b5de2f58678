// The page as any static host serves it: under a strict policy, with no request to elsewhere, and without a network.
import { gzipSync } from "node:zlib";
import { expect, test } from "@playwright/test";
import { PAGE } from "./ports.ts";

test("nothing breaks the page's policy, and no request leaves the site", async ({ page }) => {
  const elsewhere: string[] = [];
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(PAGE) && !url.startsWith("data:") && !url.startsWith("blob:")) elsewhere.push(url);
  });
  await page.addInitScript(() => {
    const broken: string[] = [];
    Object.assign(globalThis, { broken });
    document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => {
      broken.push(`${violatedDirective}: ${blockedURI}`);
    });
  });
  await page.goto("/");
  await expect(page.getByTestId("status")).toContainText("simd");
  const policy = await page.locator("meta[http-equiv=Content-Security-Policy]").getAttribute("content");
  expect(policy).not.toMatch(/unsafe-inline|'unsafe-eval'|\*|https?:/);
  expect(await page.evaluate(() => (globalThis as unknown as { broken: string[] }).broken)).toEqual([]);
  // What the policy is there for: text that is code elsewhere does nothing here.
  const ran = await page.evaluate(() => {
    const image = document.createElement("div");
    image.innerHTML = "<img src=x onerror='globalThis.ran = true'>";
    document.body.append(image);
    return new Promise((resolve) => setTimeout(() => resolve("ran" in globalThis), 200));
  });
  expect(ran).toBe(false);
  expect(elsewhere).toEqual([]);
});

/** What the first view may weigh, as hosts compress it: the document, scripts, styles, WebAssembly and fonts. */
const BUDGET = 231_500;
/** The same with what says a little later what the heads do. */
const LABELLED_BUDGET = 259_000;

test("the first view is light", async ({ page }) => {
  const fetched = new Set<string>();
  page.on("request", (request) => {
    if (request.url().startsWith(PAGE) && !request.serviceWorker()) fetched.add(request.url());
  });
  await page.goto("/");
  await expect(page.getByTestId("status")).toContainText("simd");
  await expect.poll(() => [...fetched].filter((url) => url.endsWith(".wasm"))).toHaveLength(2);
  // Asked for once more: of what was compiled while it came the browser keeps no copy to look at.
  const weigh = async (url: string): Promise<[string, number]> => {
    const body = await (await page.request.get(url)).body();
    return [new URL(url).pathname, Math.min(body.length, gzipSync(body, { level: 9 }).length)];
  };
  const sizes = Object.fromEntries(await Promise.all([...fetched].map(weigh)));
  const total = Object.values(sizes).reduce((sum, size) => sum + size, 0);
  // Asked for when the picture is there.
  const [, analysis = 0] = Object.entries(sizes).find(([path]) => path.includes("attnscope_analysis")) ?? [];
  console.log("first view, gzipped bytes:", sizes, total - analysis, "and labelled", total);
  for (const kind of [/\/$/, /assets\/(?!worker).*\.js$/, /worker.*\.js$/, /\.css$/, /\.wasm$/, /\.woff2$/]) {
    expect(
      Object.keys(sizes).some((name) => kind.test(name)),
      String(kind),
    ).toBe(true);
  }
  expect(analysis).toBeGreaterThan(0);
  expect(total - analysis).toBeLessThanOrEqual(BUDGET);
  expect(total).toBeLessThanOrEqual(LABELLED_BUDGET);
});

test("without the analysis the page shows every number, says what is missing, and asks again", async ({ page }) => {
  const analysis = "**/attnscope_analysis*.wasm";
  await page.context().route(analysis, (route) => route.abort());
  await page.goto("/");
  const missing = page.getByText("the analysis could not be loaded");
  await expect(missing).toBeVisible();
  await expect(page.locator("[role=grid][aria-label^='head 1,']")).toBeVisible();
  await page.context().unroute(analysis);
  await page.getByText("causal", { exact: true }).click();
  await expect(page.getByText("first token").first()).toBeVisible();
  await expect(missing).toBeHidden();
});

for (const [locale, width] of [
  ["en", 1280],
  ["en", 360],
  ["zh-CN", 1280],
] as const) {
  test(`nothing moves while the page comes, ${locale}, ${width} wide`, async ({ browser }) => {
    const page = await browser.newPage({ locale, viewport: { width, height: 800 }, baseURL: PAGE });
    await page.addInitScript(() => {
      const moved: string[] = [];
      Object.assign(globalThis, { moved });
      interface Shift extends PerformanceEntry {
        sources: { node: Node | null; previousRect: DOMRect; currentRect: DOMRect }[];
      }
      new PerformanceObserver((list) => {
        for (const { node, previousRect, currentRect } of (list.getEntries() as Shift[]).flatMap((one) => one.sources))
          moved.push(`${node?.nodeName} ${(node as Element)?.className}: ${previousRect.y} to ${currentRect.y}`);
      }).observe({ type: "layout-shift", buffered: true });
    });
    await page.goto("/");
    await expect(page.getByTestId("head-grid").locator("figcaption").first()).toHaveText(/\d$/);
    await expect(page.getByTestId("inspector").locator("li").first()).toBeVisible();
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 100))));
    expect(await page.evaluate(() => (globalThis as unknown as { moved: string[] }).moved)).toEqual([]);
    await page.close();
  });
}

test("a theme that is chosen holds, whatever the system's is", async ({ page }) => {
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto("/");
  const light = await paper();
  await page.locator("[data-testid=theme] [value=dark]").check();
  await expect.poll(paper).not.toBe(light);
  const dark = await paper();
  await page.emulateMedia({ colorScheme: "dark" });
  expect(await paper()).toBe(dark);
  await page.locator("[data-testid=theme] [value=light]").check();
  await expect.poll(paper).toBe(light);
});

test("after the first visit the page opens without a network", async ({ page, context }) => {
  await page.goto("/");
  await expect(page.getByTestId("status")).toContainText("simd");
  await page.waitForFunction(async () => {
    const names = await caches.keys();
    const kept = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
    const urls = kept.flat().map(({ url }) => url);
    return urls.some((url) => url.endsWith(".wasm")) && urls.some((url) => url.endsWith(".js"));
  });
  // What is kept answers once the worker has taken the page over.
  await page.waitForFunction(() => navigator.serviceWorker.controller?.state === "activated");
  await context.setOffline(true);
  await page.reload();
  await expect(page.getByTestId("status")).toContainText("simd");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("attnscope");
});
