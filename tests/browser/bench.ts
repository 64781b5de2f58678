import { readFile } from "node:fs/promises";
import { deflateRawSync } from "node:zlib";
import { test as base, expect, type Locator, type Page } from "@playwright/test";
import axe from "axe-core";
import { packed } from "../../www/src/packed.ts";

/** A test of the bench; what the console complains of fails it. */
export const test = base.extend({
  page: async ({ page }, use) => {
    const errors: string[] = [];
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) errors.push(message.text());
    });
    page.on("pageerror", (error) => errors.push(error.message));
    await page.goto("/");
    await expect(page.getByTestId("head-grid")).toBeVisible();
    await use(page);
    expect(errors).toEqual([]);
  },
});

export const choose = (page: Page, testid: string, name: string) =>
  page.getByTestId(testid).getByRole("radio", { name, exact: true }).check();
export const rule = (page: Page, name: string) =>
  page.getByTestId("mask-presets").getByRole("button", { name, exact: true });
export const head = (page: Page, number: number) => page.getByRole("grid", { name: new RegExp(`^head ${number}, `) });
export const said = (grid: Locator) => grid.getByRole("gridcell").getAttribute("aria-label");
export const maskGrid = (page: Page) => page.getByTestId("mask-editor").getByRole("grid");

/** What stands behind the # of an address that opens this state. */
export const link = (content: unknown) =>
  deflateRawSync(typeof content === "string" ? content : JSON.stringify(content, packed)).toString("base64url");

/** Opens a state as a fresh visit to its link does. */
export async function visit(page: Page, content: unknown): Promise<void> {
  await page.goto("about:blank");
  await page.goto(`/#${link(content)}`);
  await expect(page.getByTestId("head-grid")).toBeVisible();
}

/** What a button of the exports saves. */
export async function saved(page: Page, name: string): Promise<{ name: string; bytes: Uint8Array; text: string }> {
  const saving = page.waitForEvent("download");
  await page.getByTestId("export").getByRole("button", { name, exact: true }).click();
  const file = await saving;
  const bytes = new Uint8Array(await readFile(await file.path()));
  return { name: file.suggestedFilename(), bytes, text: new TextDecoder().decode(bytes) };
}

/** Where a cell of a grid is on the page. */
export async function centre(grid: Locator, tokens: number, row: number, column: number) {
  const box = await grid.boundingBox();
  if (!box) throw new Error("the grid has no box");
  return {
    x: box.x + ((column + 0.5) * box.width) / tokens,
    y: box.y + ((row + 0.5) * box.height) / tokens,
  };
}

/** The rules of WCAG 2.2 too, which axe by itself leaves out. */
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** Fails where axe finds anything, or where the page is wider than its window. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  const violations = await page.evaluate(async (runOnly) => {
    const { axe } = window as unknown as {
      axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    const { violations } = await axe.run({ runOnly });
    return violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => html) }));
  }, RULES);
  expect(violations).toEqual([]);
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
}
