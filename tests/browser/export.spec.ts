import { expect, type Page, test } from "@playwright/test";
import { HARNESS } from "./ports.ts";

declare const views: typeof import("attnscope/views");
declare const attnscope: typeof import("attnscope");

const errors: string[] = [];

test.beforeEach(async ({ page }) => {
  errors.length = 0;
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(HARNESS);
  await page.waitForFunction(() => "views" in globalThis);
});

test.afterEach(() => {
  expect(errors).toEqual([]);
});

interface Exported {
  readonly svg: string;
  readonly texts: readonly string[];
  readonly isXml: boolean;
  readonly width: number;
  readonly height: number;
  readonly type: string;
  /** How many different colours the PNG has. */
  readonly colors: number;
}

/** Makes a view of `heads` heads of `n` tokens and gives what it exports. */
function exported(
  page: Page,
  view: "headGrid" | "headLines",
  tokens: readonly string[],
  heads: number,
): Promise<Exported> {
  return page.evaluate(
    async ({ view, tokens, heads }) => {
      document.body.innerHTML = '<div id="at" style="inline-size: 700px"></div>';
      const n = tokens.length;
      const data = Float32Array.from({ length: heads * n * n }, (_, i) => ((i * 7919) % 1000) / 1000);
      const common = {
        values: { data, shape: [heads, n, n] },
        rowLabels: tokens,
        columnLabels: tokens,
        titles: Array.from({ length: heads }, (_, head) => ({ name: `head ${head + 1}`, note: "" })),
        selection: new attnscope.Selection(),
        describe: () => "",
      };
      const element = document.querySelector("#at") as HTMLElement;
      const made =
        view === "headLines"
          ? views.headLines(element, { ...common, label: "lines" })
          : views.headGrid(element, {
              ...common,
              axes: { row: "query", column: "key" },
              label: (head) => `head ${head + 1}`,
            });
      const svg = made.toSvg();
      const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
      const blob = await made.toPng();
      const bitmap = await createImageBitmap(blob);
      const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
      const context = canvas.getContext("2d") as OffscreenCanvasRenderingContext2D;
      context.drawImage(bitmap, 0, 0);
      const { data: pixels } = context.getImageData(0, 0, bitmap.width, bitmap.height);
      return {
        svg,
        texts: [...parsed.querySelectorAll("text")].map(({ textContent }) => textContent ?? ""),
        isXml: parsed.querySelector("parsererror") === null,
        width: bitmap.width,
        height: bitmap.height,
        type: blob.type,
        colors: new Set(new Uint32Array(pixels.buffer)).size,
      };
    },
    { view, tokens, heads },
  );
}

const TOKENS = ["我", "עברית", "👩‍👩‍👧", " ", "\ud83d", "</script>", "\u0000\uffff", "w".repeat(200)];

for (const view of ["headGrid", "headLines"] as const) {
  test(`${view}: an SVG that is XML, a PNG with the picture in it`, async ({ page }) => {
    const { isXml, texts, type, width, height, colors } = await exported(page, view, TOKENS, 3);
    expect(isXml).toBe(true);
    expect(texts).toEqual(expect.arrayContaining(["head 1", "head 3", "我", "␣", "</script>"]));
    expect(type).toBe("image/png");
    expect(Math.min(width, height)).toBeGreaterThan(300);
    expect(colors).toBeGreaterThan(40);
  });
}

test("a matrix too large for an element a cell is an image of blocks", async ({ page }) => {
  const tokens = Array.from({ length: 300 }, (_, i) => `t${i}`);
  const { svg, isXml, colors } = await exported(page, "headGrid", tokens, 2);
  expect(isXml).toBe(true);
  expect(svg.length).toBeLessThan(2_000_000);
  expect(svg.match(/<image /g)).toHaveLength(2);
  expect(colors).toBeGreaterThan(40);
});
