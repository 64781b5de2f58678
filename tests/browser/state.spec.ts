import { readFile } from "node:fs/promises";
import { deflateRawSync } from "node:zlib";
import { expect, type Page } from "@playwright/test";
import { centre, choose, head, link, maskGrid, rule, said, test, visit } from "./bench.ts";

/** The address once it holds what is on the page now. */
async function settled(page: Page): Promise<string> {
  await page.waitForTimeout(400);
  return page.url();
}

async function expectWork(page: Page) {
  await expect(page.getByTestId("sentence")).toHaveValue("我 saw </script> 👩‍👩‍👧");
  await expect(page.getByTestId("seed")).toHaveValue("7");
  await expect(page.getByTestId("n-heads")).toHaveValue("2");
  await expect(rule(page, "painted")).toHaveAttribute("aria-pressed", "true");
  await expect(page.locator("[data-testid=strip] [value=output]")).toBeChecked();
  await expect(page.getByTestId("fill").getByRole("radio", { name: "−∞" })).toBeChecked();
  await expect(page.getByTestId("inspector-place")).toContainText("feature");
}

/** Some of everything, with the numbers it gives. */
async function work(page: Page): Promise<string> {
  await page.getByTestId("sentence").fill("我 saw </script> 👩‍👩‍👧");
  await choose(page, "source", "PyTorch seed");
  await page.getByTestId("seed").fill("7");
  await page.getByTestId("n-heads").fill("2");
  await rule(page, "causal").click();
  await expect(head(page, 3)).toHaveCount(0);
  const grid = maskGrid(page);
  await grid.focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press(" ");
  await choose(page, "fill", "−∞");
  await page.locator("[data-testid=strip] [value=output]").check();
  await expectWork(page);
  const value = page.locator("[data-testid=inspector] li[data-stage=output] [data-value]");
  await expect(value).toBeVisible();
  return (await value.getAttribute("data-value")) ?? "";
}

const outputValue = (page: Page) => page.locator("[data-testid=inspector] li[data-stage=output] [data-value]");

test("a link reproduces the bench, and a reload loses nothing", async ({ page, browser }) => {
  const entries = await page.evaluate(() => history.length);
  const value = await work(page);
  const address = await settled(page);
  expect(await page.evaluate(() => history.length)).toBe(entries);

  const elsewhere = await (await browser.newContext()).newPage();
  await elsewhere.goto(address);
  await expectWork(elsewhere);
  await expect(outputValue(elsewhere)).toHaveAttribute("data-value", value);
  await elsewhere.context().close();

  await page.getByTestId("d-model").fill("32");
  await page.reload();
  await expect(page.getByTestId("d-model")).toHaveValue("32");
  await page.getByTestId("d-model").fill("16");
  await expectWork(page);
  await expect(outputValue(page)).toHaveAttribute("data-value", value);

  await page.goto("/");
  await expectWork(page);
});

test("what cannot be used is still there after a reload, with all that is right", async ({ page }) => {
  await page.getByTestId("sentence").fill("my own work");
  await choose(page, "source", "PyTorch seed");
  await settled(page);
  const typed = { "n-heads": "999", "d-model": "12345678901234567890123456789", "score-scale": "1e400" };
  for (const [field, text] of Object.entries(typed)) await page.getByTestId(field).fill(text);
  await page.waitForFunction(() => localStorage.getItem("attnscope.state")?.includes("1e400"));
  for (const how of ["reload", "link"]) {
    if (how === "reload") await page.reload();
    else
      await page.goto(
        `/?again#${link({ attnscope: 1, sentence: "my own work", numbers: { source: "torch", nHeads: "999" } })}`,
      );
    await expect(page.getByTestId("sentence")).toHaveValue("my own work");
    await expect(page.getByTestId("n-heads")).toHaveValue("999");
    await expect(page.getByTestId("n-heads")).toHaveAttribute("aria-invalid", "true");
    if (how === "reload") await expect(page.getByTestId("score-scale")).toHaveValue("1e400");
    await expect(page.getByTestId("notices")).not.toContainText("out of range");
  }
  await page.getByTestId("n-heads").fill("2");
  await expect(page.getByTestId("head-grid").locator("figcaption")).toHaveCount(2);
});

