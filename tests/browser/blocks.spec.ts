// Blocks and stacks of them. Their numbers are held to PyTorch's by programs.spec.ts.
import { expect, type Page } from "@playwright/test";
import { createEngine } from "../../dist/index.js";
import { choose, expectAccessible, head, rule, said, saved, test, visit } from "./bench.ts";

const strip = (page: Page) => page.getByTestId("strip");
const stop = (page: Page, stage: string) => strip(page).locator(`[value=${stage}]`);
const value = (page: Page, stage: string) =>
  page.locator(`[data-testid=inspector] li[data-stage=${stage}] [data-value]`);
const cell = (page: Page, row: number, column: number) =>
  page.getByTestId("number-grid").locator(`[data-row="${row}"][data-column="${column}"]`);
const stops = (page: Page) =>
  strip(page)
    .locator("input")
    .evaluateAll((all) => all.map((one) => (one as HTMLInputElement).value));

const ATTENTION = ["query", "key", "value", "scores", "scaled", "masked", "weights", "context", "concat", "output"];
const FEED_FORWARD = ["hidden", "activation", "feed_forward"];

async function blocks(page: Page, source = "PyTorch seed") {
  await choose(page, "source", source);
  await choose(page, "model", "transformer blocks");
  await expect(page.getByTestId("layer")).toBeVisible();
}

test("a block goes on behind attention: residual, norm, feed-forward", async ({ page }) => {
  await expect.poll(() => stops(page)).toEqual(["input", ...ATTENTION]);
  await blocks(page);
  await expect
    .poll(() => stops(page))
    .toEqual(["input", ...ATTENTION, "residual", "norm", ...FEED_FORWARD, "residual2", "norm2"]);
  await choose(page, "norm-place", "before");
  await expect
    .poll(() => stops(page))
    .toEqual(["input", "norm", ...ATTENTION, "residual", "norm2", ...FEED_FORWARD, "residual2"]);
  await page.getByTestId("n-layers").fill("1");
  await expect(page.getByTestId("layer")).toHaveCount(0);
  await choose(page, "model", "attention");
  await expect.poll(() => stops(page)).toEqual(["input", ...ATTENTION]);
});

test("arrow keys walk through every layer and back", async ({ page }) => {
  await blocks(page);
  await stop(page, "residual2").check();
  await stop(page, "residual2").focus();
  const at = async (stage: string, layer: number) => {
    await expect(stop(page, stage)).toBeChecked();
    await expect(stop(page, stage)).toBeFocused();
    await expect(page.getByTestId("layer").getByRole("radio", { name: String(layer) })).toBeChecked();
    await expect(stop(page, stage)).toBeInViewport();
  };
  await page.keyboard.press("ArrowRight");
  await at("norm2", 1);
  await page.keyboard.press("ArrowRight");
  await at("input", 2);
  await page.keyboard.press("ArrowRight");
  await at("query", 2);
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  await at("norm2", 1);
  // Behind the last layer there is nothing more: the strip's own ends meet there, as a browser's choices do.
  await choose(page, "layer", "2");
  await stop(page, "norm2").focus();
  await page.keyboard.press("ArrowRight");
  await at("input", 2);
});

test("each layer has numbers, labels and arithmetic of its own", async ({ page }) => {
  await choose(page, "model", "transformer blocks");
  const first = head(page, 1);
  await expect(page.getByTestId("head-grid").locator("figcaption").first()).toContainText("previous token 0.94");
  const before = await said(first);
  await choose(page, "layer", "2");
  await expect(page.getByTestId("head-grid").locator("figcaption").first()).toContainText("previous token");
  expect(await said(first)).not.toBe(before);
  await expect(page.getByTestId("inspector-place")).toHaveText(/^layer 2, head 1, query sat, key cat$/);

  await choose(page, "source", "PyTorch seed");
  await choose(page, "layer", "2");
  await stop(page, "residual").check();
  const inspector = page.getByTestId("inspector");
  await expect(inspector).toContainText("output");
  await expect(inspector).toContainText("input");
  // What the inspector says is what the grid says, in every stage of a block.
  for (const stage of ["norm", "hidden", "activation", "feed_forward", "residual2", "norm2"]) {
    await stop(page, stage).check();
    await expect(value(page, stage)).toHaveCount(1);
    const number = Number(await value(page, stage).getAttribute("data-value"));
    const file = JSON.parse((await saved(page, "the whole pass as json")).text);
    expect(number).toBeCloseTo(file[`layer2.${stage}`][2][0], 6);
  }
});

test("a mask reaches every stage of the layers behind the first", async ({ page }) => {
  await blocks(page);
  await rule(page, "causal").click();
  await stop(page, "input").check();
  await expect(page.getByTestId("compare")).toHaveCount(0);
  await choose(page, "layer", "2");
  await expect(stop(page, "input")).toBeChecked();
  await choose(page, "compare", "difference");
  await page.getByRole("grid", { name: /^input/ }).focus();
  await page.keyboard.press("Control+Home");
  expect(await said(page.getByRole("grid", { name: /^input/ }))).not.toMatch(/, 0(\.0+)?$/);
  await stop(page, "weights").check();
  await expect(page.getByTestId("story")).toContainText("the mask freed");
});

