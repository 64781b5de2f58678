// The page as one file, opened from a disk in a browser that has no network.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { type BrowserContext, test as base, expect, type Page } from "@playwright/test";
import { createEngine, type Engine, type Tensor } from "../../dist/index.js";
import { packed } from "../../www/src/packed.ts";
import { tokenize } from "../../www/src/tokens.ts";
import { choose, expectAccessible, head, rule, said, saved, test } from "./bench.ts";

let folder: string;
let engine: Engine;
test.beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "attnscope-"));
  engine = await createEngine();
});
test.afterAll(async () => {
  engine.destroy();
  await rm(folder, { recursive: true });
});

const HOSTILE = "</script> <!-- <script> ]]> \u2028 \u0000 \ud83d $& $` 我 👩‍👩‍👧";
const SENTENCE = `${HOSTILE} ${"the cat sat on a mat ".repeat(12)}`;
const TOKENS = tokenize(SENTENCE).length;
const HEADS = 8;
const D_MODEL = 256;

/** Far larger than a link: numbers of one's own, a mask painted for each head, hostile tokens. */
function largeState(): string {
  let seed = 1;
  const random = () => {
    seed = (seed * 16807) % 2147483647;
    return seed / 2147483647;
  };
  const painted = () => Uint8Array.from({ length: TOKENS * TOKENS }, () => Number(random() < 0.7));
  const typed = (rows: number) => ({
    origin: "typed",
    weight: {
      rows,
      columns: D_MODEL,
      values: Float32Array.from({ length: rows * D_MODEL }, () => (random() - 0.5) / 4),
      wrong: [{ row: 1, column: 2, typed: HOSTILE }],
    },
  });
  const state = {
    attnscope: 1,
    sentence: SENTENCE,
    numbers: {
      source: "own",
      nHeads: String(HEADS),
      dModel: String(D_MODEL),
      own: { x: typed(TOKENS), layers: [{ query: typed(D_MODEL), key: typed(D_MODEL) }] },
    },
    masks: [
      {
        terms: [{ rule: "painted" }],
        painted: { rows: TOKENS, columns: TOKENS, cells: Array.from({ length: HEADS }, painted) },
      },
    ],
    fill: "-inf",
    emptyRow: "zero",
    place: { head: 5, query: 7, key: 3 },
  };
  return JSON.stringify(state, packed);
}

const toolbar = (page: Page, name: string) => page.getByTestId("toolbar").getByRole("button", { name, exact: true });

/** What a button of the toolbar saves, and where. */
async function savedBy(page: Page, button: string): Promise<{ file: string; text: string }> {
  const saving = page.waitForEvent("download");
  await toolbar(page, button).click();
  const download = await saving;
  const file = path.join(await mkdtemp(path.join(folder, "saved-")), download.suggestedFilename());
  await download.saveAs(file);
  return { file, text: await readFile(file, "utf8") };
}

const open = (page: Page, name: string, content: string | Buffer) =>
  page.getByTestId("open-state").setInputFiles({ name, mimeType: "text/html", buffer: Buffer.from(content) });

async function pass(page: Page): Promise<Record<string, Tensor>> {
  return engine.readTensors((await saved(page, "the whole pass as safetensors")).bytes);
}

/** Within what another kernel rounds otherwise. */
function expectSameNumbers(found: Record<string, Tensor>, expected: Record<string, Tensor>) {
  expect(Object.keys(found)).toEqual(Object.keys(expected));
  for (const [name, { data, shape }] of Object.entries(expected)) {
    expect(found[name]?.shape).toEqual(shape);
    const most = data.reduce((most, x) => (Number.isFinite(x) ? Math.max(most, Math.abs(x)) : most), 0);
    const differs = found[name]?.data.findIndex((x, i) => {
      const other = data[i] as number;
      return !Object.is(x, other) && !(Math.abs(x - other) <= 1e-5 * most);
    });
    expect(differs, name).toBe(-1);
  }
}

/** Opens a file in a tab of its own, and sees that it asks for nothing and keeps its policy. */
async function opened(context: BrowserContext, file: string): Promise<{ page: Page; expectQuiet(): Promise<void> }> {
  const page = await context.newPage();
  const url = pathToFileURL(file).href;
  const noise: string[] = [];
  page.on("request", (request) => {
    const asked = request.url();
    if (asked !== url && !/^(blob|data):/.test(asked)) noise.push(asked);
  });
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) noise.push(message.text());
  });
  page.on("pageerror", (error) => noise.push(error.message));
  await page.addInitScript(() => {
    const broken: string[] = [];
    Object.assign(globalThis, { broken });
    document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => {
      broken.push(`${violatedDirective}: ${blockedURI}`);
    });
  });
  await page.goto(url);
  await expect(page.getByTestId("status")).toContainText("simd");
  await expect(page.getByTestId("head-grid")).toBeVisible();
  const expectQuiet = async () => {
    expect(await page.evaluate(() => (globalThis as unknown as { broken: string[] }).broken)).toEqual([]);
    expect(noise).toEqual([]);
  };
  return { page, expectQuiet };
}

