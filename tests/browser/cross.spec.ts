import { expect } from "@playwright/test";
import { centre, choose, expectAccessible, head, maskGrid, rule, test } from "./bench.ts";

test.beforeEach(async ({ page }) => {
  await page.getByRole("button", { name: "keys from another line" }).click();
  await page.getByTestId("sentence").fill("a b c");
  await page.getByTestId("key-sentence").fill("c d b a e");
  await expect(page.getByTestId("key-tokens").getByRole("button")).toHaveText(["c", "d", "b", "a", "e"]);
});

test("queries and keys have lines of their own", async ({ page }) => {
  const same = head(page, 3);
  await expect(same).toHaveAttribute("aria-rowcount", "3");
  await expect(same).toHaveAttribute("aria-colcount", "5");
  await same.focus();
  await page.keyboard.press("Control+End");
  await expect(same.getByRole("gridcell")).toHaveAttribute("aria-label", /^head 3, query c, key e, /);
  // Head 3 looks for the same word, which the other line has first.
  await page.keyboard.press("Home");
  await expect(same.getByRole("gridcell")).toHaveAttribute("aria-label", /^head 3, query c, key c, 0\.[89]/);
  await page.locator("[data-testid=strip] [value=key]").check();
  await expect(page.getByTestId("inspector-place")).toHaveText(/head 3, key c, feature/);
  await page.locator("[data-testid=strip] [value=key_input]").check();
  await expect(page.locator("[data-testid=strip] label", { hasText: "key input" })).toContainText("5 × ");

  await page.getByRole("button", { name: "keys from another line" }).click();
  await expect(page.locator("[data-testid=strip] [value=weights]")).toBeChecked();
  await expect(head(page, 3)).toHaveAttribute("aria-colcount", "3");
  await page.getByTestId("toolbar").getByRole("button", { name: "Undo" }).click();
  await expect(page.getByTestId("key-sentence")).toHaveValue("c d b a e");
});

test("masks have a row for each query and a column for each key", async ({ page }) => {
  await rule(page, "padding").click();
  await page.getByTestId("padded").fill("3");
  const grid = maskGrid(page);
  await expect(grid).toHaveAttribute("aria-rowcount", "3");
  await expect(grid).toHaveAttribute("aria-colcount", "5");
  await grid.focus();
  await page.keyboard.press("Control+End");
  await expect(grid.getByRole("gridcell")).toHaveAttribute("aria-label", "query c, key e, hidden");
  const box = await grid.boundingBox();
  const at = await centre(grid, 3, 0, 0);
  await page.mouse.click((box?.x ?? 0) + (box?.width ?? 0) * 0.9, at.y);
  await expect(page.getByTestId("mask-code")).toHaveValue(/\[\[1, 1, 0, 0, 1\], \[1, 1, 0, 0, 0\]/);
  for (const name of ["documents", "global", "prefix", "window", "dilated", "ALiBi"]) {
    await rule(page, name).click();
    await expect(page.getByRole("alert")).toHaveCount(0);
  }
  await page.getByTestId("sentence").fill("a b c d e f g");
  await expect(grid).toHaveAttribute("aria-rowcount", "7");
  await expect(page.getByRole("alert")).toHaveCount(0);
  await choose(page, "compare", "difference");
  await expect(page.getByTestId("effect")).toBeVisible();
});

test("the seed draws the other line after the first", async ({ page }) => {
  await choose(page, "source", "PyTorch seed");
  await expect(page.getByTestId("program")).toHaveValue(
    /n_q, n_k, d_model, n_heads = 3, 5, 16, 4\n[\s\S]*x = torch\.rand\(n_q, d_model\)\nmemory = torch\.rand\(n_k, d_model\)/,
  );
  await choose(page, "source", "Own numbers");
  await choose(page, "matrix", "X_K");
  await expect(page.getByTestId("number-grid")).toHaveAttribute("aria-rowcount", "6");
  await page.reload();
  await expect(page.getByTestId("key-sentence")).toHaveValue("c d b a e");
  await expect(page.getByTestId("key-tokens").getByRole("button")).toHaveCount(5);
  await page.getByTestId("key-sentence").fill(" ");
  await expect(page.getByTestId("key-tokens").getByRole("button")).toHaveCount(5);
  await expect(page.getByRole("alert")).toContainText("Type at least one word");
});

test("axe finds nothing with two lines", async ({ page }) => {
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 800 });
    await expectAccessible(page);
  }
});
