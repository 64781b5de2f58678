// Any token can be shown: in every look, in what is exported, and through a link.
import { expect, type Page } from "@playwright/test";
import { choose, link, rule, saved, test } from "./bench.ts";

interface Kind {
  readonly sentence: string;
  /** The token that stands second, as it is shown. */
  readonly shown: string;
  /** As it is written where there is little room; default as it is shown. */
  readonly short?: string;
  /** As a spreadsheet reads it; default the token itself. */
  readonly cell?: string;
}

const LONG = "w".repeat(200);

const KINDS: Record<string, Kind> = {
  Chinese: { sentence: "a 猫 b", shown: "猫" },
  Hebrew: { sentence: "a עברית b", shown: "עברית" },
  Arabic: { sentence: "a العربية b", shown: "العربية" },
  "emoji with joiners": { sentence: "a 👩‍👩‍👧 b", shown: "👩‍👩‍👧" },
  "combining marks": { sentence: "a e\u0301\u0323\u0302 b", shown: "e\u0301\u0323\u0302" },
  "spaces only": { sentence: "a   b", shown: "␣␣␣", cell: "   " },
  "a line end": { sentence: "a\nb", shown: "↵", cell: "\n" },
  "half of a character": { sentence: "a \ud83d b", shown: "U+D83D", cell: "U+D83D" },
  "a replacement mark": { sentence: "a \ufffd b", shown: "\ufffd" },
  "a part of </script>": { sentence: "a </script><b> b", shown: "<" },
  "200 letters": { sentence: `a ${LONG} b`, shown: LONG, short: `${"w".repeat(15)}…` },
};

/** The cells of a CSV, after RFC 4180. */
function table(csv: string): string[][] {
  const rows = [[""]];
  for (const [, quoted, plain, end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g)) {
    const row = rows.at(-1) as string[];
    row[row.length - 1] = quoted?.replaceAll('""', '"') ?? plain ?? "";
    if (end === ",") row.push("");
    else rows.push([""]);
  }
  return rows.filter((row) => row.length > 1);
}

/** The texts of a picture, which must be XML that runs nothing. */
function textsOf(page: Page, svg: string): Promise<(string | null)[]> {
  return page.evaluate((svg) => {
    const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
    if (parsed.querySelector("parsererror, script")) throw new Error("no picture");
    return [...parsed.querySelectorAll("text")].map(({ textContent }) => textContent);
  }, svg);
}

async function expectShown(page: Page, { shown, short = shown, cell = shown }: Kind, at = 1) {
  await expect(page.getByTestId("tokens").getByRole("button").nth(at)).toHaveText(shown, { useInnerText: false });
  for (const look of ["lines", "bars", "matrix"]) {
    await choose(page, "look", look);
    const grid = page.getByTestId("heads").getByRole("grid").first();
    await expect(grid.getByRole("gridcell")).toHaveAttribute("aria-label", new RegExp(`query ${escaped(shown)}, key `));
    const texts = await textsOf(page, (await saved(page, "the picture as svg")).text);
    const isNamed = texts.some((text) => text === short || text === `query ${short}`);
    expect(isNamed, `${look}: ${texts}`).toBe(true);
    await expectInside(page);
  }
  const [first = [], ...lines] = table((await saved(page, "Save weights as csv")).text);
  expect(first[at + 2]).toBe(cell);
  expect(lines[at]?.[1]).toBe(cell);
  expect(lines.every((line) => line.length === first.length)).toBe(true);
}

const expectInside = async (page: Page) =>
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

for (const [name, kind] of Object.entries(KINDS)) {
  test(`a token that is ${name}`, async ({ page, browser }) => {
    await page.evaluate(
      (hash) => {
        location.hash = hash;
      },
      link({ attnscope: 1, sentence: kind.sentence, place: { query: 1, key: 1 } }),
    );
    await expectShown(page, kind);
    await rule(page, "causal").click();
    await choose(page, "compare", "difference");
    await expect(page.getByTestId("effect")).toBeVisible();
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 800 });
      await expectInside(page);
    }
    await choose(page, "compare", "with mask");
    // The link that the page itself makes of it.
    await page.waitForTimeout(400);
    const elsewhere = await (await browser.newContext()).newPage();
    await elsewhere.goto(page.url());
    await expectShown(elsewhere, kind);
    await elsewhere.context().close();
  });
}

const tokens = (page: Page) => page.getByTestId("tokens").getByRole("button");
const menu = async (page: Page, name: string) => {
  await page.getByTestId("tokens-menu").click();
  await page.getByRole("list", { name: "Change the tokens" }).getByRole("button", { name, exact: true }).click();
};

