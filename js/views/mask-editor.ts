import type { Region } from "../device.ts";
import { checked, sized } from "./checked.ts";
import type { Cell } from "./matrix.ts";
import { pixelsOf } from "./matrix-drawing.ts";
import { type MatrixSurfaceOptions, matrixSurface } from "./matrix-surface.ts";
import { blocksOf } from "./peaks.ts";
import type { View } from "./view.ts";
import { Viewport } from "./viewport.ts";

/** Options of {@link maskEditor}. */
export interface MaskEditorOptions {
  /** The number of queries. */
  readonly rows: number;
  /** The number of keys. */
  readonly columns: number;
  /** Row-major, nonzero where a query may attend to a key. */
  readonly allowed: Uint8Array;
  /** A token for each query. */
  readonly rowLabels: readonly string[];
  /** A token for each key. */
  readonly columnLabels: readonly string[];
  /** The word on the axis of rows; "query" by default. */
  readonly rowAxis?: string;
  /** The word on the axis of columns; "key" by default. */
  readonly columnAxis?: string;
  /** The widest a cell may become, in pixels. */
  readonly maxCell?: number;
  /** The cell that is framed; null for none, which is the default. */
  readonly selected?: Cell | null;
  /** The accessible name of the picture. */
  readonly label: string;
  /** The accessible name of a cell. */
  readonly describe: (cell: Cell, allowed: boolean) => string;
  /** Called when somebody goes to a cell. */
  readonly onSelect?: (cell: Cell) => void;
  /** The whole mask after a cell was painted; a new array each time. */
  readonly onPaint: (allowed: Uint8Array) => void;
}

const NEEDED = ["rows", "columns", "allowed", "rowLabels", "columnLabels", "label", "describe", "onPaint"] as const;

function read(given: MaskEditorOptions): MaskEditorOptions {
  const options = checked(given, NEEDED, ["a Uint8Array", ArrayBuffer.isView, "allowed"]);
  const { allowed: data, rows, columns } = options;
  return sized(options, "allowed", { data, shape: [rows, columns] }, "[rows, columns]");
}

// The cells between two pointer positions: a fast drag skips none.
function* line(from: Cell, to: Cell): Generator<Cell> {
  const steps = Math.max(Math.abs(to.row - from.row), Math.abs(to.column - from.column));
  for (let i = 1; i <= steps; i++) {
    yield {
      row: Math.round(from.row + ((to.row - from.row) * i) / steps),
      column: Math.round(from.column + ((to.column - from.column) * i) / steps),
    };
  }
}

/** The share of each block that is allowed, as how strongly its pixel covers the hatching. */
function coverage(
  allowed: Uint8Array,
  rows: number,
  columns: number,
  block: number,
  { top, left, bottom, right }: Region,
) {
  const image = new ImageData(right - left, bottom - top);
  for (let y = top; y < bottom; y++) {
    for (let x = left; x < right; x++) {
      const [lastRow, lastColumn] = [Math.min(rows, (y + 1) * block), Math.min(columns, (x + 1) * block)];
      let open = 0;
      for (let row = y * block; row < lastRow; row++) {
        for (let i = row * columns + x * block; i < row * columns + lastColumn; i++) if (allowed[i] !== 0) open++;
      }
      const share = open / ((lastRow - y * block) * (lastColumn - x * block));
      image.data[((y - top) * image.width + x - left) * 4 + 3] = Math.round(255 * share);
    }
  }
  return image;
}

/**
 * A mask that is painted: a click or the space bar turns a cell over, a drag gives all it meets the same state. However
 * fast the pointer, `onPaint` is called once a frame, with all that was met.
 *
 * ```ts
 * const editor = maskEditor(element, {
 *   rows: 2,
 *   columns: 2,
 *   allowed: new Uint8Array([1, 0, 1, 1]),
 *   rowLabels: ["the", "cat"],
 *   columnLabels: ["the", "cat"],
 *   label: "mask",
 *   describe: (cell, allowed) => (allowed ? "allowed" : "hidden"),
 *   onPaint: (allowed) => editor.update({ allowed }),
 * });
 * ```
 *
 * @throws AttnError `invalid_option`, `shape_mismatch`
 */
