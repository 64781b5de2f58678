import { expect, type Page } from "@playwright/test";
import { choose, head, link, rule, said, test } from "./bench.ts";
import { HARNESS } from "./ports.ts";

declare const attnscope: typeof import("attnscope");

// A busy machine takes long for the largest picture.
test.describe.configure({ timeout: 240_000 });

const N = 2048;
const WAIT = { timeout: 100_000 };

/** A word for each position. */
const word = (i: number) =>
  [i / 676, i / 26, i].map((digit) => String.fromCharCode(97 + (Math.floor(digit) % 26))).join("");
const LARGE = {
  attnscope: 1,
  sentence: Array.from({ length: N }, (_, i) => word(i)).join(" "),
  numbers: { source: "torch", draw: "randn", seed: "1", dModel: "256", nHeads: "16" },
};

const computing = (page: Page) => page.getByTestId("computing");
const words = (page: Page) => page.getByTestId("tokens").getByRole("button");
/** The inspector shows how the selected cell of the picture was made. */
const expectExplained = (page: Page, place: RegExp) =>
  expect(async () => {
    await expect(page.getByTestId("inspector-place")).toHaveText(place);
    await expect(page.locator("[data-testid=inspector] li[data-stage=weights] [data-value]")).toBeVisible();
  }).toPass(WAIT);

/** Opens a state as a fresh visit does, without waiting for its picture. */
async function open(page: Page, content: unknown): Promise<void> {
  await page.goto("about:blank");
  await page.goto(`/#${link(content)}`);
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

test("2,048 tokens by 16 heads open, are masked, compared, read and zoomed, and the page never waits", async ({
  page,
}) => {
  const beats: Record<string, number> = {};
  const times: Record<string, number> = {};
  const during = async (name: string, act: () => Promise<void>) => {
    const longestBeat = await startHeartbeat(page);
    const start = Date.now();
    await act();
    times[name] = Date.now() - start;
    await page.waitForTimeout(1000);
    beats[name] = Math.round(await longestBeat());
  };
  // The page is asked by its own means while beats are counted: Playwright's questions run on the thread that is listened to.
  const until = (selector: string, attribute: string, pattern: RegExp) =>
    page.waitForFunction(
      ([selector, attribute, source]) =>
        new RegExp(source as string).test(
          document.querySelector(selector as string)?.getAttribute(attribute as string) ?? "",
        ),
      [selector, attribute, pattern.source],
      WAIT,
    );
  const untilSettled = (canvases: number) =>
    page.waitForFunction(
      (canvases) =>
        document.querySelectorAll("[data-testid=head-grid] canvas").length >= canvases &&
        !document.querySelector("[data-testid=computing]"),
      canvases,
      WAIT,
    );
  const heads = "[data-testid=heads]";
  const cell = `${heads} [role=gridcell]`;
  const bar = "[data-testid=computing] progress";
  const number = (at: number) => page.locator(`${heads} input[type=number]`).nth(at);
  await open(page, LARGE);
  await expect(page.getByTestId("sentence")).toBeVisible();
  await during("open", async () => {
    await until(bar, "value", /^0\.[1-9]/);
    await untilSettled(32);
  });
  await expect(head(page, 16)).toBeAttached();
  // How late the machine itself is.
  await during("idle", () => page.waitForTimeout(2000));

  const place = `head 1, query ${word(1033)}, key ${word(7)}`;
  await during("select", async () => {
    await number(0).fill("1033");
    await number(1).fill("7");
    await until(cell, "aria-label", new RegExp(`^${place}`));
  });
  await expectExplained(page, new RegExp(place));
  await during("causal mask", async () => {
    await page.getByTestId("mask-presets").locator("button", { hasText: "causal" }).click();
    await until(bar, "value", /./);
    await untilSettled(32);
  });
  await number(1).fill("1034");
  await until(cell, "aria-label", /0\.00/);
  for (const name of ["without", "difference", "all", "with"]) {
    await during(name, async () => {
      await page.locator(`[data-testid=compare] [value=${name}]`).check();
      if (name === "all") await page.waitForSelector("[data-testid=trio]", WAIT);
      if (name === "with") await untilSettled(32);
      if (name === "difference") await until(cell, "aria-label", /[-−]/);
    });
  }
  await during("zoom", async () => {
    await page.locator("[data-testid=head-grid] [role=grid]").first().focus();
    for (let i = 0; i < 16; i++) await page.keyboard.press("+");
    await page.waitForFunction(
      (cell) => (document.querySelector(cell)?.getBoundingClientRect().width ?? 0) > 30,
      cell,
      WAIT,
    );
  });
  await during("another stage", () => page.locator("[data-testid=strip] [value=scores]").check());
  const memory = await page.evaluate(() =>
    Math.round((performance as unknown as { memory: { usedJSHeapSize: number } }).memory.usedJSHeapSize / 2 ** 20),
  );
  console.log("longest beats in ms", beats, "times in ms", times, "heap in MB", memory);
  const { idle = 0, ...busy } = beats;
  // The goal, printed above, is 100 ms. A busy machine is late by itself, so what fails here is a page that froze.
  for (const [name, longest] of Object.entries(busy)) expect(longest, name).toBeLessThan(500 + idle);
});

test("a pass that is cancelled leaves the picture that was there, and undo brings back what it was for", async ({
  page,
}) => {
  await choose(page, "source", "PyTorch seed");
  await page.getByTestId("n-heads").fill("2");
  await page.getByTestId("scale").getByRole("radio", { name: "log" }).check();
  await rule(page, "causal").click();
  await page.getByTestId("n-heads").fill("16");
  await page.getByTestId("d-model").fill("256");
  await expect(head(page, 16)).toBeAttached();
  await expect(page.getByTestId("strip").locator("label").first()).toContainText("6 × 256");
  const before = await said(head(page, 1));

  await page.getByTestId("sentence").fill(LARGE.sentence);
  await expect(computing(page)).toBeVisible(WAIT);
  const cancel = page.getByRole("button", { name: "Cancel" });
  await cancel.focus();
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("sentence")).toHaveValue("the cat sat on the mat");
  await expect(page.getByTestId("notices")).toContainText("cancelled");
  await expect(computing(page)).toHaveCount(0);
  await expect(words(page)).toHaveCount(6);
  await expect(page.getByTestId("scale").getByRole("radio", { name: "log" })).toBeChecked();
  await expect(rule(page, "causal")).toHaveAttribute("aria-pressed", "true");
  expect(await said(head(page, 1))).toBe(before);
  await expectExplained(page, /query sat, key cat/);
  // All else goes on with the fresh engine.
  await page.getByTestId("sentence").fill("the cat sat");
  await expect(page.getByTestId("notices")).not.toContainText("cancelled");
  await expectExplained(page, /query sat, key cat/);
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(page.getByTestId("sentence")).toHaveValue("the cat sat on the mat");

  await page.getByRole("button", { name: "Undo" }).click();
  await expect(page.getByTestId("sentence")).toHaveValue(LARGE.sentence);
  await expect(words(page)).toHaveCount(N, WAIT);
  await expect(computing(page)).toHaveCount(0, WAIT);
  await expectExplained(page, /query c?a/);
});

