import type { DeviceTensor, Outside, Region } from "../device.ts";
import type { Place, Selection } from "../selection.ts";
import { checked, HIDDEN, isCall, isPair, type Rule, sized } from "./checked.ts";
import { type AnyPeaks, close, DevicePeaks, isOnDevice, wholeOf } from "./device-peaks.ts";
import { type PictureView, png } from "./exported.ts";
import { cancel, type Drawing, request } from "./frames.ts";
import {
  type HeatLook,
  type HeatOptions,
  heatPicture,
  isSameBeside,
  isSameLook,
  resolve,
  type Shown,
} from "./heat-picture.ts";
import { type LegendOptions, legend } from "./legend.ts";
import { legendSvg } from "./legend-svg.ts";
import { type Cell, isSameData } from "./matrix.ts";
import { cellsIn, layOut, longer } from "./matrix-drawing.ts";
import { type MatrixSurfaceOptions, matrixSurface } from "./matrix-surface.ts";
import { matrixSvg } from "./matrix-svg.ts";
import { Peaks } from "./peaks.ts";
import { type ColorScale, scaleTo } from "./scale.ts";
import { adoptStyles } from "./styles.ts";
import type { Surface } from "./surface.ts";
import { colorsOf, type Part, pictureOf, placed, text } from "./svg.ts";
import { type Theme, themeOf } from "./theme.ts";
import type { View } from "./view.ts";
import { Viewport } from "./viewport.ts";
import { type ZoomText, zoomBar } from "./zoom-bar.ts";

/** Which of the selection's fields a stage's rows and columns are. */
export interface Axes {
  /** What a row is. */
  readonly row: "query" | "key";
  /** What a column is. */
  readonly column: "key" | "feature";
}

/** Options of {@link headGrid}. */
export interface HeadGridOptions extends HeatLook {
  /**
   * `[heads, rows, columns]`, row-major; give a new array for new numbers. Or what a lazy pass left on a graphics processor, as
   * `trace.drawable("weights")` gives it: it is drawn there.
   */
  readonly values: { readonly data: Float32Array; readonly shape: readonly number[] } | DeviceTensor;
  /** The head that each matrix is of, where that is not its place. */
  readonly heads?: readonly number[] | null;
  /** Hidden cells of all heads, `[heads, rows, columns]`, or of one matrix that holds for every head. */
  readonly hidden?: Uint8Array | null;
  /**
   * The values at the two ends of the palette: a pair, or as far as the values reach in all heads together (`"shared"`,
   * the default) or in each by itself (`"each"`; every head then has its own legend).
   */
  readonly domain?: readonly [number, number] | "shared" | "each" | undefined;
  /** A name for each head, and what is known of it. */
  readonly titles: readonly { readonly name: string; readonly note: string }[];
  /** What rows and columns are: queries and keys, of weights. */
  readonly axes: Axes;
  /** What is looked at; views that are given the same one move together. */
  readonly selection: Selection;
  /** The narrowest a head may become before the grid takes fewer columns, where cells are too small for numbers. */
  readonly minWidth?: number;
  /** The accessible name of a head's matrix. */
  readonly label: (head: number) => string;
  /** The accessible name of a cell. */
  readonly describe: (head: number, cell: Cell, value: number) => string;
  /** Called when the colours in use are known, and when they change; null where every head has its own. */
  readonly onShown?: ((shown: Shown | null) => void) | undefined;
  /** The words of the buttons that zoom. */
  readonly zoomText?: ZoomText | undefined;
}

interface Head {
  readonly figure: HTMLElement;
  readonly name: HTMLElement;
  readonly note: HTMLElement;
  readonly colors: HTMLElement;
  readonly view: Surface<MatrixSurfaceOptions>;
  legend: View<LegendOptions> | null;
}

// As many columns as fit, but no ragged last row where a smaller number divides the heads evenly.
function columnsFor(heads: number, fitting: number): number {
  const most = Math.max(1, Math.min(heads, fitting));
  for (let columns = most; columns * 2 > most; columns--) if (heads % columns === 0) return columns;
  return most;
}

const MOST_ACROSS = 4;
const GAP = 24;
/** The room between two columns on the page. */
const BETWEEN = 28;

/** The least width and height of a cell that most numbers fit. */
const LEGIBLE = [26, 20] as const;

function stacked(parts: readonly Part[]): Part {
  let height = 0;
  const content = parts.map((part) => {
    const y = height;
    height += part.height + 4;
    return placed(0, y, part);
  });
  return { width: Math.max(...parts.map(({ width }) => width)), height, content };
}

