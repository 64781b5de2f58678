import { expect, type Page } from "@playwright/test";
import { choose, expectAccessible, head, said, test } from "./bench.ts";

const grid = (page: Page) => page.getByTestId("number-grid");
const cell = (page: Page, row: number, column: number) =>
  grid(page).locator(`[data-row="${row}"][data-column="${column}"]`);
const value = (page: Page, stage: string) =>
  page.locator(`[data-testid=inspector] li[data-stage=${stage}] [data-value]`);

async function own(page: Page) {
  await choose(page, "source", "Own numbers");
  await expect(grid(page)).toBeVisible();
}

/** Pastes as a spreadsheet does, at a cell. */
async function paste(page: Page, row: number, column: number, content: string) {
  await cell(page, row, column).click();
  await grid(page).evaluate((element, text) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    element.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, content);
}

async function type(page: Page, row: number, column: number, typed: string) {
  await cell(page, row, column).click();
  await page.keyboard.type(typed);
  await page.keyboard.press("Enter");
}

/** One head of width 4 over words that are one-hot: scores compare the words. */
async function oneHot(page: Page) {
  await page.getByTestId("sentence").fill("a b a");
  await choose(page, "source", "PyTorch seed");
  await page.getByTestId("n-heads").fill("1");
  await page.getByTestId("d-model").fill("4");
  await own(page);
  await choose(page, "origin", "one-hot");
  for (const matrix of ["W_Q", "W_K", "W_V", "W_O"]) {
    await choose(page, "matrix", matrix);
    await choose(page, "origin", "identity");
  }
  await page.locator("[data-testid=strip] [value=scores]").check();
}

test("own numbers are at first those in use", async ({ page }) => {
  const before = await said(head(page, 1));
  await own(page);
  await expect(page.getByTestId("d-model")).toHaveValue("13");
  await expect(page.getByTestId("d-k")).toHaveValue("8");
  expect(await said(head(page, 1))).toBe(before);
  await choose(page, "source", "PyTorch seed");
  await page.getByTestId("seed").fill("7");
  await expect(page.getByTestId("program")).toHaveValue(/manual_seed\(7\)/);
});

test("a number that is typed is computed with, and undone", async ({ page }) => {
  await oneHot(page);
  await page.getByRole("grid", { name: /^scores/ }).focus();
  await page.keyboard.press("Control+Home");
  await expect(value(page, "scores")).toHaveAttribute("data-value", "1");
  await choose(page, "matrix", "W_Q");
  await type(page, 0, 0, "-2.5");
  await expect(value(page, "scores")).toHaveAttribute("data-value", "-2.5");
  await expect(page.getByTestId("origin").getByRole("radio", { name: "typed" })).toBeChecked();
  // The bias stands behind the last column.
  await type(page, 0, 4, "0.5");
  await expect(value(page, "scores")).toHaveAttribute("data-value", "-2");
  await expect(page.getByTestId("program")).toHaveValue(/query\.bias\.copy_\(torch\.tensor\(\[0\.5, 0, 0, 0\]\)\)/);
  await grid(page).focus();
  await page.keyboard.press("Control+z");
  await expect(value(page, "scores")).toHaveAttribute("data-value", "-2.5");
  await page.keyboard.press("Control+z");
  await expect(value(page, "scores")).toHaveAttribute("data-value", "1");
  await page.keyboard.press("Control+Shift+Z");
  await expect(value(page, "scores")).toHaveAttribute("data-value", "-2.5");
});

test("what is no number is told, kept and changes nothing", async ({ page }) => {
  await oneHot(page);
  await choose(page, "matrix", "W_K");
  await type(page, 0, 0, "3");
  await paste(page, 0, 0, "");
  await expect(cell(page, 0, 0)).toHaveText("3");
  await paste(page, 0, 0, "1\t2\t3\t4\t5\n6\t7\t8\t9\t10\n11\t12\t13\t14\tabc\n");
  await expect(page.getByTestId("grid-problem")).toHaveText("Row 3, column 5: “abc” is not a number. 0 stays in use.");
  await expect(cell(page, 2, 4)).toHaveText("abc");
  await expect(cell(page, 2, 4)).toHaveAttribute("aria-invalid", "true");
  await expect(cell(page, 2, 3)).toHaveText("14");
  await page.waitForTimeout(400);
  await page.reload();
  await choose(page, "matrix", "W_K");
  await expect(cell(page, 2, 4)).toHaveText("abc");
  await type(page, 2, 4, "1e-3");
  await expect(cell(page, 2, 4)).toHaveText("0.001");
  await expect(page.getByTestId("grid-problem")).toHaveCount(0);
  await paste(page, 3, 4, "1\t2\n3\t4");
  await expect(page.getByRole("alert")).toHaveText("3 pasted cells lie outside the grid and were left out.");
  await expect(cell(page, 3, 4)).toHaveText("1");
});

test("digits that no float32 can hold are told and kept", async ({ page }) => {
  await oneHot(page);
  await choose(page, "matrix", "W_K");
  await type(page, 0, 0, "1e400");
  await expect(page.getByTestId("grid-problem")).toHaveText(
    "Row 1, column 1: “1e400” is too large for float32. 1 stays in use.",
  );
  await expect(cell(page, 0, 0)).toHaveText("1e400");
  await expect(cell(page, 0, 0)).toHaveAttribute("aria-invalid", "true");
});

