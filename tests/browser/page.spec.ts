import { expect, type Page } from "@playwright/test";
import { createEngine } from "../../dist/index.js";
import { centre, choose, expectAccessible, head, maskGrid, rule, said, test } from "./bench.ts";

/** The full number that the inspector shows for a stage of the selected cell. */
async function inspected(page: Page, stage: string): Promise<number> {
  const value = await page
    .locator(`[data-testid=inspector] li[data-stage=${stage}] [data-value]`)
    .getAttribute("data-value");
  return Number(value);
}

function softmax(scores: readonly number[]): number[] {
  const max = Math.max(...scores);
  const parts = scores.map((score) => Math.exp(score - max));
  const sum = parts.reduce((a, b) => a + b, 0);
  return parts.map((part) => part / sum);
}

/** Walks a head's row key by key: what is said, and the full scaled scores and weights. */
async function walkRow(page: Page, number: number, tokens: number) {
  const grid = head(page, number);
  await grid.focus();
  await page.keyboard.press("Home");
  const cells: { said: string; scaled: number; weight: number }[] = [];
  for (let key = 0; key < tokens; key++) {
    if (key > 0) await page.keyboard.press("ArrowRight");
    await expect(grid.getByRole("gridcell")).toHaveAttribute("aria-colindex", String(key + 1));
    const spoken = (await said(grid)) ?? "";
    await expect(page.getByTestId("inspector-place")).toHaveText(spoken.slice(0, spoken.lastIndexOf(", ")));
    await expect(async () => {
      expect((await inspected(page, "weights")).toFixed(2)).toBe(spoken.slice(spoken.lastIndexOf(", ") + 2));
    }).toPass();
    // Two digits may be another cell's too: its numbers come a frame after its name.
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    cells.push({ said: spoken, scaled: await inspected(page, "scaled"), weight: await inspected(page, "weights") });
  }
  return cells;
}

test("readable heads look where they say", async ({ page }) => {
  await page.getByTestId("sentence").fill("a dog saw a bird");
  await expect(page.getByTestId("tokens").getByRole("button")).toHaveText(["a", "dog", "saw", "a", "bird"]);
  const strongest = async (number: number, row: number) => {
    await head(page, number).click({ position: { x: 4, y: 4 } });
    for (let i = 0; i < row; i++) await page.keyboard.press("ArrowDown");
    const weights = (await walkRow(page, number, 5)).map(({ weight }) => weight);
    return weights.flatMap((weight, key) => (weight > 0.4 ? [key] : []));
  };
  expect(await strongest(1, 4)).toEqual([3]);
  expect(await strongest(2, 4)).toEqual([0]);
  expect(await strongest(3, 3)).toEqual([0, 3]);
  expect(await strongest(4, 2)).toEqual([]);
});

test("a painted mask gives the softmax of what it leaves", async ({ page }) => {
  await page.getByTestId("sentence").fill("we paint a causal mask");
  await rule(page, "causal").click();
  await expect(page.getByTestId("mask-code")).toHaveValue(/j <= i/);

  // Down on an allowed cell hides it; the drag hides the next one too: queries mask, keys paint and a.
  const grid = maskGrid(page);
  const from = await centre(grid, 5, 4, 1);
  const to = await centre(grid, 5, 4, 2);
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move(to.x, to.y, { steps: 4 });
  await page.mouse.up();
  await expect(rule(page, "painted")).toHaveAttribute("aria-pressed", "true");
  await expect(rule(page, "causal")).toHaveAttribute("aria-pressed", "false");
  await expect(page.getByTestId("mask-code")).toHaveValue(/\[1, 0, 0, 1, 1\]/);

  for (const number of [1, 3]) {
    // The code is there before the numbers are.
    await expect(async () => {
      const cells = await walkRow(page, number, 5);
      expect(cells.map((cell) => cell.said.split(", ")[1])).toEqual(Array(5).fill("query mask"));
      const masked = cells.map(({ scaled }, key) => (key === 1 || key === 2 ? -1e9 : scaled));
      softmax(masked).forEach((weight, key) => {
        expect(cells[key]?.weight).toBeCloseTo(weight, 6);
      });
    }).toPass();
  }
  await expect(page.getByTestId("story")).toContainText("the mask freed");
});

