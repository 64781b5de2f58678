import { readdirSync, readFileSync } from "node:fs";
import { expect, type Page } from "@playwright/test";
import { createEngine, type Engine } from "../../dist/index.js";
import { choose, expectAccessible, saved, test } from "./bench.ts";

const SAMPLES = new URL("../golden/samples/", import.meta.url);

let engine: Engine;
test.beforeAll(async () => {
  engine = await createEngine();
});
test.afterAll(() => engine.destroy());

const cell = (page: Page, row: number, column: number) =>
  page.getByTestId("number-grid").locator(`[data-row="${row}"][data-column="${column}"]`);
const problem = (page: Page) => page.getByTestId("file-problem");

const open = (page: Page, name: string, content: string | Uint8Array) =>
  page
    .getByTestId("open-numbers")
    .setInputFiles({ name, mimeType: "application/octet-stream", buffer: Buffer.from(content) });

/** Three tokens, two heads, d_model 4. */
test.beforeEach(async ({ page }) => {
  await page.getByTestId("sentence").fill("a b c");
  await choose(page, "source", "PyTorch seed");
  await page.getByTestId("n-heads").fill("2");
  await page.getByTestId("d-model").fill("4");
  await choose(page, "source", "Own numbers");
  await expect(page.getByTestId("number-grid")).toBeVisible();
});

for (const format of ["npy", "npz", "csv", "safetensors", "json"] as const) {
  test(`a matrix in a file becomes X: ${format}`, async ({ page }) => {
    const data = Float32Array.from({ length: 18 }, (_, i) => i / 4);
    await open(page, `x.${format}`, await engine.writeTensors({ x: { data, shape: [3, 6] } }, format));
    await expect(page.getByTestId("d-model")).toHaveValue("6");
    await expect(cell(page, 2, 5)).toHaveText("4.25");
    await expect(page.getByTestId("program")).toHaveValue(/x = torch\.tensor\(\[\[0, 0\.25, 0\.5, 0\.75, 1, 1\.25\],/);
    await page.getByTestId("toolbar").getByRole("button", { name: "Undo" }).click();
    await expect(page.getByTestId("d-model")).toHaveValue("4");
    await expect(cell(page, 0, 0)).not.toHaveText("0");
  });
}

for (const format of ["npz", "safetensors", "json"] as const) {
  test(`a pass that the page saved gives its input: ${format}`, async ({ page }) => {
    const pass = await saved(page, `the whole pass as ${format}`);
    const first = await cell(page, 0, 0).textContent();
    await choose(page, "origin", "zeros");
    await expect(cell(page, 0, 0)).toHaveText("0");
    // Wherever one stands: of a pass nothing but its input is anything that could be typed.
    await choose(page, "matrix", "W_Q");
    await open(page, pass.name, pass.bytes);
    await expect(page.getByTestId("matrix").getByRole("radio", { name: "X", exact: true })).toBeChecked();
    await expect(cell(page, 0, 0)).toHaveText(first ?? "");
    await expect(problem(page)).toHaveCount(0);
    await page.getByTestId("sentence").fill("a b c d");
    await expect(page.getByTestId("tokens").getByRole("button")).toHaveCount(4);
    await open(page, pass.name, pass.bytes);
    await expect(problem(page)).toContainText(`${pass.name} has 3 rows, and there are 4 tokens.`);
    await page.getByRole("button", { name: "keys from another line" }).click();
    await choose(page, "matrix", "X_K");
    await open(page, pass.name, pass.bytes);
    await expect(problem(page)).toContainText(`${pass.name} holds a pass without the stage “key_input”.`);
  });
}

test("a state dict fills the projections, with its sizes", async ({ page }) => {
  const module = engine.multiHeadAttention({ dModel: 6, nHeads: 2, dK: 5, dV: 2, seed: 3 });
  const dict = await module.stateDict();
  await open(page, "weights.safetensors", await engine.writeTensors(dict, "safetensors"));
  await expect(page.getByTestId("d-model")).toHaveValue("6");
  await expect(page.getByTestId("d-k")).toHaveValue("5");
  await expect(page.getByTestId("d-v")).toHaveValue("2");
  await choose(page, "matrix", "W_O");
  await expect(page.getByTestId("number-grid")).toHaveAttribute("aria-rowcount", "7");
  const written = Number(await cell(page, 1, 3).textContent());
  expect(Math.fround(written)).toBe(dict["out.weight"]?.data[4 + 3]);
  // The bias stands behind the last column.
  expect(Math.fround(Number(await cell(page, 2, 4).textContent()))).toBe(dict["out.bias"]?.data[2]);
});

test("what a file fills is shown", async ({ page }) => {
  const dict = await engine.multiHeadAttention({ dModel: 4, nHeads: 2 }).stateDict();
  await open(page, "weights.npz", await engine.writeTensors(dict, "npz"));
  await expect(page.getByTestId("matrix").getByRole("radio", { name: "W_Q" })).toBeChecked();
  await open(page, "x.csv", "1,2,3,4\n5,6,7,8\n9,10,11,12\n");
  await expect(page.getByTestId("matrix").getByRole("radio", { name: "X", exact: true })).toBeChecked();
  await page.getByRole("button", { name: "keys from another line" }).click();
  await page.getByTestId("key-sentence").fill("a b");
  await choose(page, "matrix", "X_K");
  await open(page, "memory.csv", "1,2,3,4\n5,6,7,8\n");
  await expect(cell(page, 1, 3)).toHaveText("8");
  await choose(page, "matrix", "X");
  await expect(cell(page, 2, 3)).toHaveText("12");
});

test("PyTorch's own names, fused and without a bias", async ({ page }) => {
  const tensor = (rows: number, columns: number) => ({
    data: Float32Array.from({ length: rows * columns }, (_, i) => i / 8),
    shape: [rows, columns],
  });
  const dict = { in_proj_weight: tensor(24, 8), "out_proj.weight": tensor(8, 8) };
  await open(page, "mha.npz", await engine.writeTensors(dict, "npz"));
  await expect(page.getByTestId("d-model")).toHaveValue("8");
  await expect(page.getByTestId("d-k")).toHaveValue("");
  await choose(page, "matrix", "W_K");
  await expect(cell(page, 0, 1)).toHaveText("8.125");
  await expect(cell(page, 0, 8)).toHaveText("0");
});

test("what PyTorch saves, in every container", async ({ page }) => {
  const names = readdirSync(SAMPLES).filter((name) => name.startsWith("seedA"));
  expect(names).toContain("seedA_checkpoint.pt");
  await choose(page, "matrix", "W_Q");
  for (const name of names) {
    await choose(page, "origin", "zeros");
    await expect(cell(page, 0, 0)).toHaveText("0");
    await open(page, name, readFileSync(new URL(name, SAMPLES)));
    await expect(cell(page, 0, 0), name).toHaveText(/^-?0\.\d+$/);
    await expect(page.getByTestId("d-model"), name).toHaveValue("8");
    await expect(problem(page)).toHaveCount(0);
  }
});

test("a file is dropped anywhere", async ({ page }) => {
  await page.evaluate(() => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(["1,2,3,4\n5,6,7,8\n9,10,11,12\n"], "x.csv"));
    const target = document.querySelector("footer") as HTMLElement;
    target.dispatchEvent(new DragEvent("dragover", { dataTransfer, bubbles: true, cancelable: true }));
    target.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
  });
  await expect(cell(page, 2, 3)).toHaveText("12");
});

