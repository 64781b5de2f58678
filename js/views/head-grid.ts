import type { Place, Selection } from "../selection.ts";
import { type HeatmapOptions, heatmap } from "./heatmap.ts";
import type { Cell } from "./matrix-drawing.ts";
import { adoptStyles } from "./styles.ts";
import type { View } from "./view.ts";

/** Which of the selection's fields a stage's rows and columns are. */
export interface Axes {
  readonly row: "query" | "key";
  readonly column: "key" | "feature";
}

export type HeadGridOptions = Omit<
  HeatmapOptions,
  "matrix" | "label" | "describe" | "selected" | "isCurrent" | "onSelect" | "hidden"
> & {
  /** `[heads, rows, columns]`, row-major. */
  readonly values: { readonly data: Float32Array; readonly shape: readonly number[] };
  /** The head that each matrix is of, where that is not its place. */
  readonly heads?: readonly number[] | null;
  /** Hidden cells of all heads, `[heads, rows, columns]`, or of one matrix that holds for every head. */
  readonly hidden?: Uint8Array | null;
  /** A name for each head, and what is known of it. */
  readonly titles: readonly { readonly name: string; readonly note: string }[];
  readonly axes: Axes;
  readonly selection: Selection;
  /** The narrowest a head may become before the grid takes fewer columns. */
  readonly minWidth?: number;
  readonly label: (head: number) => string;
  readonly describe: (head: number, cell: Cell, value: number) => string;
};

interface Head {
  readonly figure: HTMLElement;
  readonly name: HTMLElement;
  readonly note: HTMLElement;
  readonly view: View<HeatmapOptions>;
}

// As many columns as fit, but no ragged last row where a smaller number divides the heads evenly.
function columnsFor(heads: number, fitting: number): number {
  const most = Math.max(1, Math.min(heads, fitting));
  for (let columns = most; columns * 2 > most; columns--) if (heads % columns === 0) return columns;
  return most;
}

/** Every head's matrix side by side, with one selection for all. */
export function headGrid(element: HTMLElement, start: HeadGridOptions): View<HeadGridOptions> {
  adoptStyles(element);
  let options = start;
  let selection = start.selection;
  const root = document.createElement("div");
  root.className = "attn-heads";
  element.append(root);
  const heads: Head[] = [];

  const sizes = () => {
    const [count = 1, rows = 1, columns = 1] = options.values.shape;
    return { count, rows, columns };
  };

  function cellOf(place: Place): Cell {
    const { rows, columns } = sizes();
    return {
      row: Math.min(place[options.axes.row], rows - 1),
      column: Math.min(place[options.axes.column], columns - 1),
    };
  }

  function toHeatmap(place: number): HeatmapOptions {
    const { rows, columns } = sizes();
    const size = rows * columns;
    const { values, heads: _, hidden, selection: __, titles: ___, axes, minWidth: ____, ...rest } = options;
    const head = options.heads?.[place] ?? place;
    const offset = hidden && hidden.length > size ? place * size : 0;
    return {
      ...rest,
      matrix: { data: values.data.subarray(place * size, (place + 1) * size), rows, columns },
      hidden: hidden ? hidden.subarray(offset, offset + size) : null,
      selected: cellOf(selection.place),
      isCurrent: selection.place.head === head || values.shape[0] === 1,
      label: options.label(head),
      describe: (cell, value) => options.describe(head, cell, value),
      onSelect: ({ row, column }) => selection.set({ head, [axes.row]: row, [axes.column]: column }),
    };
  }

  function addHead(place: number): Head {
    const figure = document.createElement("figure");
    figure.className = "attn-head";
    const caption = document.createElement("figcaption");
    const name = document.createElement("b");
    const note = document.createElement("span");
    caption.append(name, note);
    const picture = document.createElement("div");
    figure.append(caption, picture);
    root.append(figure);
    return { figure, name, note, view: heatmap(picture, toHeatmap(place)) };
  }

  function arrange(): void {
    const { count } = sizes();
    const fitting = Math.floor(element.clientWidth / (options.minWidth ?? 260));
    root.style.gridTemplateColumns = `repeat(${columnsFor(count, fitting)}, minmax(0, 1fr))`;
  }

  function show(): void {
    const { count } = sizes();
    arrange();
    for (const extra of heads.splice(count)) {
      extra.view.destroy();
      extra.figure.remove();
    }
    while (heads.length < count) heads.push(addHead(heads.length));
    heads.forEach((head, i) => {
      const title = options.titles[i];
      head.name.textContent = title?.name ?? "";
      head.note.textContent = title?.note ?? "";
      head.view.update(toHeatmap(i));
    });
  }

  function point(): void {
    heads.forEach((head, i) => {
      const { selected = null, isCurrent = true } = toHeatmap(i);
      head.view.update({ selected, isCurrent });
    });
  }

  const resize = new ResizeObserver(arrange);
  resize.observe(element);
  selection.addEventListener("change", point);
  show();

  return {
    update(change) {
      options = { ...options, ...change };
      if (options.selection !== selection) {
        selection.removeEventListener("change", point);
        selection = options.selection;
        selection.addEventListener("change", point);
      }
      show();
    },
    destroy() {
      selection.removeEventListener("change", point);
      resize.disconnect();
      for (const head of heads) head.view.destroy();
      root.remove();
    },
  };
}
