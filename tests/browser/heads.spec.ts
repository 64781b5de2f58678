import { expect, type Page } from "@playwright/test";
import { choose, head, said, test, visit } from "./bench.ts";

const captions = (page: Page) => page.getByTestId("head-grid").locator("figcaption");
const played = (page: Page, name: string) =>
  page.getByTestId("heads-played").getByRole("button", { name, exact: true });
const value = (page: Page, stage: string) =>
  page.locator(`[data-testid=inspector] li[data-stage=${stage}] [data-value]`);

test("each head carries its label and the score it rests on", async ({ page }) => {
  await expect(captions(page)).toHaveText([
    /head 1\s*previous token 0\.94/,
    /head 2\s*first token 0\.95/,
    /head 3\s*itself 0\.76/,
    /head 4\s*even 1\.00/,
  ]);
  await choose(page, "source", "PyTorch seed");
  await expect(captions(page).first()).toHaveText(/head 1\s*(even \d\.\d\d|mixed)/);
});

test("a head that is off gives nothing to the output", async ({ page }) => {
  await page.locator("[data-testid=strip] [value=context]").check();
  await head(page, 2).focus();
  await page.keyboard.press("Home");
  await expect(value(page, "context")).not.toHaveAttribute("data-value", "0");
  await played(page, "head 2 takes part").click();
  await expect(value(page, "context")).toHaveAttribute("data-value", "0");
  await page.locator("[data-testid=strip] [value=weights]").check();
  await expect(captions(page).nth(1)).toContainText("off");

  await head(page, 3).focus();
  await played(page, "only 3").click();
  await expect(played(page, "head 1 takes part")).toHaveAttribute("aria-pressed", "false");
  await expect(played(page, "head 3 takes part")).toHaveAttribute("aria-pressed", "true");
  // From one alone to another, what was on before is remembered.
  await head(page, 1).focus();
  await played(page, "only 1").click();
  await played(page, "only 1").click();
  await expect(played(page, "head 1 takes part")).toHaveAttribute("aria-pressed", "true");
  await expect(played(page, "head 2 takes part")).toHaveAttribute("aria-pressed", "false");
  await played(page, "head 2 takes part").click();
  await expect(page.getByTestId("heads-played").locator("[aria-label][aria-pressed=true]")).toHaveCount(4);
});

test("heads are averaged", async ({ page }) => {
  const weights: number[] = [];
  for (const number of [1, 2, 3, 4]) {
    await head(page, number).focus();
    await page.keyboard.press("Control+Home");
    await expect(page.getByTestId("inspector-place")).toContainText(`head ${number}, query the, key the`);
    await expect(async () => {
      const spoken = (await said(head(page, number)))?.split(", ").at(-1);
      expect(Number(await value(page, "weights").getAttribute("data-value")).toFixed(2)).toBe(spoken);
    }).toPass();
    weights.push(Number(await value(page, "weights").getAttribute("data-value")));
  }
  await played(page, "average").click();
  const grid = page.getByTestId("head-grid").getByRole("grid");
  await expect(grid).toHaveCount(1);
  await expect(grid).toHaveAttribute("aria-label", /^mean of heads 1, 2, 3, 4, weights/);
  const mean = weights.reduce((a, b) => a + b) / 4;
  await expect(grid.getByRole("gridcell")).toHaveAttribute("aria-label", new RegExp(`${mean.toFixed(2)}$`));
  // A cell of the mean is chosen in the head that was selected.
  await grid.focus();
  await page.keyboard.press("ArrowRight");
  await expect(page.getByTestId("inspector-place")).toHaveText("mean of heads 1, 2, 3, 4, query the, key cat");
  await played(page, "average").click();
  await expect(page.getByTestId("inspector-place")).toHaveText("head 4, query the, key cat");
});

test("heads are sorted by entropy, and stay the heads they are", async ({ page }) => {
  await played(page, "by entropy").click();
  await expect(captions(page)).toHaveText([
    /head 2.*entropy/,
    /head 1.*entropy/,
    /head 3.*entropy/,
    /head 4.*entropy 1\.79/,
  ]);
  const label = await said(head(page, 2));
  await head(page, 2).focus();
  await page.keyboard.press("Control+Home");
  await expect(page.getByTestId("inspector-place")).toHaveText("head 2, query the, key the");
  expect(label).toMatch(/^head 2/);
  await page.keyboard.press("Control+z");
  await expect(captions(page).first()).toContainText("head 1");
});

test("a picture of too many weights to be analysed says so, and which head is off", async ({ page }) => {
  await visit(page, {
    attnscope: 1,
    sentence: "a ".repeat(1030),
    numbers: { source: "torch", nHeads: "16", dModel: "32" },
    heads: { off: [1] },
  });
  await expect(page.getByTestId("story")).toHaveText(/^These are too many weights/, { timeout: 30_000 });
  await expect(captions(page).first()).toHaveText("head 1");
  await expect(captions(page).nth(1)).toHaveText(/^head 2\s*off$/);
  await expect(played(page, "average")).toBeVisible();
  await expect(played(page, "by entropy")).toHaveCount(0);
});
