import { expect, type Page, test } from "@playwright/test";
import { HARNESS } from "./ports.ts";

declare const views: typeof import("attnscope/views");
declare const attnscope: typeof import("attnscope");

// Times are those of the machine as well, which may be busy with something else.
test.describe.configure({ retries: 2 });

const N = 2048;

test.beforeEach(async ({ page }) => {
  await page.goto(HARNESS);
  await page.waitForFunction(() => "views" in globalThis);
  await page.evaluate(() => {
    document.body.innerHTML = '<div id="at" style="inline-size: 1200px"></div>';
  });
});

/** Heads of weights near 0, each with one spike. */
async function makeNumbers(page: Page, n: number, heads: number): Promise<void> {
  await page.evaluate(
    ({ n, heads }) => {
      const data = new Float32Array(heads * n * n);
      for (let i = 0; i < data.length; i++) data[i] = (i % 97) / 97 / n;
      for (let head = 0; head < heads; head++) data[(head * n + 1033 + head) * n + 7] = 0.93;
      Object.assign(globalThis, { values: { data, shape: [heads, n, n] } });
    },
    { n, heads },
  );
}

async function openHeads(page: Page): Promise<void> {
  await page.evaluate(() => {
    const { values } = globalThis as unknown as { values: { data: Float32Array; shape: [number, number, number] } };
    const [heads, n] = values.shape;
    const tokens = Array.from({ length: n }, (_, i) => `token${i}`);
    const selection = new attnscope.Selection({ query: 0, key: 0 });
    const element = document.querySelector("#at") as HTMLElement;
    const view = views.headGrid(element, {
      values,
      titles: Array.from({ length: heads }, (_, head) => ({ name: `head ${head + 1}`, note: "" })),
      axes: { row: "query", column: "key" },
      rowLabels: tokens,
      columnLabels: tokens,
      domain: [0, 1],
      selection,
      sums: "Σ",
      label: (head) => `head ${head + 1}`,
      describe: (head, { row, column }, value) =>
        `head ${head + 1}, query ${tokens[row]}, key ${tokens[column]}, ${value.toFixed(2)}`,
    });
    Object.assign(globalThis, { selection, view });
  });
}

/** Records the longest gap between beats of a timer until it is asked. */
async function startHeartbeat(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(() => {
    const heart = { longest: 0, last: performance.now(), timer: 0 };
    heart.timer = window.setInterval(() => {
      const now = performance.now();
      heart.longest = Math.max(heart.longest, now - heart.last);
      heart.last = now;
    }, 5);
    Object.assign(globalThis, { heart });
  });
  return () =>
    page.evaluate(() => {
      const { heart } = globalThis as unknown as { heart: { longest: number; last: number; timer: number } };
      clearInterval(heart.timer);
      return Math.max(heart.longest, performance.now() - heart.last);
    });
}

/** How many pixels of a head's picture are darker than a light weight may be. */
function darkPixels(page: Page, head: number): Promise<number> {
  return page.evaluate((head) => {
    const canvas = document.querySelectorAll<HTMLCanvasElement>(".attn-surface canvas:first-child")[head];
    const context = canvas?.getContext("2d");
    if (!canvas || !context) return 0;
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    let dark = 0;
    for (let i = 0; i < data.length; i += 4) {
      if (data[i + 3] === 255 && (data[i] ?? 255) < 80) dark++;
    }
    return dark;
  }, head);
}

test("2,048 by 2,048 by 16 heads opens, zooms to single numbers and back, and the page never waits", async ({
  page,
}) => {
  const beats: Record<string, number> = {};
  const during = async (name: string, act: () => Promise<void>) => {
    const longestBeat = await startHeartbeat(page);
    await act();
    await page.waitForTimeout(500);
    beats[name] = await longestBeat();
  };
  await makeNumbers(page, N, 16);
  // How late the machine itself is.
  await during("idle", () => page.waitForTimeout(1000));
  await during("open", () => openHeads(page));
  // Zoomed out a lone spike is one dark block.
  for (const head of [0, 5]) {
    await expect.poll(() => darkPixels(page, head)).toBeGreaterThan(0);
    expect(await darkPixels(page, head)).toBeLessThanOrEqual(4);
  }

  const first = page.getByRole("grid", { name: "head 1", exact: true });
  const cell = first.getByRole("gridcell");
  await during("select", async () => {
    await page.getByRole("spinbutton", { name: /^query/ }).fill("1033");
    await page.getByRole("spinbutton", { name: /^key/ }).fill("7");
    await expect(cell).toHaveAttribute("aria-label", "head 1, query token1033, key token7, 0.93");
  });
  await during("zoom in", async () => {
    await first.focus();
    for (let i = 0; i < 16; i++) await page.keyboard.press("+");
    await expect(async () => expect((await cell.boundingBox())?.width).toBeGreaterThan(40)).toPass();
  });
  // The cell is in sight, filled with its colour.
  const box = await cell.boundingBox();
  const frame = await page.locator(".attn-scroll").first().boundingBox();
  if (!box || !frame) throw new Error("no box");
  expect(box.x).toBeGreaterThanOrEqual(frame.x - 1);
  expect(box.y).toBeGreaterThanOrEqual(frame.y - 1);
  expect(box.x + box.width).toBeLessThanOrEqual(frame.x + frame.width + 1);
  expect(await darkPixels(page, 0)).toBeGreaterThan(400);

  await during("scroll", async () => {
    await page.locator(".attn-scroll").first().hover();
    for (let i = 0; i < 10; i++) await page.mouse.wheel(40, 60);
  });
  await during("zoom out", async () => {
    await page.keyboard.press("0");
    await expect(async () => expect((await cell.boundingBox())?.width).toBeLessThan(1)).toPass();
  });
  console.log("longest beats in ms", beats);
  const { idle = 0, ...busy } = beats;
  // The goal, printed above, is 100 ms. A busy machine is late by itself, so what fails here is a page that froze.
  for (const [name, longest] of Object.entries(busy)) expect(longest, name).toBeLessThan(500 + idle);
});

test("what is zoomed stays one picture: every head shows the same cells", async ({ page }) => {
  await makeNumbers(page, 200, 4);
  await openHeads(page);
  await page.mouse.move(300, 300);
  const first = page.getByRole("grid", { name: "head 1", exact: true });
  await first.dblclick({ position: { x: 120, y: 120 } });
  const offset = (i: number) =>
    page
      .locator(".attn-scroll")
      .nth(i)
      .evaluate(({ scrollLeft, scrollTop }) => [Math.round(scrollLeft), Math.round(scrollTop)]);
  await expect(async () => expect((await offset(0))[0]).toBeGreaterThan(100)).toPass();
  const at = await offset(0);
  for (const i of [1, 2, 3]) await expect(async () => expect(await offset(i)).toEqual(at)).toPass();
  await page.locator(".attn-scroll").nth(2).hover();
  await page.mouse.wheel(0, 300);
  await expect(async () => {
    const now = await offset(2);
    expect(now[1]).toBeGreaterThan(at[1] ?? 0);
    expect(await offset(0)).toEqual(now);
  }).toPass();
});