export function maskEditor(element: HTMLElement, start: MaskEditorOptions): View<MaskEditorOptions> {
  const viewport = new Viewport();
  let options = read(start);
  let { allowed } = options;
  let stroke: { readonly brush: number; last: Cell } | null = null;
  let frame = 0;

  const at = ({ row, column }: Cell) => row * options.columns + column;
  const isAllowed = (cell: Cell) => (allowed[at(cell)] ?? 0) !== 0;

  function report(): void {
    cancelAnimationFrame(frame);
    frame = 0;
    options.onPaint(allowed.slice());
  }

  function paint(cells: Iterable<Cell>, brush: number): void {
    if (allowed === options.allowed) allowed = allowed.slice();
    for (const cell of cells) allowed[at(cell)] = brush;
    frame ||= requestAnimationFrame(report);
    view.update(toSurface());
    view.redraw();
  }

  function turn(cell: Cell): number {
    const brush = isAllowed(cell) ? 0 : 1;
    paint([cell], brush);
    return brush;
  }

  function follow(cells: readonly Cell[]): void {
    if (!stroke) return;
    const met: Cell[] = [];
    for (const cell of cells) {
      met.push(...line(stroke.last, cell));
      stroke.last = cell;
    }
    if (met.length > 0) paint(met, stroke.brush);
  }

  function onPointer(cells: readonly Cell[], phase: "down" | "move" | "up"): void {
    const cell = cells.at(-1);
    if (phase === "down" && cell) stroke = { brush: turn(cell), last: cell };
    if (phase === "move") follow(cells);
    if (phase === "up") stroke = null;
    if (cell) options.onSelect?.(cell);
  }

  function toSurface(): MatrixSurfaceOptions {
    const { rows, columns, rowLabels, columnLabels, label } = options;
    return {
      rows,
      columns,
      rowLabels,
      columnLabels,
      rowAxis: options.rowAxis ?? "query",
      columnAxis: options.columnAxis ?? "key",
      sums: null,
      maxCell: options.maxCell ?? 40,
      maxCellHeight: options.maxCell ?? 40,
      selected: options.selected ?? null,
      isCurrent: true,
      label,
      describe: (cell) => options.describe(cell, isAllowed(cell)),
      hatching: "bare",
      isHatched: (cell) => !isAllowed(cell),
      cell: (_, theme) => ({ text: "", ink: theme.ink }),
      pixels: (pixelsPerCell, seen, theme) => {
        const block = Math.max(1, 2 ** Math.ceil(-Math.log2(pixelsPerCell)));
        const region = blocksOf(seen, block);
        const image = coverage(allowed, rows, columns, block, region);
        const [red = 0, green = 0, blue = 0] = theme.dark ? [59, 66, 78] : [228, 225, 218];
        for (let i = 0; i < image.data.length; i += 4) {
          image.data[i] = red;
          image.data[i + 1] = green;
          image.data[i + 2] = blue;
        }
        return pixelsOf(image, block, region);
      },
      onPointer,
      onMove: (cell) => options.onSelect?.(cell),
      onPress: turn,
      isPainted: true,
      viewport,
    };
  }

  const view = matrixSurface(element, toSurface());
  return {
    update(change) {
      const before = options;
      options = read({ ...options, ...change });
      // While a stroke is painted what it painted is newer than what comes back of it.
      const isMine = (stroke !== null || frame !== 0) && options.allowed.length === allowed.length;
      const isSelection = Object.keys(change).join() === "selected";
      if (!isMine) allowed = options.allowed;
      view.update(toSurface());
      const isRelabelled = options.rowLabels !== before.rowLabels || options.columnLabels !== before.columnLabels;
      if (isRelabelled || !(isMine || isSelection)) view.redraw();
    },
    destroy() {
      cancelAnimationFrame(frame);
      view.destroy();
    },
  };
}
