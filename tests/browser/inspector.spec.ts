import { expect, type Page } from "@playwright/test";
import type { InspectorStep } from "attnscope/views";
import { choose, expectAccessible, rule, said, test, visit } from "./bench.ts";
import { HARNESS } from "./ports.ts";

declare const views: typeof import("attnscope/views");

const inspector = (page: Page) => page.getByTestId("inspector");
const lines = (page: Page) => inspector(page).locator("p").allInnerTexts();
const written = (text: string | undefined) => Number((text ?? "").replace("−", "-"));

const TEXT = {
  product: "product",
  bias: "bias",
  sum: "sum",
  key: "key",
  allowed: "allowed",
  emptyRow: "empty",
  off: "off",
  given: "given",
};

/** What the inspector writes of steps, by the tags of its elements. */
async function inspect(page: Page, steps: readonly Partial<InspectorStep>[]): Promise<readonly string[]> {
  await page.goto(HARNESS);
  await page.waitForFunction(() => "views" in globalThis);
  return page.evaluate(
    ({ steps, TEXT }) => {
      const element = document.createElement("div");
      document.body.replaceChildren(element);
      const defaults = { layer: 0, index: [0, 0, 0], formula: "", terms: [], constants: {} };
      views.cellInspector(element, {
        steps: steps.map((step) => (step.operation === "mean" ? step : { ...defaults, ...step })) as never,
        keyLabels: ["a", "b"],
        text: {
          ...TEXT,
          stage: (stage) => stage,
          factors: () => ({ over: "d", left: "q", right: "k" }),
          hidden: (fill) => `becomes ${fill}`,
          more: (count) => `${count} more`,
        },
      });
      return Array.from(element.querySelectorAll("p, tr, h3 span"), ({ textContent }) => textContent ?? "");
    },
    { steps, TEXT },
  );
}

const term = (left: number, right: number, product = left * right) => ({ label: "0", left, right, product });

test.describe("what is printed", () => {
  const scores = { stage: "scores", operation: "dot", value: 14.3, terms: Array(8).fill(term(1, 1)) } as const;
  for (const [name, steps, expected] of [
    [
      "the root of d_k, and no rounded scale",
      [scores, { stage: "scaled", operation: "scale", value: 5.0558, terms: [term(14.3, 8 ** -0.5)] }],
      ["14.300 / √8 = 5.056", "s / √dk"],
    ],
    [
      "another scale with the digits that it takes",
      [scores, { stage: "scaled", operation: "scale", value: -16.66, terms: [term(14.3, -7 / 6)] }],
      ["14.3 × (−1.16667) = −16.683", "s · scale"],
    ],
    [
      "a quotient",
      [{ stage: "weights", operation: "softmax", value: 0.93663, constants: { max: -0.051, exp: 1, sum: 1.06766 } }],
      ["1 / 1.0677 = 0.937", "em − (−0.051)"],
    ],
    [
      "an added bias that is negative",
      [{ stage: "masked", operation: "mask", value: 0.5, constants: { allowed: 1, scaled: 0.75, bias: -0.25 } }],
      ["0.750 + (−0.250) = 0.500"],
    ],
    [
      "a hidden score",
      [{ stage: "masked", operation: "mask", value: -1e9, constants: { allowed: 0, fill: -1e9 } }],
      ["becomes −1e9"],
    ],
    [
      "products of factors that are large",
      [{ stage: "scores", operation: "dot", value: 99.7, terms: [term(100.0004, 0.99704)], constants: { bias: 0 } }],
      ["0100.000400.9970499.704"],
    ],
    [
      "a head that is switched off",
      [{ stage: "context", operation: "dot", value: 0, terms: [term(0.5, 2)], constants: { head_mask: 0 } }],
      ["off× 0", "sum0"],
    ],
    [
      "the mean of heads",
      [
        {
          stage: "weights",
          operation: "mean",
          value: 0.5,
          parts: [
            { name: "head 1", value: 0.25 },
            { name: "head 3", value: 0.75 },
          ],
        },
      ],
      ["0.250 head 1", "+ 0.750 head 3", "1.000 / 2 = 0.500"],
    ],
  ] as const) {
    test(name, async ({ page }) => {
      const texts = await inspect(page, steps as readonly Partial<InspectorStep>[]);
      for (const text of expected) expect(texts.join("\n")).toContain(text);
    });
  }
});