test("a token is dragged to another place, and the line and the selection follow", async ({ page }) => {
  const from = await tokens(page).nth(1).boundingBox();
  const to = await tokens(page).nth(5).boundingBox();
  if (!from || !to) throw new Error("no box");
  await page.mouse.move(from.x + 10, from.y + 8);
  await page.mouse.down();
  await page.mouse.move(from.x + 40, from.y + 8);
  await page.mouse.move(to.x + to.width - 2, to.y + 8, { steps: 5 });
  await page.mouse.up();
  await expect(page.getByTestId("sentence")).toHaveValue("the sat on the mat cat");
  await expect(tokens(page)).toHaveText(["the", "sat", "on", "the", "mat", "cat"]);
  await expect(tokens(page).nth(5)).toHaveAttribute("aria-pressed", "true");
  await expect(tokens(page).nth(5)).toBeFocused();
  await page.getByTestId("toolbar").getByRole("button", { name: "Undo" }).click();
  await expect(page.getByTestId("sentence")).toHaveValue("the cat sat on the mat");
});

test("a token is dragged straight down to another line, and Escape lets it go where it was", async ({ page }) => {
  await page.setViewportSize({ width: 360, height: 900 });
  const line = Array.from({ length: 12 }, (_, i) => `token${i}`);
  await page.getByTestId("sentence").fill(line.join(" "));
  await expect(tokens(page)).toHaveCount(12);
  const from = await tokens(page).nth(1).boundingBox();
  const below = await tokens(page).nth(7).boundingBox();
  if (!from || !below) throw new Error("no box");
  const [x, y] = [from.x + from.width / 2, from.y + 8];
  for (const isLetGo of [true, false]) {
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x, below.y + 8, { steps: 5 });
    await expect(page.getByTestId("tokens").locator(".lifted")).toHaveCount(1);
    if (isLetGo) {
      await page.keyboard.press("Escape");
      await expect(page.getByTestId("tokens").locator(".lifted")).toHaveCount(0);
    }
    await page.mouse.up();
    if (isLetGo) await expect(page.getByTestId("sentence")).toHaveValue(line.join(" "));
    else await expect(page.getByTestId("sentence")).not.toHaveValue(line.join(" "));
  }
  const after = (await page.getByTestId("sentence").inputValue()).split(" ");
  expect(after.indexOf("token1")).toBeGreaterThan(4);
});

test("what cannot stand so is told", async ({ page }) => {
  await page.getByTestId("sentence").fill("a   b");
  await expect(tokens(page)).toHaveCount(3);
  await tokens(page).nth(1).click();
  await menu(page, "Repeat it");
  await expect(page.getByRole("alert")).toHaveText(/cannot stand side by side/);
  await menu(page, "Remove it");
  await expect(tokens(page)).toHaveText(["a", "b"]);
  await expect(page.getByRole("alert")).toHaveCount(0);
  await tokens(page).nth(0).focus();
  await page.keyboard.press("Delete");
  await expect(tokens(page)).toHaveCount(1);
  await page.keyboard.press("Delete");
  await expect(page.getByRole("alert")).toHaveText(/A line needs at least one token/);
  await page.getByTestId("sentence").fill("w".repeat(150).concat(" "));
  await page.getByTestId("sentence").fill(Array.from({ length: 80 }, () => "w".repeat(150)).join(" "));
  await expect(tokens(page)).toHaveCount(80);
  await menu(page, "Repeat the whole line");
  await expect(page.getByRole("alert")).toHaveText("The line would be longer than 20,000 characters.");
});

test("tokens are moved, repeated and removed by keyboard and from the menu", async ({ page }) => {
  await tokens(page).nth(0).focus();
  await page.keyboard.press("Shift+ArrowRight");
  await expect(page.getByTestId("sentence")).toHaveValue("cat the sat on the mat");
  await expect(tokens(page).nth(1)).toBeFocused();
  await page.keyboard.press("Delete");
  await expect(page.getByTestId("sentence")).toHaveValue("cat sat on the mat");
  await menu(page, "Repeat it");
  await expect(page.getByTestId("sentence")).toHaveValue("cat sat sat on the mat");
  await menu(page, "Add [CLS]");
  await menu(page, "Add [SEP]");
  await expect(tokens(page)).toHaveText(["[CLS]", "cat", "sat", "sat", "on", "the", "mat", "[SEP]"]);
  await expect(tokens(page).nth(7)).toHaveAttribute("aria-pressed", "true");
  await menu(page, "Repeat the whole line");
  await expect(tokens(page)).toHaveCount(16);
  await menu(page, "Move the chosen token left");
  await expect(tokens(page).nth(6)).toHaveText("[SEP]");
});

test("numbers that were typed for a token go with it", async ({ page }) => {
  await page.getByTestId("sentence").fill("a b c");
  await choose(page, "source", "Own numbers");
  const cell = (row: number) => page.getByTestId("number-grid").locator(`[data-row="${row}"][data-column="0"]`);
  await cell(0).click();
  await page.keyboard.type("7");
  await page.keyboard.press("Enter");
  await expect(cell(0)).toHaveText("7");
  await tokens(page).nth(0).focus();
  await page.keyboard.press("Shift+ArrowRight");
  await expect(tokens(page)).toHaveText(["b", "a", "c"]);
  await expect(cell(1)).toHaveText("7");
  await expect(cell(0)).toHaveText("0");
  await menu(page, "Repeat it");
  await expect(cell(2)).toHaveText("7");
  await menu(page, "Add [CLS]");
  await expect(cell(0)).toHaveText("0");
  await expect(cell(2)).toHaveText("7");
});