test("a file that does not fit says where and what, and nothing is lost", async ({ page }) => {
  await open(page, "x.csv", "1,2,3,4\n5,6,7,8\n9,10,11,12\n");
  await expect(cell(page, 2, 3)).toHaveText("12");
  const tensor = (...shape: number[]) => ({ data: new Float32Array(shape.reduce((a, b) => a * b)), shape });
  const dict = await engine.multiHeadAttention({ dModel: 4, nHeads: 2 }).stateDict();
  const { "key.weight": _, ...partly } = dict;
  const write = (tensors: Parameters<Engine["writeTensors"]>[0]) => engine.writeTensors(tensors, "npz");
  const refused: [string, string | Uint8Array, string][] = [
    ["a.csv", "1,2,3,4\n5,6,7,8\n9,10,abc,12\n", 'a.csv, row 3, column 3: found "abc", expected a number.'],
    [
      "a.csv",
      "1,2,3,4\n5,6,7,8\n9,10\n",
      "a.csv, row 3, column 2: found a row of 2 numbers, expected 4, as the first.",
    ],
    ["a.pt", new Uint8Array([0, 1, 2, 255]), "a.pt, byte "],
    ["a.csv", "1,2,3,4\n5,6,7,8\n", "a.csv has 2 rows, and there are 3 tokens."],
    ["a.csv", "1,2,3\n5,6,7\n9,10,11\n", "a.csv: 2 heads do not divide 3."],
    ["a.npz", await write({ x: tensor(2, 3, 4) }), "a.npz, x: the shape [2,3,4] is not that of a matrix."],
    ["a.npz", await write({ x: tensor(3, 5000) }), "a.npz: a size of 5000 is more than 4096."],
    ["a.npz", await write(partly), "a.npz, key.weight: found nothing, expected shape [4, 4]."],
    [
      "a.npz",
      await write({ a: tensor(4, 4), b: tensor(4, 4) }),
      "a.npz, a: found an entry that the module does not have",
    ],
  ];
  for (const [name, content, said] of refused) {
    await open(page, name, content);
    await expect(problem(page)).toContainText(said);
    await expect(problem(page)).toContainText("The numbers are as they were.");
    await expect(cell(page, 2, 3)).toHaveText("12");
    await expect(page.getByTestId("d-model")).toHaveValue("4");
  }
  await page.getByRole("radio", { name: "中文" }).check();
  await expect(problem(page)).toContainText("a.npz，a：");
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 800 });
    await expectAccessible(page);
  }
  await open(page, "x.csv", "1,2,3,4\n5,6,7,8\n9,10,11,13\n");
  await expect(cell(page, 2, 3)).toHaveText("13");
  await expect(problem(page)).toHaveCount(0);
});
