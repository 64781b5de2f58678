import { readFile } from "node:fs/promises";
import type { Page } from "@playwright/test";
import { test as base } from "./bench.ts";
import { mainPath } from "./main-path.ts";
import { FIREFOX_DOWNLOADS } from "./ports.ts";
import { savedIn, type User } from "./user.ts";

const user = (page: Page, browserName: string): User => ({
  async open(address) {
    // Firefox complains of requests that are cut short, and a change of the hash alone would stay on the page.
    await page.waitForLoadState("networkidle");
    await page.goto("about:blank");
    await page.goto(address);
  },
  click: (css, text) =>
    (text === undefined ? page.locator(css) : page.locator(css).getByText(text, { exact: true })).first().click(),
  async press(...keys) {
    for (const key of keys) await page.keyboard.press(key);
  },
  async drag([from, ...rest]) {
    if (!from) return;
    await page.mouse.move(from.x, from.y);
    await page.mouse.down();
    for (const { x, y } of rest) await page.mouse.move(x, y, { steps: 4 });
    await page.mouse.up();
  },
  resize: (width, height) => page.setViewportSize({ width, height }),
  evaluate: (run, argument) => page.evaluate(run as never, argument),
  async saved(css) {
    if (browserName === "firefox") {
      await page.locator(css).click();
      return savedIn(FIREFOX_DOWNLOADS);
    }
    const saving = page.waitForEvent("download");
    await page.locator(css).click();
    const file = await saving;
    return { name: file.suggestedFilename(), text: await readFile(await file.path(), "utf8") };
  },
});

const test = base.extend<{ user: User }>({
  user: ({ page, browserName }, use) => use(user(page, browserName)),
});

mainPath(test);
