// The program on the page against what PyTorch computes with it. Recorded in tests/golden/programs.json by
//   RECORD=1 PYTHON=<a Python with torch> npx playwright test programs
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { expect, type Page } from "@playwright/test";
import { saved, test, visit } from "./bench.ts";

const RECORD = new URL("../golden/programs.json", import.meta.url);

/** NaN has no number in JSON. */
type Numbers = readonly (number | "NaN")[];

interface Recorded {
  readonly program: readonly string[];
  readonly weights: Numbers;
  readonly output: Numbers;
}

// States as links hold them: what is left out is as it is at the start.
const ruled = (rules: readonly string[], part: object = {}) => ({ terms: rules.map((rule) => ({ rule })), ...part });
const seeded = (part: object = {}) => ({ source: "torch", ...part });
const blocks = (part: object = {}) => seeded({ model: "blocks", ...part });
const own = (matrices: object, sizes: object) => ({ source: "own", own: matrices, ...sizes });

const filled = (rows: number, columns: number, at: (i: number) => number) => ({
  rows,
  columns,
  values: Float32Array.from({ length: rows * columns }, (_, i) => at(i)),
});
const typed = (rows: number, columns: number) => ({
  origin: "typed",
  weight: filled(rows, columns, (i) => ((i * 7) % 11) / 8 - 0.6),
});
const typedLinear = (rows: number, columns: number) => ({
  ...typed(rows, columns),
  bias: filled(rows, 1, (i) => i / 16 - 0.25),
});

/** A different mask painted in each of `heads` heads: head i hides every (i + 2)th cell. */
const painted = (rows: number, columns: number, heads: number) =>
  ruled(["painted"], {
    painted: {
      rows,
      columns,
      cells: Array.from({ length: heads }, (_, head) =>
        Uint8Array.from({ length: rows * columns }, (_, i) => Number(i % (head + 2) > 0)),
      ),
    },
  });

/** No query may attend to the first key, and the first query to no other. */
const firstRowEmpty = { terms: [{ rule: "causal" }, { rule: "prefix", isNegated: true }], numbers: { prefix: "1" } };

const STATES: Record<string, object> = {
  "readable heads": {},
  "readable heads, causal": { masks: [ruled(["causal"])] },
  "readable heads of another line": { sentence: "a b c", keySentence: "c d b a e" },
  "a seed": { numbers: seeded() },
  "a seed, randn, causal with −∞": {
    numbers: seeded({ draw: "randn", seed: "7" }),
    masks: [ruled(["causal"])],
    fill: "-inf",
  },
  "a seed, other head sizes": {
    numbers: seeded({ nHeads: "3", dModel: "10", dK: "5", dV: "2" }),
    masks: [ruled(["window"])],
  },
  "a seed, ALiBi": { numbers: seeded(), masks: [ruled([], { hasAlibi: true })] },
  "a seed, ALiBi under a mask": { numbers: seeded(), masks: [ruled(["causal", "padding"], { hasAlibi: true })] },
  "a seed, ALiBi under a mask, −∞": { numbers: seeded(), masks: [ruled(["causal"], { hasAlibi: true })], fill: "-inf" },
  "a row that may attend to nothing": { numbers: seeded(), masks: [ruled(["causal"]), firstRowEmpty], edited: 1 },
  "an empty row of NaN": { numbers: seeded(), masks: [painted(6, 6, 1), firstRowEmpty], edited: 1, fill: "-inf" },
  "an empty row of 0": { numbers: seeded(), masks: [firstRowEmpty], fill: "-inf", emptyRow: "zero" },
  "a mask for each head": { numbers: seeded(), masks: [painted(6, 6, 4)] },
  "heads switched off": { numbers: seeded(), heads: { off: [0, 2] }, masks: [ruled(["dilated"])] },
  "another line, drawn": {
    sentence: "a b c",
    keySentence: "c d b a e",
    numbers: seeded(),
    masks: [ruled(["padding"])],
  },
  "another line, a mask for each head": {
    sentence: "a b c",
    keySentence: "c d b a e",
    numbers: seeded({ nHeads: "2" }),
    masks: [painted(3, 5, 2)],
    fill: "-inf",
  },
  "numbers of every origin": {
    sentence: "a b a",
    numbers: own(
      {
        x: { origin: "one_hot" },
        layers: [{ query: typedLinear(4, 4), key: { origin: "identity" }, out: { origin: "zeros" } }],
      },
      { nHeads: "2", dModel: "4" },
    ),
    masks: [ruled(["causal"])],
  },
  "positions, and a W_O that is not square": {
    numbers: own(
      { x: { origin: "sinusoidal" }, layers: [{ value: { origin: "identity" }, out: typedLinear(8, 6) }] },
      { nHeads: "2", dModel: "8", dV: "3" },
    ),
    masks: [ruled(["global", "documents"])],
  },
  "a scale of one's own": { numbers: seeded({ scale: "-0.3" }), masks: [ruled(["causal"])] },
  "readable blocks": { numbers: { model: "blocks" } },
  "a block of a seed": { numbers: blocks({ nLayers: "1" }) },
  "three blocks, causal, norms before": {
    numbers: blocks({ nLayers: "3", normPlace: "before", activation: "gelu", dFf: "24" }),
    masks: [ruled(["causal"])],
    fill: "-inf",
  },
  "blocks of other sizes, heads switched off": {
    numbers: blocks({ draw: "randn", nHeads: "3", dModel: "10", dK: "5", activation: "silu", scale: "0.7" }),
    heads: { off: [1] },
    masks: [painted(6, 6, 3)],
  },
  "a decoder": { sentence: "a b c", keySentence: "c d b a e", numbers: blocks(), masks: [ruled(["causal"])] },
  "a decoder, norms before, an empty row of 0": {
    sentence: "a b c",
    keySentence: "c d",
    numbers: blocks({ normPlace: "before", activation: "gelu_tanh" }),
    masks: [firstRowEmpty],
    fill: "-inf",
    emptyRow: "zero",
  },
  "blocks of one's own": {
    sentence: "a b c",
    numbers: own(
      {
        x: { origin: "one_hot" },
        layers: [
          { query: typedLinear(4, 4), norm1: typedLinear(4, 1), linear2: { origin: "zeros" } },
          { linear1: typedLinear(8, 4), norm2: typedLinear(4, 1), out: { origin: "identity" } },
        ],
      },
      { model: "blocks", nHeads: "2", dModel: "4", dFf: "8" },
    ),
  },
  "a typed X and memory": {
    sentence: "a b c",
    keySentence: "c d",
    numbers: own({ x: typed(3, 4), memory: typed(2, 4) }, { nHeads: "1", dModel: "4" }),
  },
};