function tiled(parts: readonly Part[], columns: number): Part {
  const width = Math.max(...parts.map((part) => part.width)) + GAP;
  const height = Math.max(...parts.map((part) => part.height)) + GAP;
  const content = parts.map((part, i) => placed((i % columns) * width, Math.floor(i / columns) * height, part));
  return { width: columns * width - GAP, height: Math.ceil(parts.length / columns) * height - GAP, content };
}

const NEEDED = ["values", "rowLabels", "columnLabels", "titles", "axes", "selection", "label", "describe"] as const;
const OWN: readonly Rule[] = [
  ["a function", isCall, "label"],
  [
    'two numbers, "shared" or "each"',
    (domain: unknown) => /^(shared|each)$/.test(`${domain}`) || isPair(domain),
    "domain",
  ],
  ["{ row, column }", (axes: Partial<Axes> | null) => axes?.row && axes.column, "axes"],
  HIDDEN,
];

function read(given: HeadGridOptions): HeadGridOptions {
  const options = checked(given, NEEDED, ...OWN);
  return sized(options, "values", options.values, "[heads, rows, columns]");
}

function sizesOf({ values }: HeadGridOptions) {
  const [count = 1, rows = 1, columns = 1] = values.shape;
  return { count, rows, columns };
}

function peaksOf(options: HeadGridOptions, changed: (head: number) => void): AnyPeaks[] {
  const { values, hidden, hiddenKeepsColor = false, scale, transposed = false } = options;
  const { count, rows, columns } = sizesOf(options);
  const size = rows * columns;
  return Array.from({ length: count }, (_, head) => {
    const offset = hidden && hidden.length > size ? head * size : 0;
    const how = {
      hidden: hidden ? hidden.subarray(offset, offset + size) : null,
      hiddenKeepsColor,
      byRow: scale === "row",
      transposed,
    };
    if (isOnDevice(values)) return new DevicePeaks(values.at(head), how, () => changed(head));
    return new Peaks({ data: values.data.subarray(head * size, (head + 1) * size), rows, columns }, how);
  });
}

function isSameValues(one: HeadGridOptions["values"], other: HeadGridOptions["values"]): boolean {
  if (isOnDevice(one) || isOnDevice(other)) return one === other;
  return isSameData(one.data, other.data) && String(one.shape) === String(other.shape);
}

function isSamePeaks(one: HeadGridOptions, other: HeadGridOptions): boolean {
  return isSameValues(one.values, other.values) && isSameBeside(one, other);
}

function union(all: readonly Outside[]): Outside {
  const any = (key: keyof Outside) => all.some((outside) => outside[key]);
  return { nan: any("nan"), plus: any("plus"), minus: any("minus") };
}

/**
 * Every head's matrix side by side: one selection, one zoom and, unless each has its own, one scale for all.
 *
 * ```ts
 * const { weights } = await engine.scaledDotProductAttention([[[1, 0]], [[0, 1]]], [[[1, 0]], [[0, 1]]], [[[1]], [[2]]]);
 * headGrid(element, {
 *   values: weights, // of any origin: numbers, and a shape [heads, queries, keys]
 *   rowLabels: ["it"],
 *   columnLabels: ["it"],
 *   titles: [{ name: "head 1", note: "" }, { name: "head 2", note: "" }],
 *   axes: { row: "query", column: "key" },
 *   selection: new Selection(),
 *   label: (head) => `head ${head + 1}`,
 *   describe: (head, cell, value) => `head ${head + 1}, ${number(value)}`,
 * });
 * ```
 *
 * @throws AttnError `invalid_option`, `shape_mismatch`
 */
