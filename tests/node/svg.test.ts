import { expect, test } from "vitest";
import { Selection } from "../../js/selection.ts";
import { barsSvg } from "../../js/views/bars-svg.ts";
import { type HeatOptions, resolve } from "../../js/views/heat-picture.ts";
import { legendSvg } from "../../js/views/legend-svg.ts";
import { linesSvg } from "../../js/views/lines-svg.ts";
import { matrixSvg } from "../../js/views/matrix-svg.ts";
import { Peaks } from "../../js/views/peaks.ts";
import { scaleTo } from "../../js/views/scale.ts";
import { colorsOf, pictureOf } from "../../js/views/svg.ts";
import { Viewport } from "../../js/views/viewport.ts";

const QUERIES = ["the", "猫", " ", "</script>"];
const KEYS = ["the", "猫", "sat"];

/** 4 queries by 3 keys; the last query's third key is hidden. */
const WEIGHTS = Float32Array.of(1, 0, 0, 0.25, 0.75, 0, 0.2, 0.3, 0.5, 0.4, 0.6, 0);
const HIDDEN = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);

function heatSvg(change: Partial<HeatOptions>, data: Float32Array = WEIGHTS, dark = false): string {
  const options = resolve<HeatOptions>(
    { rowLabels: QUERIES, columnLabels: KEYS, label: "weights", describe: () => "", sums: "Σ", ...change },
    new Viewport(),
  );
  const { transposed, scale: kind, palette } = options;
  const peaks = new Peaks(
    { data, rows: 4, columns: 3 },
    { hidden: HIDDEN, hiddenKeepsColor: false, byRow: kind === "row", transposed },
  );
  peaks.advance(Number.POSITIVE_INFINITY);
  const scale = scaleTo(peaks.reach, palette, kind);
  const colors = colorsOf(dark);
  const shown = { ...scale, outside: peaks.outside };
  const parts = [matrixSvg(options, peaks, scale, colors), legendSvg(shown, "hidden", "row maximum", colors)];
  return pictureOf(options.label, parts, colors);
}

/** The texts of a picture and where they stand. */
function textsOf(svg: string): { words: string; x: number; y: number }[] {
  return [...svg.matchAll(/<text([^>]*)>([^<]*)<\/text>/g)].map(([, attributes = "", words = ""]) => {
    const turned = attributes.match(/translate\(([\d.]+) ([\d.]+)\)/);
    const number = (name: string) => Number(attributes.match(new RegExp(` ${name}="([\\d.-]+)"`))?.[1]);
    return { words, x: turned ? Number(turned[1]) : number("x"), y: turned ? Number(turned[2]) : number("y") };
  });
}

test("weights: queries down, keys across", async () => {
  const svg = heatSvg({});
  await expect(svg).toMatchFileSnapshot("svg/weights.svg");
  const texts = textsOf(svg);
  const cell = (words: string) => texts.find((text) => text.words === words) ?? { x: 0, y: 0 };
  // Query 猫 (row 1) gives 0.75 to key 猫 and 0.25 to key the: both stand in one line, the first key to the left.
  expect(cell("0.25").y).toBe(cell("0.75").y);
  expect(cell("0.25").x).toBeLessThan(cell("0.75").x);
  expect(texts.map(({ words }) => words)).toEqual(expect.arrayContaining(["key →", "query ↓", "␣", "&lt;/script&gt;"]));
});

test("transposed: keys down, queries across, each number with its own query and key", async () => {
  const svg = heatSvg({ transposed: true });
  await expect(svg).toMatchFileSnapshot("svg/weights-transposed.svg");
  const texts = textsOf(svg);
  const cell = (words: string) => texts.find((text) => text.words === words) ?? { x: 0, y: 0 };
  expect(cell("0.25").x).toBe(cell("0.75").x);
  expect(cell("0.25").y).toBeLessThan(cell("0.75").y);
  expect(texts.map(({ words }) => words)).toEqual(expect.arrayContaining(["query →", "key ↓"]));
});

test("signed numbers, NaN and infinity, on a dark page", async () => {
  const data = Float32Array.of(-2, 1, 0, Number.NaN, Infinity, -Infinity, 0.5, 2, -1, 0, 1, 9);
  await expect(heatSvg({ palette: "diverging", scale: "log" }, data, true)).toMatchFileSnapshot("svg/signed-dark.svg");
});

test("by row maximum", async () => {
  await expect(heatSvg({ scale: "row" })).toMatchFileSnapshot("svg/by-row.svg");
});

test("lines of two heads", async () => {
  const colors = colorsOf(false);
  const parts = linesSvg(
    {
      values: { data: Float32Array.from([...WEIGHTS, ...WEIGHTS.slice().reverse()]), shape: [2, 4, 3] },
      rowLabels: QUERIES,
      columnLabels: KEYS,
      titles: [
        { name: "head 1", note: "the same word" },
        { name: "head 2", note: "" },
      ],
      selection: new Selection({ query: 1, key: 2 }),
      label: "lines",
      describe: () => "",
    },
    new Set([0, 1]),
    colors,
  );
  await expect(pictureOf("lines", parts, colors)).toMatchFileSnapshot("svg/lines.svg");
});

test("bars of a head that is switched off say so", () => {
  const bars = barsSvg(
    {
      values: { data: Float32Array.from([...WEIGHTS, ...WEIGHTS]), shape: [2, 4, 3] },
      rowLabels: QUERIES,
      columnLabels: KEYS,
      titles: [
        { name: "head 1", note: "" },
        { name: "head 2", note: "off · previous token 0.94" },
      ],
      selection: new Selection({ query: 1 }),
      label: "bars",
      describe: () => "",
    },
    colorsOf(false),
  );
  const words = textsOf(pictureOf("bars", [bars], colorsOf(false))).map(({ words }) => words);
  expect(words).toEqual(expect.arrayContaining(["head 1", "head 2", "off · previous toke…"]));
});

test("a token is cut between what is read as one character, never inside", () => {
  const family = "👩‍👩‍👧‍👦";
  const accented = "e\u0301";
  const rowLabels = [family, family.repeat(9), accented.repeat(20), "猫".repeat(20)];
  const words = textsOf(heatSvg({ rowLabels })).map(({ words }) => words);
  const cut = [`${family.repeat(4)}…`, `${accented.repeat(15)}…`, `${"猫".repeat(7)}…`];
  expect(words).toEqual(expect.arrayContaining([family, ...cut]));
});