const PROGRAM = `
import json, sys
scope = {}
exec(json.load(sys.stdin), scope)
flat = lambda name: [float("%.9g" % x) if x == x else "NaN" for x in scope[name].flatten().tolist()]
json.dump(dict(weights=flat("weights"), output=flat("output")), open(sys.argv[1], "w"))
`;

function run(program: string): Pick<Recorded, "weights" | "output"> {
  const answer = test.info().outputPath("answer.json");
  execFileSync(process.env.PYTHON ?? "python3", ["-c", PROGRAM, answer], { input: JSON.stringify(program) });
  return JSON.parse(readFileSync(answer, "utf8"));
}

const recorded: Record<string, Recorded> = existsSync(RECORD) ? JSON.parse(readFileSync(RECORD, "utf8")) : {};

/** The whole program: where it is long the page shows its lists folded. */
async function copied(page: Page): Promise<string> {
  const section = page.locator("section.program");
  await section.getByRole("button", { name: "Copy" }).click();
  await expect(section.getByRole("button", { name: "Copied" })).toBeVisible();
  return page.evaluate(() => navigator.clipboard.readText());
}

function expectNear(ours: Numbers, theirs: Numbers, name: string) {
  expect(ours).toHaveLength(theirs.length);
  for (const [i, number] of theirs.entries()) {
    if (number === "NaN") expect(ours[i], `${name} ${i}`).toBe("NaN");
    else expect(Math.abs(Number(ours[i]) - number), `${name} ${i}`).toBeLessThan(1e-6 * Math.max(1, Math.abs(number)));
  }
}

test.use({ permissions: ["clipboard-read", "clipboard-write"] });

for (const [name, part] of Object.entries(STATES)) {
  test(`the program prints the page's numbers: ${name}`, async ({ page }) => {
    await visit(page, { attnscope: 1, ...part });
    const program = await copied(page);
    if (process.env.RECORD) {
      recorded[name] = { program: program.split("\n"), ...run(program) };
      const kept = Object.fromEntries(Object.keys(STATES).map((state) => [state, recorded[state]]));
      writeFileSync(RECORD, `${JSON.stringify(kept, null, 1)}\n`);
    }
    const { program: lines, weights, output } = recorded[name] ?? { program: [], weights: [], output: [] };
    expect(program.split("\n"), "the program changed: record again").toEqual(lines);
    const pass = Object.entries<Numbers[]>(JSON.parse((await saved(page, "the whole pass as json")).text));
    // Those of every layer; what the last one gives stands last.
    const ours = pass.filter(([stage]) => /(^|\.)weights$/.test(stage)).map(([, numbers]) => numbers);
    expectNear(ours.flat(Infinity) as Numbers, weights, "weights");
    expectNear(pass.at(-1)?.[1].flat(Infinity) as Numbers, output, "output");
  });
}

test("a long program is shown from its first line to its last, and a copy by hand is whole", async ({ page }) => {
  const program = page.getByTestId("program");
  await expect(program).toHaveValue(/x = torch\.tensor\(\[\[1, 0, 0, … 78 numbers\]\]\)\.float\(\)\nmemory = x/);
  await expect(program).toHaveValue(/scores = q @ k[\s\S]*\nprint\(weights\)$/);
  expect(await program.evaluate(({ scrollHeight, clientHeight }) => scrollHeight - clientHeight)).toBeLessThanOrEqual(
    0,
  );
  const whole = await copied(page);
  await program.focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Control+c");
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(whole);
  expect(whole).not.toContain("…");
});

test("every recorded program is one of the page's", () => {
  expect(Object.keys(recorded)).toEqual(Object.keys(STATES));
});