export function headGrid(element: HTMLElement, start: HeadGridOptions): PictureView<HeadGridOptions> {
  const viewport = new Viewport();
  let options = read(start);
  let { selection } = options;
  adoptStyles(element);
  let peaks = peaksOf(options, changed);
  let told = "";
  let longest = { of: "", text: "" };
  const measuring = document.createElement("canvas").getContext("2d") as CanvasRenderingContext2D;
  // Heads whose numbers are looked through and whose scale is known.
  const ready = new Set<number>();
  let arranged = 0;
  const zoom = zoomBar(element, zoomOptions());
  const root = document.createElement("div");
  root.className = "attn-heads";
  element.append(root);
  const heads: Head[] = [];

  function zoomOptions() {
    const { rows, columns } = sizesOf(options);
    const { rowAxis = "query", columnAxis = "key", axes, zoomText } = options;
    return {
      viewport,
      rows,
      columns,
      rowAxis,
      columnAxis,
      text: zoomText,
      selected: cellOf(selection.place),
      onSelect: ({ row, column }: Cell) => selection.set({ [axes.row]: row, [axes.column]: column }),
    };
  }

  function cellOf(place: Place): Cell {
    const { rows, columns } = sizesOf(options);
    return {
      row: Math.min(place[options.axes.row], rows - 1),
      column: Math.min(place[options.axes.column], columns - 1),
    };
  }

  function hoveredCell(): Cell | null {
    const { rows, columns } = sizesOf(options);
    const { row, column } = options.axes;
    const pointed = selection.pointed;
    const at = { row: pointed?.[row], column: pointed?.[column] };
    if (at.row === undefined || at.column === undefined || at.row >= rows || at.column >= columns) return null;
    return { row: at.row, column: at.column };
  }

  function scaleOf(head: number): ColorScale {
    const { domain = "shared", palette = "sequential", scale = "linear" } = options;
    if (typeof domain !== "string" && scale !== "row") return { palette, kind: scale, domain };
    const reach = domain === "each" ? peaks[head]?.reach : Math.max(...peaks.map(({ reach }) => reach));
    return scaleTo(reach ?? 1, palette, scale);
  }

  function optionsOf(at: number) {
    const { axes } = options;
    const head = options.heads?.[at] ?? at;
    const look: HeatOptions = {
      ...options,
      selected: cellOf(selection.place),
      isCurrent: selection.place.head === head || options.values.shape[0] === 1,
      label: options.label(head),
      describe: (cell, value) => options.describe(head, cell, value),
      onSelect: ({ row, column }) => selection.set({ head, [axes.row]: row, [axes.column]: column }),
      hovered: hoveredCell(),
      onHover: (cell) => selection.point(cell && { head, [axes.row]: cell.row, [axes.column]: cell.column }),
    };
    return resolve(look, viewport);
  }

  function toSurface(head: number): MatrixSurfaceOptions {
    const picture = heatPicture(optionsOf(head), peaks[head] as AnyPeaks, scaleOf(head));
    // What lies on a graphics processor is fetched head by head.
    return isOnDevice(options.values) ? picture : { ...picture, longest: longestIn };
  }

  function longestIn(seen: Region, theme: Theme): string {
    const of = Object.values(seen).join();
    if (longest.of !== of) {
      const texts = peaks.flatMap((_, head) => {
        const { cell } = toSurface(head);
        return cellsIn(seen).map((at) => cell(at, theme).text);
      });
      longest = { of, text: texts.reduce(longer, "") };
    }
    return longest.text;
  }

  // Something came from a graphics processor.
  function changed(head: number): void {
    heads[head]?.view.update(toSurface(head));
    heads[head]?.view.redraw();
  }

  function toSvg(): string {
    const numbers = peaks.map(wholeOf);
    for (const each of numbers) each.advance(Number.POSITIVE_INFINITY);
    const colors = colorsOf(themeOf(element).dark);
    const { words } = optionsOf(0);
    const isEach = options.domain === "each" && options.scale !== "row";
    const legendOf = (head: number, outside: Outside) => {
      const hidden = peaks[head]?.hatching === "none" ? null : words.hidden;
      return legendSvg({ ...scaleOf(head), outside }, hidden, words.rowMaximum, colors);
    };
    const parts = numbers.map((each, head): Part => {
      const matrix = matrixSvg(optionsOf(head), each, scaleOf(head), colors);
      const title = options.titles[head];
      const name = [title?.name, title?.note].filter(Boolean).join(" · ");
      const own = isEach ? [legendOf(head, each.outside)] : [];
      return stacked([{ width: 0, height: 18, content: [text(name, { y: 11, "font-weight": 600 })] }, matrix, ...own]);
    });
    const shared = isEach ? [] : [legendOf(0, union(peaks.map(({ outside }) => outside)))];
    const name =
      options.titles.length === 1 ? options.label(0) : [options.label(0), options.label(peaks.length - 1)].join(" … ");
    return pictureOf(name, [tiled(parts, columnsFor(parts.length, MOST_ACROSS)), ...shared], colors);
  }

  // A scale for all heads is known once all were looked through.
  function prepare(head: number, deadline: number): boolean {
    const { domain = "shared" } = options;
    const needed = domain === "shared" ? peaks : [peaks[head] as AnyPeaks];
    if (!needed.every((each) => each.advance(deadline))) return false;
    if (ready.has(head)) return true;
    ready.add(head);
    heads[head]?.view.update(toSurface(head));
    tell();
    return true;
  }

  function tell(): void {
    const { domain } = options;
    const isEach = domain === "each" && options.scale !== "row";
    const shown = heads.map((_, head) => ({ ...scaleOf(head), outside: peaks[head]?.outside as Outside }));
    const now = JSON.stringify([isEach, shown]);
    if (now === told) return;
    told = now;
    heads.forEach((head, i) => {
      const colors = shown[i];
      if (!isEach || !colors) {
        head.legend?.destroy();
        head.legend = null;
      } else if (head.legend) head.legend.update(colors);
      else head.legend = legend(head.colors, { ...colors, hidden: null, rowMaximum: optionsOf(i).words.rowMaximum });
    });
    const [first] = shown;
    const outside = union(shown.map(({ outside }) => outside));
    options.onShown?.(isEach || !first ? null : { ...first, outside });
  }

  function addHead(head: number): Head {
    const figure = document.createElement("figure");
    figure.className = "attn-head";
    const caption = document.createElement("figcaption");
    const name = document.createElement("b");
    const note = document.createElement("span");
    const colors = document.createElement("div");
    caption.append(name, note);
    const picture = document.createElement("div");
    figure.append(caption, colors, picture);
    root.append(figure);
    const view = matrixSurface(picture, toSurface(head), (deadline) => prepare(head, deadline));
    return { figure, name, note, colors, view, legend: null };
  }

  /** Two columns where both leave their cells legible, more where that makes no cell smaller. */
  function columnsIn(width: number, theme: Theme): number {
    const { count } = sizesOf(options);
    const picture = toSurface(0);
    const cell = (columns: number) => {
      const at = layOut(measuring, picture, theme, (width - (columns - 1) * BETWEEN) / columns, 1);
      return [at.cellWidth, at.cellHeight] as const;
    };
    const isAtLeast = (columns: number, least: readonly [number, number]) =>
      cell(columns).every((size, side) => size >= (least[side] as number));
    if (!isAtLeast(1, LEGIBLE)) return columnsFor(count, Math.floor(width / (options.minWidth ?? 260)));
    let columns = 1;
    while (columns < count && isAtLeast(columns + 1, columns === 1 ? LEGIBLE : cell(columns))) columns++;
    return columnsFor(count, columns);
  }

  function arrange(width: number): void {
    const columns = `repeat(${columnsIn(width, themeOf(element))}, minmax(0, 1fr))`;
    if (root.style.gridTemplateColumns !== columns) root.style.gridTemplateColumns = columns;
  }

  function show(isStale: boolean): void {
    const { count } = sizesOf(options);
    if (isStale) {
      ready.clear();
      longest.of = "";
      request(arranging);
    }
    for (const extra of heads.splice(count)) {
      extra.view.destroy();
      extra.legend?.destroy();
      extra.figure.remove();
    }
    while (heads.length < count) heads.push(addHead(heads.length));
    heads.forEach((head, i) => {
      const title = options.titles[i];
      head.name.textContent = title?.name ?? "";
      head.note.textContent = title?.note ?? "";
      head.view.update(toSurface(i));
      if (isStale) head.view.redraw();
    });
    if (heads.length !== arranged) arrange(element.clientWidth);
    arranged = heads.length;
    zoom.update(zoomOptions());
  }

  function onChange(): void {
    onPoint();
    zoom.update(zoomOptions());
  }

  function onPoint(): void {
    heads.forEach((head, i) => {
      head.view.update(toSurface(i));
    });
  }

  function follow(from: Selection): void {
    from.addEventListener("change", onChange);
    from.addEventListener("point", onPoint);
  }

  function leave(from: Selection): void {
    from.removeEventListener("change", onChange);
    from.removeEventListener("point", onPoint);
  }

  // In a frame of its own: what observes sizes may not change them at once.
  let width = 0;
  const arranging: Drawing = {
    measure() {
      width = element.clientWidth;
    },
    place() {
      arrange(width);
    },
    draw: () => true,
  };
  const resize = new ResizeObserver(() => request(arranging));
  resize.observe(element);
  follow(selection);
  show(false);

  return {
    toSvg,
    toPng: () => png(toSvg()),
    update(change) {
      const before = options;
      options = read({ ...before, ...change });
      if (options.selection !== selection) {
        leave(selection);
        selection = options.selection;
        follow(selection);
      }
      if (options.minWidth !== before.minWidth) arranged = 0;
      const isSame = isSamePeaks(before, options);
      if (!isSame) {
        peaks.forEach(close);
        peaks = peaksOf(options, changed);
        if (String(before.values.shape) !== String(options.values.shape)) viewport.set({ zoom: 1, x: 0, y: 0 });
      }
      show(!isSame || !isSameLook(before, options) || String(before.domain) !== String(options.domain));
    },
    destroy() {
      leave(selection);
      peaks.forEach(close);
      resize.disconnect();
      cancel(arranging);
      for (const head of heads) {
        head.view.destroy();
        head.legend?.destroy();
      }
      zoom.destroy();
      root.remove();
    },
  };
}
