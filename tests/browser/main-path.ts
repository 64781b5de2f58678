// What a person does on the page first, in every browser.
import { expect, type TestType } from "@playwright/test";
import { createEngine, mask } from "../../dist/index.js";
import { attributeOf, centres, contentOf, countOf, fill, see, textOf, textsOf, type User } from "./user.ts";

const SENTENCE = "[data-testid=sentence]";
const TOKENS = "[data-testid=tokens] button";
const RULES = "[data-testid=mask-presets] button";
const MASK = "[data-testid=mask-editor] [role=grid]";
const CODE = "[data-testid=mask-code]";
const PLACE = "[data-testid=inspector-place]";
const TOOLS = "[data-testid=toolbar] button";
const CELL = "[role=gridcell]";
const choice = (testid: string, value: string) => `[data-testid=${testid}] [value="${value}"]`;
const head = (number: number) => `[role=grid][aria-label^="head ${number},"]`;
const inspected = (stage: string) => `[data-testid=inspector] li[data-stage=${stage}] [data-value]`;

const said = (user: User, grid: string) => attributeOf(user, `${grid} ${CELL}`, "aria-label");
const isPressed = (user: User, name: string) =>
  user.evaluate(
    ([css, name]) =>
      [...document.querySelectorAll(css)].find(({ textContent }) => textContent.trim() === name)?.ariaPressed,
    [RULES, name] as const,
  );
const focus = (user: User, css: string) =>
  user.evaluate((css) => document.querySelector<HTMLElement>(css)?.focus(), css);

/** Walks along a head's row: every cell is announced, and in the inspector it has its weight in full. */
async function expectRow(user: User, number: number, weights: readonly number[]): Promise<void> {
  await focus(user, head(number));
  await user.press("Home");
  for (const [key, weight] of weights.entries()) {
    if (key > 0) await user.press("ArrowRight");
    await see(() => attributeOf(user, `${head(number)} ${CELL}`, "aria-colindex")).toBe(String(key + 1));
    const spoken = (await said(user, head(number))) ?? "";
    await see(() => textOf(user, PLACE)).toBe(spoken.slice(0, spoken.lastIndexOf(", ")));
    expect(spoken.split(", ").at(-1)).toBe(weight.toFixed(2));
    await see(async () => Number(await attributeOf(user, inspected("weights"), "data-value"))).toBeCloseTo(weight, 6);
  }
}