test("the mask is painted from the keyboard", async ({ page }) => {
  const grid = maskGrid(page);
  await grid.focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("ArrowDown");
  expect(await said(grid)).toBe("query cat, key the, may attend");
  await page.keyboard.press(" ");
  await expect(grid.getByRole("gridcell")).toHaveAttribute("aria-label", "query cat, key the, hidden");
  const cells = await walkRow(page, 1, 6);
  expect(cells[0]?.weight).toBe(0);
  await expect(page.locator(".attn-live").nth(1)).toHaveText(/^head 1, query cat, key mat, 0\.\d\d$/);
});

test("the whole matrix is reached with the keyboard", async ({ page }) => {
  const grid = head(page, 2);
  await grid.focus();
  await page.keyboard.press("Control+End");
  await expect(grid.getByRole("gridcell")).toHaveAttribute("aria-label", /^head 2, query mat, key mat, /);
  await page.keyboard.press("ArrowRight");
  await expect(grid.getByRole("gridcell")).toHaveAttribute("aria-colindex", "6");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowUp");
  await expect(grid.getByRole("gridcell")).toHaveAttribute("aria-label", /^head 2, query the, key the, 0\.95$/);
});

test("a seed gives PyTorch's numbers", async ({ page }) => {
  await choose(page, "source", "PyTorch seed");
  await page.getByTestId("seed").fill("7");
  await page.getByTestId("n-heads").fill("2");
  await page.getByTestId("d-model").fill("8");
  await expect(page.getByTestId("program")).toHaveValue(/manual_seed\(7\)\nn_q, n_k, d_model, n_heads = 6, 6, 8, 2/);
  await expect(page.getByRole("grid", { name: /^head 3/ })).toHaveCount(0);
  await expect(page.getByTestId("strip").locator("label").first()).toContainText("6 × 8");

  const engine = await createEngine();
  const generator = engine.torchGenerator(7);
  const x = await generator.rand([6, 8]);
  const dict = await engine.multiHeadAttention({ dModel: 8, nHeads: 2, generator }).stateDict();
  engine.destroy();
  const project = (name: string, token: number, column: number) => {
    const [weight, bias] = [dict[`${name}.weight`]?.data, dict[`${name}.bias`]?.data];
    let sum = bias?.[column] ?? 0;
    for (let d = 0; d < 8; d++) sum += (x.data[token * 8 + d] ?? 0) * (weight?.[column * 8 + d] ?? 0);
    return sum;
  };
  const query = 2;
  const scores = [0, 1, 2, 3, 4, 5].map((key) => {
    let sum = 0;
    for (let column = 4; column < 8; column++) sum += project("query", query, column) * project("key", key, column);
    return sum / 2;
  });
  const cells = await walkRow(page, 2, 6);
  softmax(scores).forEach((weight, key) => {
    expect(cells[key]?.weight).toBeCloseTo(weight, 6);
  });
});

test("sizes that do not divide are refused beside the field, and everything stays", async ({ page }) => {
  await choose(page, "source", "PyTorch seed");
  const before = await said(head(page, 1));
  await page.getByTestId("d-model").fill("10");
  await expect(page.getByTestId("problem")).toHaveText(
    "d_model 10 is not divisible by 4 heads: choose another size, or give d_k and d_v.",
  );
  await expect(page.getByTestId("d-model")).toHaveAttribute("aria-invalid", "true");
  await expect(page.getByTestId("d-model")).toHaveValue("10");
  await rule(page, "causal").click();
  await expect(page.getByTestId("problem")).toBeVisible();
  await rule(page, "none").click();
  await expect(head(page, 1).getByRole("gridcell")).toHaveAttribute("aria-label", before ?? "");
  await page.getByTestId("d-model").fill("twelve");
  await expect(page.getByTestId("problem")).toHaveText("“twelve” is not a whole number.");
  await page.getByTestId("d-model").fill("12");
  await expect(page.getByTestId("problem")).toHaveCount(0);
});

