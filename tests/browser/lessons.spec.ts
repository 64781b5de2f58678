import { expect, type Locator, type Page } from "@playwright/test";
import { centre, choose, expectAccessible, head, maskGrid, rule, test } from "./bench.ts";

const panel = (page: Page) => page.getByTestId("lesson");
const done = (page: Page) => panel(page).locator("li.done");
const openStage = (page: Page, stage: string) => page.locator(`[data-testid=strip] [value=${stage}]`).check();
const pressed = (page: Page, name: string) =>
  page.getByTestId("heads-played").getByRole("button", { name, exact: true }).click();

async function enter(page: Page, title: string | RegExp) {
  await page.getByTestId("lessons").click();
  await page
    .getByRole("list", { name: /Lessons|课程/ })
    .getByRole("button", { name: title })
    .click();
  await expect(panel(page)).toBeVisible();
  await expect(done(page)).toHaveCount(0);
}

/** Clear of the lesson, which covers the top of a narrow page. */
const toMiddle = (grid: Locator) => grid.evaluate((element) => element.scrollIntoView({ block: "center" }));

async function select(page: Page, number: number, tokens: number, row: number, column: number) {
  await toMiddle(head(page, number));
  const { x, y } = await centre(head(page, number), tokens, row, column);
  await page.mouse.click(x, y);
}

async function hideRow(page: Page, tokens: number, row: number, from: number, to: number) {
  const grid = maskGrid(page);
  await toMiddle(grid);
  const [start, end] = [await centre(grid, tokens, row, from), await centre(grid, tokens, row, to)];
  await page.mouse.move(start.x, start.y);
  await page.mouse.down();
  await page.mouse.move(end.x, end.y, { steps: 6 });
  await page.mouse.up();
}

/** What the reader does for each step. */
const LESSONS: Record<string, ((page: Page) => Promise<void>)[]> = {
  "What a head is": [
    (page) => select(page, 1, 6, 2, 1),
    (page) => select(page, 1, 6, 2, 4),
    (page) => openStage(page, "scores"),
    (page) => openStage(page, "context"),
  ],
  "Why several heads": [
    (page) => select(page, 3, 6, 4, 0),
    (page) => pressed(page, "average"),
    async (page) => {
      await pressed(page, "average");
      await expect(done(page)).toHaveCount(2);
      await pressed(page, "head 4 takes part");
    },
    (page) => openStage(page, "concat"),
  ],
  "The causal mask": [
    (page) => select(page, 3, 6, 0, 4),
    (page) => rule(page, "causal").click(),
    (page) => openStage(page, "masked"),
    async (page) => {
      await openStage(page, "weights");
      await expect(done(page)).toHaveCount(3);
      await choose(page, "compare", "difference");
    },
  ],
  "Padding, and who still leaks": [
    (page) => rule(page, "padding").click(),
    (page) => select(page, 4, 5, 3, 0),
    (page) => openStage(page, "output"),
    async (page) => {
      await openStage(page, "weights");
      await expect(done(page)).toHaveCount(3);
      await hideRow(page, 5, 3, 0, 2);
      await expect(page.getByTestId("story")).toContainText("may attend to nothing");
    },
  ],
  "−1e9, −∞ and the empty row": [
    (page) => select(page, 1, 4, 0, 2),
    (page) => choose(page, "fill", "−∞"),
    (page) => openStage(page, "output"),
    (page) => choose(page, "empty-row", "0"),
  ],
  "Why √d_k": [
    (page) => openStage(page, "scores"),
    (page) => page.getByTestId("d-model").fill("256"),
    (page) => openStage(page, "scaled"),
    (page) => openStage(page, "weights"),
  ],
};

for (const width of [1280, 360])
  test(`every step completes when it is done, and none before, ${width} px wide`, async ({ page }) => {
    await page.setViewportSize({ width, height: 800 });
    for (const [title, steps] of Object.entries(LESSONS)) {
      await enter(page, title);
      await expect(panel(page).getByRole("heading")).toBeFocused();
      await expect(panel(page).getByRole("listitem")).toHaveCount(steps.length);
      for (const [i, doIt] of steps.entries()) {
        await expect(done(page)).toHaveCount(i);
        await expect(panel(page).locator("[aria-current=step]")).toHaveCount(1);
        await doIt(page);
        await expect(done(page)).toHaveCount(i + 1);
        await expect(panel(page).getByRole("status")).not.toBeEmpty();
      }
      await expect(panel(page).getByRole("status")).toContainText("The lesson is done.");
    }
  });

