// The notebook in examples/, run without a person: its widgets hold PyTorch's numbers, and draw them. It needs a Python that has what
// examples/requirements.txt names, which PYTHON may name.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@playwright/test";
import { HARNESS } from "./ports.ts";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const PYTHON = process.env.PYTHON ?? "python3";

interface Output {
  readonly text?: readonly string[];
  readonly data?: { readonly "application/vnd.jupyter.widget-view+json"?: { readonly model_id: string } };
}

interface Widget {
  readonly state: { readonly _esm: string; readonly shape: number[]; readonly tokens: string[]; readonly look: string };
  readonly buffers: readonly { readonly path: readonly string[]; readonly data: string }[];
}

/** The notebook after a run, as a user has it who installed the package beside it, with one more cell. */
function run(cell: string) {
  const folder = mkdtempSync(path.join(tmpdir(), "attnscope-notebook-"));
  try {
    cpSync(path.join(repository, "examples"), folder, { recursive: true });
    mkdirSync(path.join(folder, "node_modules"));
    symlinkSync(repository, path.join(folder, "node_modules/attnscope"), "junction");
    const file = path.join(folder, "attention.ipynb");
    const notebook = JSON.parse(readFileSync(file, "utf8"));
    notebook.cells.push({
      cell_type: "code",
      id: "last",
      metadata: {},
      execution_count: null,
      outputs: [],
      source: cell,
    });
    writeFileSync(file, JSON.stringify(notebook));
    execFileSync(PYTHON, ["-m", "jupyter", "execute", "--inplace", file], { cwd: folder, stdio: "pipe" });
    const { cells, metadata } = JSON.parse(readFileSync(file, "utf8"));
    const outputs: Output[] = cells.flatMap(({ outputs = [] }: { outputs?: Output[] }) => outputs);
    const widgets: Record<string, Widget> = metadata.widgets["application/vnd.jupyter.widget-state+json"].state;
    return {
      printed: outputs.flatMap(({ text = [] }) => text.join("").trim()).filter(Boolean),
      shown: outputs.flatMap(({ data }) => {
        const widget = widgets[data?.["application/vnd.jupyter.widget-view+json"]?.model_id ?? ""];
        return widget ? [widget] : [];
      }),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("the notebook's widgets hold the very numbers of PyTorch, and draw them", async ({ page }) => {
  const isReady = spawnSync(PYTHON, ["-c", "import anywidget, ipykernel, nbclient, torch"]).status === 0;
  if (!isReady) console.warn(`${PYTHON} lacks what examples/requirements.txt names: THE NOTEBOOK WAS NOT RUN`);
  test.skip(!isReady);
  test.setTimeout(180_000);

  const { printed, shown } = run("print(weights.detach().numpy().tobytes().hex())");
  expect(printed.slice(1, -1)).toEqual(["EHCADAEH"]);
  expect(shown.map(({ state: { look, shape } }) => ({ look, shape }))).toEqual(
    ["heads", "heads", "lines"].map((look) => ({ look, shape: [2, 8, 8] })),
  );
  const [, learned, lines] = shown;
  for (const widget of [learned, lines]) {
    expect(widget?.buffers.map(({ path }) => path)).toEqual([["weights"]]);
    expect(Buffer.from(widget?.buffers[0]?.data ?? "", "base64").toString("hex")).toBe(printed.at(-1));
  }

  await page.goto(HARNESS);
  for (const [i, widget] of [learned, lines].entries()) {
    await page.evaluate(async (widget) => {
      const { state, buffers } = widget as Widget;
      const script = URL.createObjectURL(new Blob([state._esm], { type: "text/javascript" }));
      const { default: drawn } = await import(script);
      const weights = new DataView(Uint8Array.from(atob(buffers[0]?.data ?? ""), (c) => c.charCodeAt(0)).buffer);
      const values: Record<string, unknown> = { ...state, weights };
      const model = { get: (name: string) => values[name], set() {}, save_changes() {}, on() {}, off() {} };
      drawn.render({ model, el: document.body });
    }, widget);
    // Where the last letter looks: at the first.
    const grid = page.getByRole("grid").nth(2 * i);
    await grid.focus();
    for (let query = 0; query < 7; query++) await page.keyboard.press("ArrowDown");
    const cell = grid.getByRole("gridcell").first();
    await expect(cell).toHaveAttribute("aria-label", /^head 1, query E, key H, /);
    const said = Number((await cell.getAttribute("aria-label"))?.split(", ").at(-1));
    expect(said).toBeCloseTo(Buffer.from(printed.at(-1) ?? "", "hex").readFloatLE(4 * 56), 2);
  }
});