test("each wrong field says what is wrong with it, beside it and with its own name", async ({ page }) => {
  await choose(page, "source", "PyTorch seed");
  await page.getByTestId("n-heads").fill("x");
  await page.getByTestId("score-scale").fill("1e400");
  await page.getByTestId("d-v").fill("0");
  for (const [field, message] of [
    ["n-heads", "“x” is not a whole number."],
    ["score-scale", "“1e400” is not from -1000000 to 1000000."],
    ["d-v", "“0” is not from 1 to 1024."],
  ] as const) {
    await expect(page.getByTestId(field)).toHaveAttribute("aria-invalid", "true");
    await expect(page.getByTestId(field)).toHaveAccessibleDescription(message);
    await expect(page.locator("div", { has: page.getByTestId(field) }).last()).toContainText(message);
  }
  await expect(page.getByTestId("problem")).toHaveCount(3);
  await page.getByTestId("n-heads").fill("4");
  await expect(page.getByTestId("n-heads")).toHaveAttribute("aria-invalid", "false");
  await expect(page.getByTestId("problem")).toHaveCount(2);
  // A field that goes takes nothing of it along.
  await page.getByTestId("seed").fill("much");
  await page.getByTestId("d-v").fill("");
  await page.getByTestId("score-scale").fill("");
  await choose(page, "source", "Readable heads");
  await expect(page.getByTestId("problem")).toHaveCount(0);
  await choose(page, "source", "Own numbers");
  await expect(page.getByTestId("seed")).toHaveAttribute("aria-invalid", "true");
  await page.getByTestId("seed").fill("7");
  await expect(page.getByTestId("problem")).toHaveCount(0);
});

test("what is wrong no more is said no more, while the next pass still runs", async ({ page }) => {
  await page.getByTestId("sentence").fill("");
  await expect(page.getByRole("alert")).toContainText("Type at least one word");
  await page.evaluate(() => {
    const send = Worker.prototype.postMessage as (...message: unknown[]) => void;
    const held: (() => void)[] = [];
    Worker.prototype.postMessage = function (...message: unknown[]) {
      held.push(() => send.call(this, ...message));
    };
    Object.assign(globalThis, {
      letGo() {
        Worker.prototype.postMessage = send;
        for (const act of held) act();
      },
    });
  });
  await page.getByTestId("sentence").fill("a b c");
  await expect(page.getByRole("alert")).toHaveCount(0);
  await expect(page.getByTestId("tokens").getByRole("button")).toHaveCount(6);
  await page.evaluate(() => (globalThis as unknown as { letGo(): void }).letGo());
  await expect(page.getByTestId("tokens").getByRole("button")).toHaveCount(3);
});

test("a line that is too long is cut between tokens, and says so", async ({ page }) => {
  const words = Array.from({ length: 25_000 }, (_, i) => `word${i % 100}`);
  await page.getByTestId("sentence").focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(words.join(" "));
  const kept = (await page.getByTestId("sentence").inputValue()).split(" ");
  expect(kept).toEqual(words.slice(0, kept.length));
  expect(kept.join(" ").length).toBeGreaterThan(19_990);
  await expect(page.getByRole("alert")).toHaveText(
    `A line holds 20,000 characters: the first ${kept.length} of 25000 tokens were taken.`,
  );
  await expect(page.getByTestId("tokens").getByRole("button")).toHaveCount(kept.length);
  await page.getByTestId("sentence").fill("a b");
  await expect(page.getByRole("alert")).toHaveCount(0);
});

