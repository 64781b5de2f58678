import { expect } from "@playwright/test";
import { createEngine } from "../../dist/index.js";
import { choose, rule, saved, test } from "./bench.ts";

test("a stage and the whole pass are saved, and read back", async ({ page }) => {
  await page.getByTestId("sentence").fill('a, "b" c');
  await rule(page, "causal").click();
  await expect(page.getByTestId("head-grid").getByRole("grid").first()).toHaveAttribute("aria-rowcount", "6");
  const engine = await createEngine();
  const savedWeights = async () => {
    const npy = await saved(page, "Save weights as npy");
    expect(npy.name).toBe("weights.npy");
    return Object.values(await engine.readTensors(npy.bytes))[0];
  };
  // What is on the page is saved; the mask's pass may still be under way.
  await expect.poll(async () => (await savedWeights())?.data.slice(0, 2)).toEqual(Float32Array.of(1, 0));
  const weights = await savedWeights();
  expect(weights?.shape).toEqual([4, 6, 6]);

  const json = await engine.readTensors((await saved(page, "Save weights as json")).bytes);
  expect(json.weights?.data).toEqual(weights?.data);

  const lines = (await saved(page, "Save weights as csv")).text.split("\r\n");
  expect(lines[0]).toBe('head,query,a,",","""",b,"""",c');
  expect(lines[1]).toBe("1,a,1,0,0,0,0,0");
  expect(lines).toHaveLength(4 * 6 + 2);
  expect(lines[24]?.startsWith("4,c,")).toBe(true);

  const pass = await engine.readTensors((await saved(page, "the whole pass as safetensors")).bytes);
  expect(Object.keys(pass).sort()).toEqual(
    ["concat", "context", "input", "key", "masked", "output", "query", "scaled", "scores", "value", "weights"].sort(),
  );
  expect(pass.weights?.data).toEqual(weights?.data);

  const svg = (await saved(page, "the picture as svg")).text;
  expect(svg).toMatch(/^<svg [\s\S]*first token/);
  expect((await saved(page, "the picture as png")).bytes.subarray(1, 4)).toEqual(new TextEncoder().encode("PNG"));

  await choose(page, "compare", "difference");
  const [change] = Object.values(await engine.readTensors((await saved(page, "Save weights as npy")).bytes));
  expect(change?.data.subarray(0, 6).reduce((a, b) => a + b)).toBeCloseTo(0, 5);
  engine.destroy();
});

test("with, without and difference are saved as one picture", async ({ page }) => {
  await rule(page, "causal").click();
  await choose(page, "compare", "side by side");
  await expect(page.getByTestId("trio").getByRole("grid")).toHaveCount(3);
  const picture = await saved(page, "the picture as svg");
  const titles = await page.evaluate((svg) => {
    const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
    return [...parsed.querySelectorAll("svg > svg > title, svg > text")].map(({ textContent }) => textContent);
  }, picture.text);
  expect(titles.slice(0, 1)).toEqual(["head 1, without mask"]);
  expect(titles).toHaveLength(6);
  expect((await saved(page, "the picture as png")).bytes.length).toBeGreaterThan(10_000);
});