const REFUSED: Record<string, object> = {
  "no words": { sentence: "" },
  "no words for the keys": { keySentence: " " },
  "no number of heads": { numbers: { source: "torch", nHeads: "abc" } },
  "heads that do not divide the width": { numbers: { source: "torch", nHeads: "3", dModel: "16" } },
  "a seed that is none": { numbers: { source: "own", seed: "x" } },
  "a scale that is none": { numbers: { source: "torch", scale: "x" } },
  "no number of layers": { numbers: { source: "readable", model: "blocks", nLayers: "" } },
  "more words than one-hot has columns": {
    numbers: { source: "own", dModel: "4", own: { x: { origin: "one_hot" } } },
  },
  "more than a page may take": {
    sentence: "a ".repeat(4000),
    numbers: { source: "torch", nHeads: "256", dModel: "256" },
  },
  "a window that is none": {
    masks: [{ terms: [{ rule: "window", join: "and", isNegated: false }], numbers: { before: "abc" } }],
  },
};
for (const [what, part] of Object.entries(REFUSED)) {
  test(`a page that opens with ${what} has a picture all the same, and says what is wrong`, async ({ page }) => {
    await visit(page, { attnscope: 1, ...part });
    await expect(page.getByTestId("strip")).toBeVisible();
    await expect(page.locator("[data-testid=head-grid] figcaption").first()).toBeVisible();
    await expect(page.locator("[aria-invalid=true]").first()).toBeVisible();
    await expect(page.getByRole("alert").first()).toHaveText(/\S/);
    await expect(page.getByTestId("inspector").locator("[data-value]").first()).toBeVisible();
    await expect(page.getByTestId("status")).toContainText("ms");
  });
}

test("undo and redo for everything, typing as one step", async ({ page }) => {
  const toolbar = page.getByTestId("toolbar");
  const undo = toolbar.getByRole("button", { name: "Undo" });
  const redo = toolbar.getByRole("button", { name: "Redo" });
  await expect(undo).toBeDisabled();

  const sentence = page.getByTestId("sentence");
  await sentence.fill("");
  await sentence.pressSequentially("one two three");
  await rule(page, "causal").click();
  const [from, to] = [await centre(maskGrid(page), 3, 2, 0), await centre(maskGrid(page), 3, 2, 2)];
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move(to.x, to.y, { steps: 6 });
  await page.mouse.up();
  await expect(page.getByTestId("mask-code")).toHaveValue(/\[0, 0, 0\]/);
  await choose(page, "source", "PyTorch seed");
  await page.getByTestId("seed").fill("1234");
  await choose(page, "compare", "difference");

  const back = [
    () => expect(page.getByTestId("compare").getByRole("radio", { name: "with mask", exact: true })).toBeChecked(),
    () => expect(page.getByTestId("seed")).toHaveValue("42"),
    () => expect(page.getByTestId("seed")).toHaveCount(0),
    () => expect(rule(page, "causal")).toHaveAttribute("aria-pressed", "true"),
    () => expect(rule(page, "none")).toHaveAttribute("aria-pressed", "true"),
    () => expect(sentence).toHaveValue("the cat sat on the mat"),
  ];
  await maskGrid(page).focus();
  for (const check of back) {
    await page.keyboard.press("Control+z");
    await check();
  }
  await expect(undo).toBeDisabled();
  await page.keyboard.press("Control+Shift+Z");
  await expect(sentence).toHaveValue("one two three");
  for (let i = 0; i < 5; i++) await redo.click();
  await expect(page.getByTestId("seed")).toHaveValue("1234");
  await expect(page.getByTestId("mask-code")).toHaveValue(/\[0, 0, 0\]/);
  await expect(redo).toBeDisabled();

  // In a text field the keys are the field's own.
  await page.getByTestId("seed").focus();
  await page.keyboard.press("End");
  await page.keyboard.type("5");
  await page.keyboard.press("Control+z");
  await expect(page.getByTestId("seed")).toHaveValue("1234");
  await expect(page.getByTestId("compare").getByRole("radio", { name: "difference" })).toBeChecked();
});