test("of many weights the analysis is asked head by head, and without a mask not what it did", async ({ page }) => {
  const n = 600;
  await page.evaluate(() => {
    const asked: { op: string; numbers: number }[] = [];
    const send = Worker.prototype.postMessage as (message: unknown, ...rest: unknown[]) => void;
    Worker.prototype.postMessage = function (...[message, ...rest]: Parameters<typeof send>) {
      const { request } = message as { request?: { op: string; weights?: { data: Float32Array } } };
      if (request) asked.push({ op: request.op, numbers: request.weights?.data.length ?? 0 });
      send.call(this, message, ...rest);
    };
    Object.assign(globalThis, { asked });
  });
  await page.getByTestId("sentence").fill(Array.from({ length: n }, (_, i) => `w${i}`).join(" "));
  await expect(page.getByTestId("tokens").getByRole("button")).toHaveCount(n);
  await expect(page.getByTestId("head-grid").locator("figcaption")).toHaveText([
    /previous token 1\.00/,
    /first token 1\.00/,
    /itself/,
    /even 1\.00/,
  ]);
  const asked = await page.evaluate(
    () => (globalThis as unknown as { asked: { op: string; numbers: number }[] }).asked,
  );
  const labelled = asked.filter(({ op }) => op === "labelHeads");
  expect(labelled.map(({ numbers }) => numbers)).toEqual([n * n, n * n, n * n, n * n]);
  expect(Math.max(...asked.map(({ numbers }) => numbers))).toBe(n * n);
  expect(asked.filter(({ op }) => op === "maskEffect")).toEqual([]);
});

test("any text can be a sentence", async ({ page }) => {
  const sentence = "我爱 </script><b>x</b> 👩‍👩‍👧\n  עברית e\u0301 \u200d \ud83d ".concat("w".repeat(200));
  await page.getByTestId("sentence").fill(sentence);
  const tokens = page.getByTestId("tokens");
  await expect(tokens).toContainText("我");
  await expect(tokens).toContainText("👩‍👩‍👧");
  await expect(tokens).toContainText("↵");
  await expect(tokens.locator("b")).toHaveCount(0);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(overflow).toBeLessThanOrEqual(0);

  await page.getByTestId("sentence").fill("");
  await expect(page.getByRole("alert")).toContainText("Type at least one word");
  await expect(tokens).toContainText("我");
});

test("a row with nothing to attend to is told", async ({ page }) => {
  await rule(page, "padding").click();
  await page.getByTestId("padded").fill("6");
  await expect(page.getByTestId("story")).toContainText("may attend to nothing");
  await expect(head(page, 1).getByRole("gridcell")).toHaveAttribute("aria-label", /0\.17$/);
  await choose(page, "fill", "−∞");
  await expect(head(page, 1).getByRole("gridcell")).toHaveAttribute("aria-label", /NaN$/);
});

test("every stage opens, and with, without and difference stand side by side", async ({ page }) => {
  await rule(page, "causal").click();
  for (const stage of ["input", "query", "key", "value", "scores", "scaled", "masked", "context", "concat", "output"]) {
    await page.locator(`[data-testid=strip] [value=${stage}]`).check();
    await expect(page.locator(`[data-testid=inspector] li[data-stage=${stage}]`)).toBeVisible();
  }
  await page.locator("[data-testid=strip] [value=weights]").check();
  await choose(page, "compare", "side by side");
  await expect(page.getByTestId("trio").getByRole("grid")).toHaveCount(3);
  const [without, masked, difference] = await Promise.all(
    [0, 1, 2].map(async (i) => {
      const label = (await said(page.getByTestId("trio").getByRole("grid").nth(i))) ?? "";
      return Number(label.slice(label.lastIndexOf(", ") + 2).replace("−", "-"));
    }),
  );
  expect(difference).toBeCloseTo((masked ?? 0) - (without ?? 0), 1);
});

for (const scheme of ["light", "dark"] as const) {
  for (const language of ["English", "中文"]) {
    test(`axe finds nothing: ${scheme}, ${language}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      await page.getByRole("radio", { name: language }).check();
      await page.locator("[data-testid=source] [value=torch]").check();
      await page.getByTestId("mask-presets").getByRole("button").nth(2).click();
      await page.getByTestId("d-model").fill("10");
      await expect(page.getByTestId("problem")).toBeVisible();
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: 800 });
        await expectAccessible(page);
      }
    });
  }
}
