import { expect, type Page } from "@playwright/test";
import { centre, choose, expectAccessible, head, maskGrid, rule, said, test } from "./bench.ts";

const N = 4;

/** Which cells the mask's grid says may be attended to. */
async function allowed(page: Page): Promise<string> {
  const grid = maskGrid(page);
  await grid.focus();
  await page.keyboard.press("Control+Home");
  let cells = "";
  for (let row = 0; row < N; row++) {
    for (let column = 0; column < N; column++) {
      await expect(grid.getByRole("gridcell")).toHaveAttribute("aria-colindex", String(column + 1));
      cells += (await said(grid))?.endsWith("may attend") ? "1" : "0";
      if (column < N - 1) await page.keyboard.press("ArrowRight");
    }
    cells += " ";
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
  }
  return cells.trim();
}

const expectMask = (page: Page, cells: string) => expect(async () => expect(await allowed(page)).toBe(cells)).toPass();
const terms = (page: Page) => page.getByTestId("mask-terms");

test.beforeEach(async ({ page }) => {
  await page.getByTestId("sentence").fill("a b c d");
  await expect(head(page, 1)).toHaveAttribute("aria-rowcount", "4");
});

test("every rule with its numbers", async ({ page }) => {
  const rules: [string, Record<string, string>, string][] = [
    ["causal", {}, "1000 1100 1110 1111"],
    ["padding", { padded: "2" }, "1100 1100 1100 1100"],
    ["window", { before: "1", after: "0" }, "1000 1100 0110 0011"],
    ["prefix", { prefix: "2" }, "1100 1100 1110 1111"],
    ["documents", { starts: "1, 3" }, "1000 0110 0110 0001"],
    ["global", { globals: "0" }, "1111 1000 1000 1000"],
    ["dilated", { width: "2", stride: "2" }, "1010 0101 1010 0101"],
  ];
  for (const [name, numbers, cells] of rules) {
    await rule(page, name).click();
    for (const [field, value] of Object.entries(numbers)) await page.getByTestId(field).fill(value);
    await expectMask(page, cells);
    await rule(page, name).click();
  }
  await expect(rule(page, "none")).toHaveAttribute("aria-pressed", "true");
});