test("an empty row that gives 0 is told as such, and not as a quotient of NaN", async ({ page }) => {
  await rule(page, "padding").click();
  await page.getByTestId("padded").fill("6");
  await choose(page, "fill", "−∞");
  await expect(inspector(page)).toContainText("NaN / NaN = NaN");
  await expect(page.getByTestId("story")).toContainText("with −∞ they are NaN");
  await choose(page, "empty-row", "0");
  await expect(inspector(page)).toContainText("an empty row gives 0");
  await expect(inspector(page)).not.toContainText("NaN");
  await expect(page.getByTestId("story")).toContainText("with −∞ they are 0");
});

test("the mean of heads is explained by the heads' numbers", async ({ page }) => {
  await page.getByTestId("heads-played").getByRole("button", { name: "average" }).click();
  await expect(page.getByTestId("inspector-place")).toHaveText("mean of heads 1, 2, 3, 4, query sat, key cat");
  const shown = (await said(page.getByTestId("head-grid").getByRole("grid")))?.split(", ").at(-1);
  const texts = await lines(page);
  expect(texts.filter((text) => /head \d/.test(text))).toHaveLength(4);
  const parts = texts.slice(1, 5).map((text) => written(/[−\d.]+/.exec(text)?.[0]));
  const last = /^([\d.]+) \/ 4 = ([\d.]+)$/.exec(texts.at(-1) ?? "");
  expect(parts.reduce((a, b) => a + b)).toBeCloseTo(written(last?.[1]), 4);
  expect(written(last?.[2]).toFixed(2)).toBe(shown);
  // A head that is off is no part of it.
  await page.getByTestId("heads-played").getByRole("button", { name: "head 2 takes part" }).click();
  await expect(inspector(page)).toContainText("/ 3 =");
});

test("a difference is explained as one", async ({ page }) => {
  await rule(page, "causal").click();
  await choose(page, "compare", "difference");
  const steps = inspector(page).locator("li");
  await expect(steps).toHaveCount(6);
  const texts = await steps.first().locator("p").allInnerTexts();
  const [one, other] = texts.map((text) => written(/[\d.]+/.exec(text)?.[0]));
  expect(texts.map((text) => text.replace(/[\d.]+/, "x"))).toEqual(["x with mask", "− x without mask"]);
  const value = written((await steps.first().locator("[data-value]").textContent()) ?? "");
  expect((one ?? 0) - (other ?? 0)).toBeCloseTo(value, 3);
  await expect(steps.last().locator("h3")).toContainText("weights, without mask");
  await expectAccessible(page);
  await page.getByTestId("heads-played").getByRole("button", { name: "average" }).click();
  await expect(steps).toHaveCount(3);
  await choose(page, "compare", "without");
  await expect(steps).toHaveCount(1);
});

test("a table of many terms is whole, or ends in full rows under its sum and scrolls", async ({ page }) => {
  const terms = inspector(page).locator(".attn-terms").first();
  const cut = () => terms.evaluate(({ scrollHeight, clientHeight }) => scrollHeight - clientHeight);
  await page.locator("[data-testid=strip] [value=query]").check();
  await expect(terms.locator("tbody tr")).toHaveCount(13);
  expect(await cut()).toBeLessThanOrEqual(0);
  await visit(page, { attnscope: 1, numbers: { source: "torch", dModel: "64" }, place: { stage: "query" } });
  await expect(terms.locator("tbody tr")).toHaveCount(65);
  expect(await cut()).toBeGreaterThan(0);
  const sight = await terms.evaluate((frame) => {
    const box = frame.getBoundingClientRect();
    const foot = frame.querySelector("tfoot")?.getBoundingClientRect();
    const rows = [...frame.querySelectorAll("tbody tr")].map((row) => row.getBoundingClientRect());
    const end = foot?.top ?? 0;
    const cut = rows.filter(({ top, bottom }) => top < end - 2 && bottom > end + 2);
    return { isFootIn: Math.abs((foot?.bottom ?? 0) - box.bottom) < 2, cut: cut.length };
  });
  expect(sight).toEqual({ isFootIn: true, cut: 0 });
});