test("a state of any size is saved as a page, which opens from a disk without a network", async ({ page, browser }) => {
  await open(page, "large.json", largeState());
  await expect(page.getByTestId("notices")).toContainText("too large for a link");
  await expect(head(page, 6)).toHaveAttribute("aria-rowcount", String(TOKENS));
  const numbers = await pass(page);
  const state = (await savedBy(page, "Save")).text;
  const { file, text } = await savedBy(page, "Save as page");
  expect(path.basename(file)).toBe("attnscope.html");
  const policy = /http-equiv="Content-Security-Policy"\s+content="([^"]+)"/.exec(text)?.[1] ?? "";
  expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-[^']+' 'wasm-unsafe-eval'; worker-src blob:;/);
  expect(policy).not.toMatch(/unsafe-inline|'unsafe-eval'|\*|https?:|connect-src|'self'/);

  const context = await browser.newContext({ offline: true });
  const there = await opened(context, file);
  expect((await savedBy(there.page, "Save")).text === state).toBe(true);
  expectSameNumbers(await pass(there.page), numbers);
  await expect(there.page.getByTestId("sentence")).toHaveValue(JSON.parse(state).sentence);
  await expect(there.page.getByTestId("notices")).toContainText("too large for a link");
  expect(await there.page.evaluate(() => navigator.serviceWorker?.controller ?? null)).toBeNull();
  await there.expectQuiet();

  // A page saved from the file is as the first one but for its state.
  const second = await savedBy(there.page, "Save as page");
  const third = await opened(context, second.file);
  expect((await savedBy(third.page, "Save")).text === state).toBe(true);
  expect((await savedBy(third.page, "Save as page")).text === second.text).toBe(true);
  expectSameNumbers(await pass(third.page), numbers);
  await third.expectQuiet();
  await context.close();
});

test("what is done in the file is computed there, and stays until it is opened again", async ({ page, browser }) => {
  await page.getByTestId("sentence").fill("</script> a <!-- b");
  await choose(page, "source", "PyTorch seed");
  await rule(page, "causal").click();
  const { file } = await savedBy(page, "Save as page");
  const context = await browser.newContext({ offline: true });
  const { page: there, expectQuiet } = await opened(context, file);
  const weight = async () => {
    await head(there, 1).focus();
    await there.keyboard.press("Control+Home");
    await there.keyboard.press("ArrowDown");
    return said(head(there, 1));
  };
  const before = await weight();
  await expect(there.getByTestId("sentence")).toHaveValue("</script> a <!-- b");
  await expect(rule(there, "causal")).toHaveAttribute("aria-pressed", "true");

  await there.getByTestId("seed").fill("7");
  await expect.poll(weight).not.toBe(before);
  const after = await weight();
  await there.reload();
  await expect(there.getByTestId("seed")).toHaveValue("7");
  await expect.poll(weight).toBe(after);
  await toolbar(there, "Undo").click();
  await expect(there.getByTestId("seed")).toHaveValue("42");
  await toolbar(there, "Redo").click();

  // Numbers that no link can hold, and a file of tensors.
  await choose(there, "source", "Own numbers");
  const data = Float32Array.from({ length: 10 * 512 }, (_, i) => Math.sin(i * i));
  const tensors = await engine.writeTensors({ x: { data, shape: [10, 512] } }, "npy");
  await there
    .getByTestId("open-numbers")
    .setInputFiles({ name: "x.npy", mimeType: "application/octet-stream", buffer: Buffer.from(tensors) });
  await expect(there.getByTestId("d-model")).toHaveValue("512");
  await expect(there.getByTestId("notices")).toContainText("too large for a link");
  await there.reload();
  await expect(there.getByTestId("d-model")).toHaveValue("512");
  const address = there.url();

  const again = await opened(context, file);
  await expect(again.page.getByTestId("seed")).toHaveValue("42");
  await expect(toolbar(again.page, "Undo")).toBeDisabled();
  await again.expectQuiet();
  // In the same tab too.
  await there.goto("about:blank");
  await there.goto(address);
  await expect(there.getByTestId("seed")).toHaveValue("42");
  await expectQuiet();
  await context.close();
});