test("rules join with AND, OR and NOT, from left to right", async ({ page }) => {
  await rule(page, "window").click();
  await rule(page, "global").click();
  await terms(page).getByRole("button", { name: "AND: change how the rules join" }).click();
  await expectMask(page, "1111 1110 1111 1011");
  await rule(page, "causal").click();
  await expectMask(page, "1000 1100 1110 1011");
  await expect(page.getByTestId("mask-brackets")).toHaveText("(window OR global) AND causal");
  await expect(page.getByTestId("mask-code")).toHaveValue(
    /\(\(\(i - j <= 1\) & \(j - i <= 1\)\) \| .*\) & \(j <= i\) {2}# True = may attend/,
  );
  await terms(page).getByRole("button", { name: "NOT causal" }).click();
  await expectMask(page, "0111 0010 0001 0000");
  await choose(page, "convention", "True = hide");
  await expect(page.getByTestId("mask-code")).toHaveValue(/attn_mask = ~\(.*# True = hidden/);
  await terms(page).getByRole("button", { name: "Remove window" }).click();
  await expectMask(page, "0111 0000 0000 0000");
});

test("a wrong number is told beside its field, and the mask stays", async ({ page }) => {
  await rule(page, "window").click();
  await expectMask(page, "1100 1110 0111 0011");
  await page.getByTestId("before").fill("-1");
  await expect(page.getByRole("alert")).toHaveText("“-1” is not from 0 to 4095.");
  await expect(page.getByTestId("before")).toHaveAttribute("aria-invalid", "true");
  await page.getByTestId("before").fill("2.5");
  await expect(page.getByRole("alert")).toHaveText("“2.5” is not a whole number.");
  await expectMask(page, "1100 1110 0111 0011");
  await page.getByTestId("before").fill("0");
  await expect(page.getByRole("alert")).toHaveCount(0);
  await expectMask(page, "1100 0110 0011 0001");
  await rule(page, "global").click();
  await page.getByTestId("globals").fill("0 x");
  await expect(page.getByRole("alert")).toHaveText("“x” is not a whole number.");
  // What is wrong with a rule goes with it.
  await rule(page, "global").click();
  await expect(page.getByRole("alert")).toHaveCount(0);
});

test("each wrong number of a rule is told within the rule, and one beyond the tokens too", async ({ page }) => {
  await rule(page, "window").click();
  await rule(page, "padding").click();
  const within = (name: string) => terms(page).getByRole("listitem").filter({ hasText: name });
  await page.getByTestId("before").fill("abc");
  await page.getByTestId("padded").fill("-3");
  await expect(within("window")).toContainText("“abc” is not a whole number.");
  await expect(within("padding")).toContainText("“-3” is not from 0 to 4095.");
  await expect(page.getByRole("alert")).toHaveCount(2);
  await page.getByTestId("before").fill("1");
  await expect(within("window").getByRole("alert")).toHaveCount(0);
  await page.getByTestId("padded").fill("999");
  await expect(page.getByTestId("padded")).toHaveAttribute("aria-invalid", "false");
  await expect(page.getByTestId("padded")).toHaveAccessibleDescription("“999” is more than the 4 tokens there are.");
  await expectMask(page, "0000 0000 0000 0000");
  await page.getByTestId("padded").fill("4");
  await expect(within("padding")).not.toContainText("there are");
  await rule(page, "global").click();
  await page.getByTestId("globals").fill("0 4");
  await expect(within("global")).toContainText("There is no token 4: the last is 3.");
});

test("of two masks the one that is not being edited says what is wrong with it", async ({ page }) => {
  await rule(page, "padding").click();
  await page.getByRole("button", { name: "compare two" }).click();
  await page.getByTestId("padded").fill("abc");
  await choose(page, "edited-mask", "A");
  await expect(page.getByTestId("padded")).toHaveAttribute("aria-invalid", "false");
  await expect(page.getByRole("alert")).toHaveText("Mask B: “abc” is not a whole number.");
});

test("the line in PyTorch fills as the page does, or says what differs", async ({ page }) => {
  const code = page.getByTestId("mask-code");
  await rule(page, "causal").click();
  await expect(code).toHaveValue(/# PyTorch fills in -inf for it, not -1e9: an empty row differs$/);
  await choose(page, "convention", "added");
  await expect(code).toHaveValue(/attn_mask = torch\.where\(j <= i, 0\.0, -1e9\) {2}# added to the scores$/);
  await choose(page, "fill", "−∞");
  await expect(code).toHaveValue(/torch\.where\(j <= i, 0\.0, float\("-inf"\)\) {2}# added to the scores$/);
  await choose(page, "empty-row", "0");
  await expect(code).toHaveValue(/# then weights\.nan_to_num\(0\.0\): an empty row gives 0$/);
  await choose(page, "convention", "True = keep");
  await choose(page, "empty-row", "NaN");
  await expect(code).toHaveValue(/attn_mask = j <= i {2}# True = may attend$/);
});

test("a mask with ALiBi can only be added, and the switch says so", async ({ page }) => {
  const radio = (name: string) => page.getByTestId("convention").getByRole("radio", { name });
  await rule(page, "causal").click();
  await rule(page, "ALiBi").click();
  await expect(radio("added")).toBeChecked();
  await expect(radio("True = keep")).toBeDisabled();
  await expect(radio("True = hide")).toBeDisabled();
  await expect(page.getByTestId("convention")).toHaveAccessibleDescription(/such a mask can only be added/);
  await expect(page.getByTestId("mask-code")).toHaveValue(/\.abs\(\), -1e9\) {2}# added to the scores$/);
  await rule(page, "ALiBi").click();
  await expect(radio("True = keep")).toBeChecked();
  await expect(radio("True = hide")).toBeEnabled();
});

test("ALiBi adds to the scores, beside any rule", async ({ page }) => {
  await rule(page, "causal").click();
  await rule(page, "ALiBi").click();
  await expect(page.getByTestId("mask-code")).toHaveValue(/torch\.where\(j <= i, -torch\.tensor\(\[0\.25, /);
  await head(page, 4).focus();
  await page.keyboard.press("Control+End");
  await page.keyboard.press("Home");
  // Head 4 has nothing but the mask: scores 0, minus 3 steps of 1/256.
  const parts = [3, 2, 1, 0].map((steps) => Math.exp(-steps / 256));
  const weight = (parts[0] ?? 0) / parts.reduce((a, b) => a + b);
  const shown = page.locator("[data-testid=inspector] li[data-stage=weights] [data-value]");
  await expect(async () => {
    expect(Number(await shown.getAttribute("data-value"))).toBeCloseTo(weight, 6);
  }).toPass();
});

test("a mask is painted for one head, then for all", async ({ page }) => {
  await rule(page, "causal").click();
  await expectMask(page, "1000 1100 1110 1111");
  await page.getByTestId("paint-for").getByRole("radio").nth(1).check();
  await head(page, 2).focus();
  const paint = async (row: number, column: number) => {
    const at = await centre(maskGrid(page), N, row, column);
    await page.mouse.click(at.x, at.y);
  };
  await paint(3, 0);
  await expectMask(page, "1000 1100 1110 0111");
  await expect(page.getByTestId("mask-code")).toHaveValue(/\[\[\[1, 0, 0, 0\]/);
  await head(page, 1).focus();
  await expectMask(page, "1000 1100 1110 1111");
  await page.getByTestId("paint-for").getByRole("radio").nth(0).check();
  await paint(2, 0);
  await expectMask(page, "1000 1100 0110 1111");
  await head(page, 2).focus();
  await expectMask(page, "1000 1100 0110 0111");
  await page.keyboard.press("Control+z");
  await expectMask(page, "1000 1100 1110 0111");

  const weights = page.locator("[data-testid=inspector] li[data-stage=weights] [data-value]");
  await head(page, 2).focus();
  await page.keyboard.press("Control+End");
  await page.keyboard.press("Home");
  await expect(weights).toHaveAttribute("data-value", "0");
});

test("an empty row gives NaN or zero", async ({ page }) => {
  await rule(page, "padding").click();
  await page.getByTestId("padded").fill("4");
  await choose(page, "fill", "−∞");
  await expect(head(page, 1).getByRole("gridcell")).toHaveAttribute("aria-label", /NaN$/);
  await choose(page, "empty-row", "0");
  await expect(head(page, 1).getByRole("gridcell")).toHaveAttribute("aria-label", /0\.00$/);
});

test("what a mask did: freed, gained and moved", async ({ page }) => {
  await rule(page, "causal").click();
  await choose(page, "compare", "difference");
  const effect = page.getByTestId("effect");
  await expect(effect).toBeVisible();
  // Head 4 is even: row i of n frees (n - 1 - i) / n.
  await expect(effect.getByRole("row", { name: "head 4" }).first()).toContainText("1.50");
  const gain = effect.getByRole("button", { name: "head 4, a → a" });
  await expect(effect.getByRole("row", { name: "head 4, a → a" })).toContainText("0.25 → 1.00");
  await gain.click();
  await expect(page.getByTestId("inspector-place")).toHaveText("head 4, query a, key a");
  // The last query may attend to all as before: its output is where it was.
  await expect(effect.getByRole("row", { name: "d", exact: false }).last()).toHaveText(/d\s*0\s*1\.000/);
});

test("two masks are pinned and compared", async ({ page }) => {
  await rule(page, "causal").click();
  await page.getByRole("button", { name: "compare two" }).click();
  await expect(page.getByTestId("edited-mask").getByRole("radio", { name: "B" })).toBeChecked();
  await rule(page, "causal").click();
  await rule(page, "global").click();
  await choose(page, "compare", "side by side");
  const grids = page.getByTestId("trio").getByRole("grid");
  await expect(grids).toHaveCount(3);
  await expect(grids.nth(0)).toHaveAttribute("aria-label", /mask A/);
  const weight = async (i: number) => Number(((await said(grids.nth(i))) ?? "").split(", ").at(-1)?.replace("−", "-"));
  await choose(page, "head-choice", "head 4");
  await grids.nth(0).focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("ArrowDown");
  await expect(async () => {
    expect([await weight(0), await weight(1), await weight(2)]).toEqual([0.5, 1, 0.5]);
  }).toPass();
  await choose(page, "edited-mask", "A");
  await expect(rule(page, "causal")).toHaveAttribute("aria-pressed", "true");
  await rule(page, "none").click();
  await expect(async () => expect(await weight(0)).toBe(0.25)).toPass();
  await page.getByRole("button", { name: "keep only A" }).click();
  await expect(rule(page, "none")).toHaveAttribute("aria-pressed", "true");
  await expect(page.getByTestId("edited-mask")).toHaveCount(0);
});

for (const scheme of ["light", "dark"] as const) {
  for (const language of ["English", "中文"]) {
    test(`axe finds nothing with masks: ${scheme}, ${language}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      await page.getByRole("radio", { name: language }).check();
      const rules = page.getByTestId("mask-presets").getByRole("button");
      for (let i = 1; i < (await rules.count()); i++) await rules.nth(i).click();
      await page.getByTestId("mask-terms").getByRole("button").nth(2).click();
      await page.locator("[data-testid=fill] [value='-inf']").check();
      await page.getByRole("button", { name: /compare two|比较两个/ }).click();
      await page.locator("[data-testid=compare] [value=all]").check();
      await expect(page.getByTestId("effect")).toBeVisible();
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: 800 });
        await expectAccessible(page);
      }
    });
  }
}
