import type { Cell } from "./matrix.ts";
import { adoptStyles } from "./styles.ts";
import { ZOOM_STEP } from "./surface.ts";
import type { View } from "./view.ts";
import type { Viewport } from "./viewport.ts";

/** The words of the buttons that zoom, and of the fields that go to a cell. */
export interface ZoomText {
  /** Of the button that makes cells larger. */
  readonly zoomIn: string;
  /** Of the button that makes cells smaller. */
  readonly zoomOut: string;
  /** Of the button that shows all again. */
  readonly whole: string;
  /** Where to go on an axis, counted from 0. */
  readonly goTo: (axis: string) => string;
}

interface ZoomBarOptions {
  readonly viewport: Viewport;
  readonly rows: number;
  readonly columns: number;
  readonly rowAxis: string;
  readonly columnAxis: string;
  readonly text: ZoomText | undefined;
  readonly selected: Cell;
  readonly onSelect: (cell: Cell) => void;
}

const ENGLISH: ZoomText = {
  zoomIn: "zoom in",
  zoomOut: "zoom out",
  whole: "the whole matrix",
  goTo: (axis) => `${axis} number, from 0`,
};

/** From this size on a matrix is not read at a glance. */
const LARGE = 24;

/** Zooms and goes to a cell by its numbers, where a matrix is too large to be read whole. */
export function zoomBar(element: HTMLElement, start: ZoomBarOptions): View<ZoomBarOptions> {
  adoptStyles(element);
  let options = start;
  const root = document.createElement("div");
  root.className = "attn-zoom";
  element.append(root);

  function button(sign: string, factor: number): HTMLButtonElement {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = sign;
    made.addEventListener("click", () => {
      const { selected, rows, columns, viewport } = options;
      viewport.zoomAtCell(factor, selected, rows, columns);
    });
    return made;
  }

  function field(axis: keyof Cell): [HTMLLabelElement, HTMLSpanElement, HTMLInputElement] {
    const label = document.createElement("label");
    const name = document.createElement("span");
    const input = document.createElement("input");
    input.type = "number";
    input.min = "0";
    input.required = true;
    input.addEventListener("input", () => {
      // The browser says in its own words what may stand here.
      const isThere = input.reportValidity();
      input.ariaInvalid = String(!isThere);
      if (isThere) options.onSelect({ ...options.selected, [axis]: input.valueAsNumber });
    });
    // What is left wrong goes back to what is selected.
    input.addEventListener("blur", show);
    label.append(name, input);
    return [label, name, input];
  }

  const [out, into, whole] = [button("−", 1 / ZOOM_STEP), button("+", ZOOM_STEP), button("⤢", 0)];
  const [rowLabel, rowName, rowInput] = field("row");
  const [columnLabel, columnName, columnInput] = field("column");
  root.append(rowLabel, columnLabel, out, into, whole);

  function show(): void {
    const { rows, columns, rowAxis, columnAxis, selected, text = ENGLISH } = options;
    root.hidden = Math.max(rows, columns) <= LARGE;
    if (root.hidden) return;
    for (const [made, words] of [
      [out, text.zoomOut],
      [into, text.zoomIn],
      [whole, text.whole],
    ] as const) {
      made.setAttribute("aria-label", words);
      made.title = words;
    }
    for (const [name, input, axis, count, at] of [
      [rowName, rowInput, rowAxis, rows, selected.row],
      [columnName, columnInput, columnAxis, columns, selected.column],
    ] as const) {
      name.textContent = axis;
      input.setAttribute("aria-label", text.goTo(axis));
      input.max = String(count - 1);
      if (document.activeElement === input) continue;
      input.value = String(at);
      input.ariaInvalid = "false";
    }
  }

  show();
  return {
    update(change) {
      options = { ...options, ...change };
      show();
    },
    destroy() {
      root.remove();
    },
  };
}