test("what cannot be opened changes nothing", async ({ page }) => {
  await page.getByTestId("sentence").fill("my own work");
  const own = await settled(page);
  const before = await said(head(page, 1));
  const bomb = deflateRawSync(Buffer.alloc(64_000_000, " "), { level: 9 }).toString("base64url");
  const hostile: [string, RegExp][] = [
    ["%F0%9F", /damaged/],
    [link("not JSON"), /damaged/],
    [link("[]"), /damaged/],
    [Buffer.from("no compression").toString("base64url"), /damaged/],
    [bomb, /too large/],
    [link({ attnscope: 2 }), /newer/],
    [link({ attnscope: 1, sentence: ["<img src=x onerror=alert(1)>"] }), /sentence is out of range/],
    [link({ attnscope: 1, sentence: "a".repeat(30_000) }), /sentence is out of range/],
    [link({ attnscope: 1, numbers: { dModel: 1e12 } }), /numbers\.dModel is out of range/],
    [link({ attnscope: 1, masks: [{ terms: [{ rule: "constructor" }] }] }), /masks\[0\]\.terms\[0\]\.rule/],
    [link({ attnscope: 1, masks: [{ painted: { rows: 4096, columns: 4096, cells: ["AA"] } }] }), /masks\[0\]\.painted/],
    [link('{"attnscope":1,"__proto__":{"sentence":"x"}}'), /__proto__ is out of range/],
    [link({ attnscope: 1, edited: 1 }), /edited/],
    [link({ attnscope: 1, lesson: { name: "toString" } }), /lesson\.name/],
    [link({ attnscope: 1, place: { stage: "toString" } }), /place\.stage/],
  ];
  for (const [hash, message] of hostile) {
    await page.evaluate((to) => {
      location.hash = to;
    }, hash);
    await expect(page.getByTestId("notices")).toContainText(message);
    await expect(page.getByTestId("notices")).toContainText("Your own work is as it was.");
    await page.getByRole("button", { name: "Dismiss" }).click();
    await expect(page.getByTestId("sentence")).toHaveValue("my own work");
  }
  expect(await said(head(page, 1))).toBe(before);

  // The same where such a link opens the page.
  await page.goto("about:blank");
  await page.goto(`/#${link({ attnscope: 1, numbers: { nHeads: 9999 } })}`);
  await expect(page.getByTestId("notices")).toContainText("numbers.nHeads");
  await expect(page.getByTestId("sentence")).toHaveValue("my own work");
  await page.goto("about:blank");
  await page.goto(own);
  await expect(page.getByTestId("sentence")).toHaveValue("my own work");
});

test("a script in a link stays text, and undo leads back to one's own work", async ({ page }) => {
  await page.getByTestId("sentence").fill("my own work");
  await settled(page);
  await page.goto("about:blank");
  const script = "<script>document.title = 'x'</script> <img src=x onerror=alert(1)>";
  await page.goto(`/#${link({ attnscope: 1, sentence: script })}`);
  await expect(page.getByTestId("sentence")).toHaveValue(script);
  await expect(page.getByTestId("tokens").getByRole("button").first()).toHaveText("<");
  expect(await page.locator("main script, main img").count()).toBe(0);
  expect(await page.title()).toBe("attnscope");
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(page.getByTestId("sentence")).toHaveValue("my own work");
});

test("a state too large for a link is saved as a file", async ({ page }) => {
  await choose(page, "source", "PyTorch seed");
  await page.getByTestId("d-model").fill("512");
  await choose(page, "source", "Own numbers");
  const grid = page.getByTestId("number-grid");
  const cell = (row: number, column: number) => grid.locator(`[data-row="${row}"][data-column="${column}"]`);
  const drawn = await cell(1, 1).textContent();
  await cell(0, 0).click();
  await page.keyboard.type("0.125");
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("notices")).toContainText("too large for a link");
  expect(new URL(page.url()).hash).toBe("");
  await expect(page.getByRole("button", { name: "Copy link" })).toBeDisabled();
  const expectNumbers = async () => {
    await expect(cell(0, 0)).toHaveText("0.125");
    await expect(cell(1, 1)).toHaveText(drawn ?? "");
  };

  const saving = page.waitForEvent("download");
  await page.getByTestId("toolbar").getByRole("button", { name: "Save", exact: true }).click();
  const content = await readFile(await (await saving).path());

  await page.reload();
  await expectNumbers();
  await choose(page, "origin", "zeros");
  await expect(cell(1, 1)).toHaveText("0");
  await cell(0, 0).click();
  await page.keyboard.type("3");
  await page.keyboard.press("Enter");
  await expect(cell(1, 1)).toHaveText("0");
  await expect(page.getByTestId("notices")).not.toContainText("too large");
  const open = (text: string | Buffer) =>
    page
      .getByTestId("open-state")
      .setInputFiles({ name: "a.json", mimeType: "application/json", buffer: Buffer.from(text) });
  await open(content);
  await expectNumbers();
  await open('{"attnscope":1,"fill":"0"}');
  await expect(page.getByTestId("notices")).toContainText("fill is out of range");
  await expectNumbers();
});

test("a page that may not copy says so", async ({ page }) => {
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  await page.getByRole("button", { name: "Copy link" }).click();
  await expect(page.getByRole("button", { name: "Copying is not allowed" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Copy link" })).toBeVisible();
});

test("language and theme are kept", async ({ page }) => {
  await page.getByRole("radio", { name: "中文" }).check();
  await page.getByTestId("theme").getByRole("radio", { name: "深色" }).check();
  await page.reload();
  await expect(page.getByTestId("theme").getByRole("radio", { name: "深色" })).toBeChecked();
  await expect(page.locator("html")).toHaveAttribute("lang", "zh-CN");
});