export function mainPath(test: TestType<{ user: User }, object>): void {
  test("a sentence is there, with four heads that read it", async ({ user }) => {
    expect(await contentOf(user, SENTENCE)).toBe("the cat sat on the mat");
    await see(() => textsOf(user, "[data-testid=head-grid] figcaption b")).toEqual([
      "head 1",
      "head 2",
      "head 3",
      "head 4",
    ]);
    await see(() => textOf(user, "[data-testid=status]")).toContain("simd");
    const drawn = () =>
      user.evaluate((css) => {
        const canvas = document.querySelector(css) as HTMLCanvasElement;
        if (canvas.width * canvas.height === 0) return 0;
        // Read from a copy: a canvas that is read again and again is told to be slow.
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
        if (!copy) return 0;
        copy.drawImage(canvas, 0, 0);
        const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
        const colors = new Set<number>();
        for (let i = 0; i < data.length; i += 4) {
          const [red = 0, green = 0, blue = 0] = data.slice(i, i + 3);
          colors.add((red << 16) | (green << 8) | blue);
        }
        return colors.size;
      }, "[data-testid=head-grid] canvas");
    await see(drawn).toBeGreaterThan(10);
  });

  test("nothing is cut off, on a narrow page either", async ({ user }) => {
    const hidden = (css: string) =>
      user.evaluate((css) => {
        const { scrollWidth, clientWidth, scrollHeight, clientHeight } = document.querySelector(css) as HTMLElement;
        return [scrollWidth - clientWidth, scrollHeight - clientHeight];
      }, css);
    await fill(user, SENTENCE, "a sentence that takes more than one line there");
    await user.click(RULES, "causal");
    for (const width of [1280, 360]) {
      await user.resize(width, 800);
      await see(async () => (await hidden("html"))[0]).toBeLessThanOrEqual(0);
      await see(async () => (await hidden(SENTENCE))[1]).toBeLessThanOrEqual(1);
      await see(async () => (await hidden(CODE))[1]).toBeLessThanOrEqual(1);
    }
    const program = () => user.evaluate((css) => document.querySelector(css)?.clientHeight, "[data-testid=program]");
    expect(await program()).toBeGreaterThan(200);
  });

  test("the numbers are those of the engine, under a seed of PyTorch", async ({ user }) => {
    await user.click(choice("source", "torch"));
    await fill(user, "[data-testid=seed]", "7");
    await user.click(RULES, "causal");
    await see(() => contentOf(user, "[data-testid=program]")).toMatch(/manual_seed\(7\)[\s\S]*j <= i/);
    const engine = await createEngine();
    const generator = engine.torchGenerator(7);
    const x = await generator.rand([6, 16]);
    const attention = engine.multiHeadAttention({ dModel: 16, nHeads: 4, generator });
    const { weights } = await attention.forward(x, { mask: mask.causal() });
    engine.destroy();
    await focus(user, head(2));
    await user.press("Control+End");
    await see(() => textOf(user, PLACE)).toBe("head 2, query mat, key mat");
    await expectRow(user, 2, [...(weights?.data.subarray((6 + 5) * 6, (6 + 6) * 6) ?? [])]);
  });

  test("a sentence is typed, and its mask is painted with a drag", async ({ user }) => {
    await fill(user, SENTENCE, "we paint a mask");
    await see(() => textsOf(user, TOKENS)).toEqual(["we", "paint", "a", "mask"]);
    await user.click(RULES, "causal");
    await see(() => isPressed(user, "causal")).toBe("true");
    await user.drag(
      await centres(user, MASK, 4, [
        [3, 0],
        [3, 1],
        [3, 2],
      ]),
    );
    await see(() => isPressed(user, "painted")).toBe("true");
    await see(() => contentOf(user, CODE)).toContain("[0, 0, 0, 1]");
    // The last query is left with itself.
    await focus(user, head(1));
    await user.press("Control+End");
    await see(() => said(user, head(1))).toBe("head 1, query mask, key mask, 1.00");
    await expectRow(user, 1, [0, 0, 0, 1]);
    await see(() => textOf(user, "[data-testid=story]")).toContain("the mask freed");
  });

  test("keys move through a grid, and what they meet is announced", async ({ user }) => {
    await focus(user, head(2));
    await user.press("Control+Home");
    await see(() => said(user, head(2))).toBe("head 2, query the, key the, 0.95");
    await user.press("ArrowDown", "ArrowRight");
    await see(() => said(user, head(2))).toMatch(/^head 2, query cat, key cat, 0\.\d\d$/);
    await see(() => textsOf(user, "[data-testid=head-grid] .attn-live")).toContain(await said(user, head(2)));
    await see(() => textOf(user, PLACE)).toBe("head 2, query cat, key cat");
    await focus(user, MASK);
    await see(() => said(user, MASK)).toBe("query cat, key cat, may attend");
    await user.press(" ");
    await see(() => said(user, MASK)).toBe("query cat, key cat, hidden");
  });

  test("lines and bars show what the matrix shows", async ({ user }) => {
    await user.click(choice("look", "bars"));
    await see(() => countOf(user, "[data-testid=row-bars] canvas")).toBeGreaterThan(0);
    await focus(user, "[data-testid=row-bars] [role=grid]");
    await user.press("ArrowUp", "ArrowRight");
    const spoken = "head 2, query sat, key the, 0.95";
    await see(() => said(user, "[data-testid=row-bars]")).toBe(spoken);
    await user.click(choice("look", "lines"));
    await see(() => said(user, "[data-testid=head-lines]")).toBe(spoken);
    await user.click(choice("look", "matrix"));
    await see(() => said(user, head(2))).toBe(spoken);
  });

  test("with the mask, without it, and the difference", async ({ user }) => {
    await user.click(RULES, "causal");
    await focus(user, head(4));
    await user.press("Control+Home");
    const shown = async () => (await said(user, head(4)))?.split(", ").at(-1);
    await see(shown).toBe("1.00");
    await user.click(choice("compare", "without"));
    await see(shown).toBe("0.17");
    await user.click(choice("compare", "difference"));
    await see(shown).toMatch(/0\.83$/);
    await see(() => textOf(user, "[data-testid=effect]")).toContain("head 4, the → the");
  });

  test("the arithmetic of a cell adds up", async ({ user }) => {
    await focus(user, head(1));
    await user.press("Control+Home");
    await see(() => textOf(user, PLACE)).toBe("head 1, query the, key the");
    const value = async (stage: string) => Number(await attributeOf(user, inspected(stage), "data-value"));
    await see(async () => (await value("weights")).toFixed(2)).toBe((await said(user, head(1)))?.split(", ").at(-1));
    const products = await textsOf(user, "[data-testid=inspector] li[data-stage=scores] tbody td:last-child");
    const sum = products.reduce((sum, product) => sum + Number(product.replace("−", "-")), 0);
    expect(sum).toBeCloseTo(await value("scores"), 2);
    expect(await value("scaled")).toBeCloseTo((await value("scores")) / Math.sqrt(8), 5);
    await user.click(choice("strip", "output"));
    await see(() => countOf(user, inspected("output"))).toBe(1);
  });

  test("language, theme, a link and a reload keep the work", async ({ user }) => {
    await user.click(choice("language", "zh"));
    await see(() => attributeOf(user, "html", "lang")).toBe("zh-CN");
    await user.click(choice("language", "en"));
    const paper = () => user.evaluate(() => getComputedStyle(document.body).backgroundColor, null);
    await user.click(choice("theme", "light"));
    await see(paper).toBe("rgb(253, 252, 250)");
    await user.click(choice("theme", "dark"));
    await see(paper).toBe("rgb(20, 23, 28)");
    const hashNow = () => user.evaluate(() => location.hash, null);
    const before = await hashNow();
    await fill(user, SENTENCE, "kept in a link");
    await see(hashNow).not.toBe(before);
    await user.click(TOOLS, "Copy link");
    await see(() => textsOf(user, TOOLS)).toContain("Copied");
    const [address, hash] = await user.evaluate(() => [location.href, location.hash] as const, null);
    await user.click(SENTENCE);
    await user.press("Control+a", "Control+v");
    await see(() => contentOf(user, SENTENCE)).toBe(address);
    await fill(user, SENTENCE, "kept by storage");
    await see(hashNow).not.toBe(hash);
    await user.open("/");
    await see(() => contentOf(user, SENTENCE)).toBe("kept by storage");
    await see(paper).toBe("rgb(20, 23, 28)");
    await user.open(`/${hash}`);
    await see(() => contentOf(user, SENTENCE)).toBe("kept in a link");
  });

  test("undo and redo", async ({ user }) => {
    await fill(user, SENTENCE, "one two");
    await see(() => textsOf(user, TOKENS)).toEqual(["one", "two"]);
    await user.click(RULES, "causal");
    await focus(user, MASK);
    await user.press("Control+z");
    await see(() => isPressed(user, "none")).toBe("true");
    await user.press("Control+z");
    await see(() => contentOf(user, SENTENCE)).toBe("the cat sat on the mat");
    await user.press("Control+Shift+Z");
    await see(() => textsOf(user, TOKENS)).toEqual(["one", "two"]);
    await user.click(TOOLS, "Redo");
    await see(() => isPressed(user, "causal")).toBe("true");
  });

  test("a number is typed into the grid and computed with", async ({ user }) => {
    await user.click(choice("source", "own"));
    const cell = "[data-row='1'][data-column='1']";
    await see(() => countOf(user, cell)).toBe(1);
    await user.click(cell);
    await user.press(..."2.5", "Enter");
    await see(() => textOf(user, cell)).toBe("2.5");
    await user.press("ArrowUp", "Control+c", "ArrowRight", "Control+v");
    await see(() => textOf(user, "[data-row='1'][data-column='2']")).toBe("2.5");
    await user.click(choice("strip", "input"));
    await focus(user, "[data-testid=heads] [role=grid]");
    await user.press("Control+Home", "ArrowDown", "ArrowRight");
    await see(() => attributeOf(user, inspected("input"), "data-value")).toBe("2.5");
  });

  test("a stage is saved as a file", async ({ user }) => {
    await fill(user, SENTENCE, "a b");
    await user.click(RULES, "causal");
    await focus(user, head(1));
    await user.press("Control+Home");
    await see(() => said(user, head(1))).toBe("head 1, query a, key a, 1.00");
    const { name, text } = await user.saved("[aria-label='Save weights as csv']");
    expect(name).toBe("weights.csv");
    expect(text.split("\r\n").slice(0, 2)).toEqual(["head,query,a,b", "1,a,1,0"]);
  });
}