test("a link that takes too long gives way to the start, and undo leads back to it", async ({ page }) => {
  await open(page, { ...LARGE, masks: [{ terms: [{ rule: "causal" }] }] });
  await page.getByRole("button", { name: "Cancel" }).click(WAIT);
  await expect(page.getByTestId("sentence")).toHaveValue("the cat sat on the mat");
  await expectExplained(page, /query sat, key cat/);
  await expect(page.getByTestId("notices")).toContainText("Undo");
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(page.getByTestId("sentence")).toHaveValue(LARGE.sentence);
  await expect(computing(page)).toBeVisible(WAIT);
  await page.getByRole("button", { name: "Cancel" }).click();
  await expectExplained(page, /query sat, key cat/);
});

test("in a worker, a call that is given up before it begins is not computed", async ({ page }) => {
  await page.goto(HARNESS);
  await page.waitForFunction(() => "attnscope" in globalThis);
  const found = await page.evaluate(async () => {
    const engine = await attnscope.createEngine();
    const generator = engine.torchGenerator(0);
    const x = await generator.randn([900, 64]);
    const mha = engine.multiHeadAttention({ dModel: 64, nHeads: 16 });
    const small = engine.transformerBlock({ dModel: 64, nHeads: 4, dropout: 0.5, seed: 1 });
    const giving = new AbortController();
    const { signal } = giving;
    const [parts, dropped]: [number[], number[]] = [[], []];
    const reason = (promise: Promise<unknown>) => promise.then(String, (error) => error === signal.reason);
    const first = mha.forward(x, { trace: true, signal, onProgress: (part) => parts.push(part) });
    // Had it drawn, the next numbers would be others.
    const options = { training: true, generator, signal, onProgress: (part: number) => dropped.push(part) };
    const second = small.forward(x, options);
    const drawn = generator.randn([2]);
    await new Promise<void>((resolve) => {
      const timer = setInterval(() => {
        if (parts.length < 2) return;
        clearInterval(timer);
        resolve();
      });
    });
    giving.abort();
    const reasons = [await reason(first), await reason(second)];
    const heard = parts.length;
    const next = [...(await drawn).data];
    const again = engine.torchGenerator(0);
    await again.randn([900, 64]);
    const expected = [...(await again.randn([2])).data];
    const late = await reason(mha.forward(x, { signal }));
    const output = (await mha.forward(x)).output.shape;
    engine.destroy();
    return {
      reasons,
      parts: parts.slice(0, heard),
      isQuiet: parts.length === heard,
      dropped,
      next,
      expected,
      late,
      output,
    };
  });
  expect(found.reasons).toEqual([true, true]);
  expect(found.parts).toEqual([...found.parts].sort((a, b) => a - b));
  expect(found.parts.every((part) => part > 0 && part < 1)).toBe(true);
  expect(found.isQuiet).toBe(true);
  expect(found.dropped).toEqual([]);
  expect(found.next).toEqual(found.expected);
  expect(found.late).toBe(true);
  expect(found.output).toEqual([900, 64]);
});