test("what the sentences say of numbers is so", async ({ page }) => {
  await enter(page, "Why √d_k");
  await openStage(page, "scores");
  await page.getByTestId("d-model").fill("256");
  await openStage(page, "scaled");
  await openStage(page, "weights");
  await expect(done(page)).toHaveCount(4);
  const said = (await done(page).last().textContent()) ?? "";
  const [, weight, unscaled] =
    /largest weight is ([\d.]+)\. Without the division it would be ([\d.]+):/.exec(said) ?? [];
  expect(Number(unscaled)).toBeGreaterThan(Number(weight));

  await select(page, 1, 6, 1, 0);
  const weights: number[] = [];
  for (let key = 0; key < 6; key++) {
    const cell = head(page, 1).getByRole("gridcell");
    await expect(cell).toHaveAttribute("aria-colindex", String(key + 1));
    weights.push(Number((await cell.getAttribute("aria-label"))?.split(", ").at(-1)));
    await page.keyboard.press("ArrowRight");
  }
  expect(Math.max(...weights)).toBeCloseTo(Number(weight), 2);
});

test("leaving a lesson gives one's own work back, and so does undo", async ({ page }) => {
  const sentence = page.getByTestId("sentence");
  await sentence.fill("my own work");
  await rule(page, "causal").click();
  await openStage(page, "scores");
  const expectOwn = async () => {
    await expect(panel(page)).toHaveCount(0);
    await expect(sentence).toHaveValue("my own work");
    await expect(rule(page, "causal")).toHaveAttribute("aria-pressed", "true");
  };

  await enter(page, "The causal mask");
  await expect(sentence).toHaveValue("the cat sat on the mat");
  await page.getByRole("button", { name: "Undo" }).click();
  await expectOwn();
  await page.getByRole("button", { name: "Redo" }).click();
  await openStage(page, "weights");
  await select(page, 3, 6, 0, 4);
  await rule(page, "causal").click();
  await expect(done(page)).toHaveCount(2);

  // Undo takes the step back with what was done for it.
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(done(page)).toHaveCount(1);
  await rule(page, "causal").click();
  await expect(done(page)).toHaveCount(2);

  await page.getByRole("button", { name: "Next lesson" }).click();
  await expect(panel(page).getByRole("heading")).toContainText("Padding");
  await page.getByRole("button", { name: "Leave" }).click();
  await expectOwn();
  await expect(page.getByTestId("lessons")).toBeFocused();
});

test("a link holds the lesson and its step, and a reload keeps one's own work beside it", async ({ page, browser }) => {
  const sentence = page.getByTestId("sentence");
  await sentence.fill("my own work");
  await page.waitForTimeout(400);
  await enter(page, "−1e9, −∞ and the empty row");
  await select(page, 1, 4, 0, 2);
  await expect(done(page)).toHaveCount(1);
  await page.waitForTimeout(400);

  const elsewhere = await (await browser.newContext()).newPage();
  await elsewhere.goto(page.url());
  await expect(panel(elsewhere).getByRole("heading")).toContainText("empty row");
  await expect(done(elsewhere)).toHaveCount(1);
  await elsewhere.context().close();

  await page.reload();
  await expect(done(page)).toHaveCount(1);
  await page.getByRole("button", { name: "Leave" }).click();
  await expect(sentence).toHaveValue("my own work");

  await enter(page, "What a head is");
  await page.waitForTimeout(400);
  await page.goto("about:blank");
  await page.goto("/");
  await expect(panel(page)).toHaveCount(0);
  await expect(sentence).toHaveValue("my own work");
});

test("lessons by keyboard, and axe finds nothing", async ({ page }) => {
  await page.getByTestId("lessons").focus();
  await page.keyboard.press("Enter");
  await expectAccessible(page);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await expect(panel(page).getByRole("heading")).toHaveText(/Lesson 2 of 6\s+Why several heads/);
  await select(page, 3, 6, 4, 0);
  await expect(done(page)).toHaveCount(1);
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 800 });
    for (const language of ["中文", "English"]) {
      await page.getByRole("radio", { name: language }).check();
      for (const theme of [1, 2]) {
        await page.getByTestId("theme").getByRole("radio").nth(theme).check();
        await expectAccessible(page);
      }
    }
  }
});

test("a lesson that cannot be loaded says so, and comes when there is a network", async ({ browser }) => {
  const page = await browser.newPage({ serviceWorkers: "block" });
  const script = "**/assets/lessons-*.js";
  await page.route(script, (route) => route.abort());
  await page.goto("/");
  await expect(page.getByTestId("head-grid")).toBeVisible();
  const begin = async () => {
    await page.getByTestId("lessons").click();
    await page.getByRole("list", { name: "Lessons" }).getByRole("button", { name: "What a head is" }).click();
  };
  await begin();
  await expect(page.getByRole("alert")).toContainText("could not be loaded");
  await page.unroute(script);
  await begin();
  await expect(page.getByRole("alert")).toBeHidden();
  await expect(panel(page)).toBeVisible();
  await page.close();
});