test("with a line of their own for the keys, blocks are a decoder's", async ({ page }) => {
  await page.getByTestId("sentence").fill("a b c");
  await blocks(page);
  await page.getByRole("button", { name: "keys from another line" }).click();
  await page.getByTestId("key-sentence").fill("c d b a e");
  const crossed = ATTENTION.map((stage) => `cross_${stage}`);
  const all = [
    ...ATTENTION,
    "residual",
    "norm",
    ...crossed,
    "residual2",
    "norm2",
    ...FEED_FORWARD,
    "residual3",
    "norm3",
  ];
  await expect.poll(() => stops(page)).toEqual(["input", "memory", ...all]);
  await choose(page, "layer", "2");
  await expect.poll(() => stops(page)).toEqual(["input", ...all]);
  await expect(head(page, 1)).toHaveAttribute("aria-colcount", "3");
  // A key of the other line is one of the second attention.
  await page.getByTestId("key-tokens").getByRole("button", { name: "key e" }).click();
  await expect(stop(page, "cross_weights")).toBeChecked();
  const cross = page.getByRole("grid", { name: /^head 1, weights ×/ });
  await expect(cross).toHaveAttribute("aria-colcount", "5");
  await expect(cross.getByRole("gridcell")).toHaveAttribute("aria-label", /^head 1, query c, key e, 0\.\d\d$/);
  await expect(value(page, "cross_scores")).toHaveCount(1);
  await expect(page.getByTestId("inspector-place")).toHaveText("layer 2, head 1, query c, key e");
  // The first attention has fewer keys.
  await stop(page, "scores").check();
  await expect(page.getByTestId("inspector-place")).toHaveText("layer 2, head 1, query c, key c");
  // The mask lies on the first attention.
  await rule(page, "causal").click();
  await expect(page.getByTestId("mask-editor").getByRole("grid")).toHaveAttribute("aria-colcount", "3");
});

test("numbers of one's own in every layer", async ({ page }) => {
  await page.getByTestId("sentence").fill("a b c");
  await choose(page, "source", "PyTorch seed");
  await page.getByTestId("d-model").fill("4");
  await blocks(page, "Own numbers");
  await choose(page, "layer", "2");
  await expect(page.getByRole("heading", { name: "Own numbers of layer 2" })).toBeVisible();
  for (const matrix of ["W_1", "W_2"]) {
    await choose(page, "matrix", matrix);
    await choose(page, "origin", "zeros");
  }
  await stop(page, "feed_forward").check();
  await expect(value(page, "feed_forward")).toHaveAttribute("data-value", "0");
  await choose(page, "matrix", "norm 2");
  await expect(cell(page, 0, 0)).toHaveText("1");
  await cell(page, 0, 1).click();
  await page.keyboard.type("2.5");
  await page.keyboard.press("Enter");
  await stop(page, "norm2").check();
  await page.getByRole("grid", { name: /^norm 2, norm 2/ }).focus();
  await page.keyboard.press("Control+Home");
  await expect(page.getByTestId("inspector")).toContainText("+ 2.500");
  // The other layer is as it was.
  await choose(page, "layer", "1");
  await expect(cell(page, 0, 1)).toHaveText("0");
  await page.waitForTimeout(400);
  await page.reload();
  await choose(page, "matrix", "norm 2");
  await choose(page, "layer", "2");
  await expect(cell(page, 0, 1)).toHaveText("2.5");
});

test("readable blocks can be taken and changed", async ({ page }) => {
  await choose(page, "model", "transformer blocks");
  const before = await said(head(page, 1));
  await choose(page, "source", "Own numbers");
  await expect(page.getByTestId("d-ff")).toHaveValue("5");
  expect(await said(head(page, 1))).toBe(before);
  await expect(page.getByTestId("seed")).toHaveCount(0);
});

test("a state dict of PyTorch's fills every layer, with its sizes", async ({ page }) => {
  const engine = await createEngine();
  const stack = engine.transformer({ dModel: 8, nHeads: 4, nLayers: 3, dFf: 12, seed: 3 });
  const ours = await stack.stateDict();
  const theirs = Object.fromEntries(
    Object.entries(ours)
      .filter(([name]) => !/attention\.(query|key|value)/.test(name))
      .map(([name, tensor]) => [name.replace("attention.out", "self_attn.out_proj"), tensor]),
  );
  for (const layer of [0, 1, 2]) {
    for (const part of ["weight", "bias"]) {
      const parts = ["query", "key", "value"].map((name) => ours[`layers.${layer}.attention.${name}.${part}`]);
      const data = Float32Array.from(parts.flatMap((tensor) => [...(tensor?.data ?? [])]));
      const shape = part === "weight" ? [24, 8] : [24];
      theirs[`layers.${layer}.self_attn.in_proj_${part}`] = { data, shape };
    }
  }
  const buffer = Buffer.from(await engine.writeTensors(theirs, "safetensors"));
  await blocks(page, "Own numbers");
  const open = (name: string, content: Buffer) =>
    page.getByTestId("open-numbers").setInputFiles({ name, mimeType: "application/octet-stream", buffer: content });
  await open("encoder.safetensors", buffer);
  await expect(page.getByTestId("n-layers")).toHaveValue("3");
  await expect(page.getByTestId("d-ff")).toHaveValue("12");
  await expect(page.getByTestId("d-model")).toHaveValue("8");
  await choose(page, "layer", "3");
  await choose(page, "matrix", "W_K");
  const shown = Number(await cell(page, 2, 5).textContent());
  expect(Math.fround(shown)).toBe(ours["layers.2.attention.key.weight"]?.data[2 * 8 + 5]);

  delete theirs["layers.1.linear2.bias"];
  await open("broken.safetensors", Buffer.from(await engine.writeTensors(theirs, "safetensors")));
  await expect(page.getByTestId("file-problem")).toContainText("layers.1.linear2.bias");
  await expect(page.getByTestId("n-layers")).toHaveValue("3");
  engine.destroy();
});