test("numbers are pasted as spreadsheets with decimal commas, and as programs, write them", async ({ page }) => {
  await oneHot(page);
  await choose(page, "matrix", "W_K");
  await paste(page, 0, 0, "0,5;0,25\r\n-1,5;2\r\n");
  await expect(cell(page, 0, 0)).toHaveText("0.5");
  await expect(cell(page, 1, 0)).toHaveText("-1.5");
  await paste(page, 2, 0, "[[7.5, 8], [9, 1e-3]]");
  await expect(cell(page, 2, 1)).toHaveText("8");
  await expect(cell(page, 3, 1)).toHaveText("0.001");
  await expect(page.getByTestId("grid-problem")).toHaveCount(0);
});

test("a number of X, or a head that is switched off, asks for a pass and nothing before it", async ({ page }) => {
  await oneHot(page);
  await choose(page, "matrix", "X");
  await page.getByTestId("n-heads").fill("2");
  await expect(page.getByTestId("head-grid").getByRole("grid")).toHaveCount(2);
  await page.evaluate(() => {
    const asked: string[] = [];
    const send = Worker.prototype.postMessage as (message: { request?: { op: string } }, ...rest: unknown[]) => void;
    Worker.prototype.postMessage = function (...[message, ...rest]: Parameters<typeof send>) {
      if (message.request) asked.push(message.request.op);
      send.call(this, message, ...rest);
    };
    Object.assign(globalThis, { asked });
  });
  const asked = () => page.evaluate(() => (globalThis as unknown as { asked: string[] }).asked.splice(0));
  const OTHERS = ["attention", "stateDict", "loadStateDict"];
  const input = page.locator("[data-testid=inspector] li[data-stage=input] [data-value]");

  await type(page, 0, 0, "2.5");
  await page.locator("[data-testid=strip] [value=input]").check();
  await page.getByRole("grid", { name: /^input/ }).focus();
  await page.keyboard.press("Control+Home");
  await expect(input).toHaveAttribute("data-value", "2.5");
  const ofNumber = await asked();
  expect(ofNumber).toContain("forward");
  expect(ofNumber.filter((op) => OTHERS.includes(op))).toEqual([]);

  await page.getByTestId("heads-played").getByRole("button", { name: "head 1 takes part", exact: true }).click();
  await expect.poll(asked).toContain("forward");
  // A weight is another model.
  await choose(page, "matrix", "W_Q");
  await type(page, 0, 0, "2.5");
  await expect.poll(asked).toContain("loadStateDict");
});

test("the grid is worked with the keyboard", async ({ page }) => {
  await oneHot(page);
  await choose(page, "matrix", "X");
  await grid(page).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await expect(cell(page, 1, 1)).toHaveAttribute("aria-selected", "true");
  await page.keyboard.press("Enter");
  await expect(grid(page).getByRole("textbox")).toHaveValue("1");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.type("2");
  await page.keyboard.press("Escape");
  await expect(cell(page, 1, 1)).toHaveText("1");
  await page.keyboard.press("Delete");
  await expect(cell(page, 1, 1)).toHaveText("0");
  await page.keyboard.press("Control+End");
  await expect(cell(page, 2, 3)).toHaveAttribute("aria-selected", "true");
});

test("one-hot needs a column for each word, and says so", async ({ page }) => {
  await oneHot(page);
  await page.getByTestId("sentence").fill("a b c d e");
  await expect(page.getByTestId("problem")).toHaveText(
    "One-hot needs a d_model of at least 5: a column for each different token.",
  );
  await expect(page.getByTestId("tokens").getByRole("button")).toHaveCount(3);
  await page.getByTestId("d-model").fill("6");
  await expect(page.getByTestId("tokens").getByRole("button")).toHaveCount(5);
});

test("positions, zeros and head sizes", async ({ page }) => {
  await oneHot(page);
  await choose(page, "matrix", "X");
  await choose(page, "origin", "sinusoidal");
  await expect(cell(page, 1, 0)).toHaveText("0.84147096");
  await expect(cell(page, 1, 1)).toHaveText("0.5403023");
  await choose(page, "origin", "zeros");
  await expect(cell(page, 1, 1)).toHaveText("0");
  await page.getByTestId("d-k").fill("3");
  await page.getByTestId("d-v").fill("2");
  await expect(page.locator("[data-testid=strip] label", { hasText: "query" })).toContainText("1 × 3 × 3");
  await expect(page.locator("[data-testid=strip] label", { hasText: "value" })).toContainText("1 × 3 × 2");
  await page.getByTestId("d-k").fill("0");
  await expect(page.getByTestId("problem")).toHaveText("“0” is not from 1 to 1024.");
  // What was typed at one size is there again when that size is.
  await page.getByTestId("d-k").fill("4");
  await choose(page, "matrix", "W_Q");
  await type(page, 3, 3, "9");
  await page.getByTestId("d-k").fill("2");
  await expect(cell(page, 3, 3)).toHaveCount(0);
  await type(page, 0, 0, "8");
  await page.getByTestId("d-k").fill("4");
  await expect(cell(page, 3, 3)).toHaveText("9");
  await expect(cell(page, 0, 0)).toHaveText("8");
});

for (const scheme of ["light", "dark"] as const) {
  for (const language of ["English", "中文"]) {
    test(`axe finds nothing in the grid: ${scheme}, ${language}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      await page.getByRole("radio", { name: language }).check();
      await page.locator("[data-testid=source] [value=own]").check();
      await page.locator("[data-testid=matrix] [value=query]").check();
      await type(page, 1, 1, "abc");
      await expect(page.getByTestId("grid-problem")).toBeVisible();
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: 800 });
        await expectAccessible(page);
      }
    });
  }
}