test("a link to the file opens what the link says, in either language", async ({ page, browser }) => {
  const { file } = await savedBy(page, "Save as page");
  const context = await browser.newContext({ offline: true });
  const first = await opened(context, file);
  await expect(first.page).toHaveURL(/#/);
  const opening = first.page.url();
  await first.page.getByTestId("sentence").fill("another line");
  await expect(first.page).not.toHaveURL(opening);
  const address = first.page.url();
  const { page: second, expectQuiet } = await opened(context, file);
  await second.goto("about:blank");
  await second.goto(address);
  await expect(second.getByTestId("sentence")).toHaveValue("another line");
  await toolbar(second, "Undo").click();
  await expect(second.getByTestId("sentence")).toHaveValue("the cat sat on the mat");
  await second.getByRole("radio", { name: "中文" }).check();
  await expect(toolbar(second, "存为网页")).toBeVisible();
  await second.getByTestId("theme").getByRole("radio", { name: "深色" }).check();
  await expectAccessible(second);
  expect((await saved(second, "图像存为 png")).bytes.subarray(1, 4)).toEqual(new TextEncoder().encode("PNG"));
  await expectQuiet();
  await context.close();
});

test("where the address cannot be changed nothing is lost, and a link can be copied", async ({ page, browser }) => {
  const { file } = await savedBy(page, "Save as page");
  const context = await browser.newContext({ offline: true, permissions: ["clipboard-read", "clipboard-write"] });
  await context.addInitScript(() => {
    history.replaceState = () => {
      throw new DOMException("refused", "SecurityError");
    };
  });
  const { page: there, expectQuiet } = await opened(context, file);
  await there.getByTestId("sentence").fill("another line");
  await there.reload();
  await expect(there.getByTestId("sentence")).toHaveValue("another line");
  expect(new URL(there.url()).hash).toBe("");
  await toolbar(there, "Copy link").click();
  await expect(toolbar(there, "Copied")).toBeVisible();
  const copied = await there.evaluate(() => navigator.clipboard.readText());
  await expectQuiet();
  const { page: second } = await opened(context, file);
  await second.goto("about:blank");
  await second.goto(copied);
  await expect(second.getByTestId("sentence")).toHaveValue("another line");
  await context.close();
});

test("the page opens a saved page, and refuses what is none", async ({ page }) => {
  await page.getByTestId("sentence").fill("</script> kept");
  await rule(page, "causal").click();
  const { text } = await savedBy(page, "Save as page");
  await page.getByTestId("sentence").fill("other work");
  await rule(page, "none").click();
  await open(page, "attnscope.html", text);
  await expect(page.getByTestId("sentence")).toHaveValue("</script> kept");
  await expect(rule(page, "causal")).toHaveAttribute("aria-pressed", "true");

  const withState = (state: string) => text.replace(/(<script[^>]* id="state">).*?(?=<\/script>)/, `$1${state}`);
  const hostile: [string, RegExp][] = [
    ["<!doctype html><title>x</title>", /damaged/],
    [text.slice(0, text.indexOf('id="state">') + 30), /damaged/],
    [withState(""), /damaged/],
    [withState('{"attnscope":2}'), /newer/],
    [withState('{"attnscope":1,"fill":"0"}'), /fill is out of range/],
  ];
  for (const [content, message] of hostile) {
    await open(page, "a.html", content);
    await expect(page.getByTestId("notices")).toContainText(message);
    await page.getByRole("button", { name: "Dismiss" }).click();
    await expect(page.getByTestId("sentence")).toHaveValue("</script> kept");
  }
});

test("a file whose state cannot be read says so, and works", async ({ page, browser }) => {
  const { file, text } = await savedBy(page, "Save as page");
  const damaged = path.join(path.dirname(file), "damaged.html");
  await writeFile(damaged, text.replace('id="state">{', 'id="state">{"fill":"0",'));
  const context = await browser.newContext({ offline: true });
  const there = await opened(context, damaged);
  await expect(there.page.getByTestId("notices")).toContainText("fill is out of range");
  await expect(there.page.getByTestId("sentence")).toHaveValue("the cat sat on the mat");
  await there.expectQuiet();
  await context.close();
});

base("without a network the page says that it cannot be saved, and can once it was", async ({ page, context }) => {
  await page.goto("/");
  await expect(page.getByTestId("status")).toContainText("simd");
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  const isKept = () => page.evaluate(async () => (await caches.match("./attnscope.html")) !== undefined);
  expect(await isKept()).toBe(false);
  await page.getByTestId("sentence").fill("my own work");

  await context.setOffline(true);
  await toolbar(page, "Save as page").click();
  await expect(page.getByTestId("notices")).toContainText("could not be fetched");
  await expect(page.getByTestId("sentence")).toHaveValue("my own work");

  await context.setOffline(false);
  await savedBy(page, "Save as page");
  await expect(page.getByTestId("notices")).not.toContainText("could not be fetched");
  await expect.poll(isKept).toBe(true);
  await context.setOffline(true);
  expect((await savedBy(page, "Save as page")).text.includes("my own work")).toBe(true);
});