test("a state of blocks is the same through its link, and what is exported names its layer", async ({ page }) => {
  await visit(page, {
    attnscope: 1,
    numbers: { source: "torch", model: "blocks", nLayers: "3", activation: "gelu" },
    place: { stage: "weights", layer: 2, head: 1, query: 3, key: 0 },
  });
  await expect(page.getByTestId("inspector-place")).toHaveText("layer 3, head 2, query on, key the");
  await expect(page.getByTestId("activation").getByRole("radio", { name: "gelu", exact: true })).toBeChecked();
  const stage = await saved(page, "Save weights as json");
  expect(stage.name).toBe("layer3-weights.json");
  const pass = JSON.parse((await saved(page, "the whole pass as json")).text);
  expect(pass["layer3.weights"]).toEqual(JSON.parse(stage.text).weights);
  // Fewer layers: the selection stays inside.
  await page.getByTestId("n-layers").fill("2");
  await expect(page.getByTestId("inspector-place")).toHaveText("layer 2, head 2, query on, key the");
});

test("the stage that a link opens is in sight, also in a narrow window", async ({ page }) => {
  await page.setViewportSize({ width: 360, height: 800 });
  for (const stage of ["norm2", "norm", "query"]) {
    await visit(page, { attnscope: 1, numbers: { model: "blocks" }, place: { stage, layer: 1 } });
    await expect(stop(page, stage)).toBeInViewport();
  }
});

test("what cannot be a size says so, and the picture stays", async ({ page }) => {
  await blocks(page);
  for (const [typed, message] of [
    ["", "Enter a whole number."],
    ["0", "“0” is not from 1 to 12."],
    ["13", "“13” is not from 1 to 12."],
    ["two", "“two” is not a whole number."],
  ] as const) {
    await page.getByTestId("n-layers").fill(typed);
    await expect(page.getByTestId("problem")).toHaveText(message);
    await expect(page.getByTestId("n-layers")).toHaveAttribute("aria-invalid", "true");
    await expect(page.getByTestId("layer").getByRole("radio")).toHaveCount(2);
  }
  await page.getByTestId("n-layers").fill("3");
  await expect(page.getByTestId("problem")).toHaveCount(0);
  await page.getByTestId("d-ff").fill("0");
  await expect(page.getByTestId("problem")).toHaveText("“0” is not from 1 to 16384.");
  await page.getByTestId("d-ff").fill("");
  await expect(page.getByTestId("problem")).toHaveCount(0);
});

test("the scale is one's own, and the arithmetic says so", async ({ page }) => {
  await choose(page, "source", "PyTorch seed");
  await expect(page.getByTestId("score-scale")).toHaveAttribute("placeholder", "0.500");
  const inspector = page.getByTestId("inspector");
  await expect(inspector).toContainText("s / √dk");
  await page.getByTestId("score-scale").fill("-2");
  await expect(inspector).toContainText("s · scale");
  const [scores, scaled] = await Promise.all(
    ["scores", "scaled"].map(async (stage) => Number(await value(page, stage).getAttribute("data-value"))),
  );
  expect(scaled).toBeCloseTo(-2 * (scores ?? 0), 6);
  await page.getByTestId("score-scale").fill("much");
  await expect(page.getByTestId("problem")).toHaveText("“much” is not a number.");
  await page.getByTestId("score-scale").fill("");
  await expect(page.getByTestId("problem")).toHaveCount(0);
  await expect(inspector).toContainText("s / √dk");
});

for (const scheme of ["light", "dark"] as const) {
  for (const language of ["English", "中文"]) {
    test(`axe finds nothing in a decoder's layers: ${scheme}, ${language}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      await visit(page, {
        attnscope: 1,
        sentence: "a b c",
        keySentence: "c d b a e",
        numbers: { source: "own", own: {}, model: "blocks" },
        place: { stage: "cross_weights", layer: 1 },
      });
      await page.getByRole("radio", { name: language }).check();
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: 800 });
        await expectAccessible(page);
      }
    });
  }
}
