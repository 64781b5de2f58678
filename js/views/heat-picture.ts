import { format } from "d3-format";
import type { Outside } from "../device.ts";
import { type AnyPeaks, DevicePeaks } from "./device-peaks.ts";
import { type Cell, isSameData } from "./matrix.ts";
import { pixelsOf } from "./matrix-drawing.ts";
import type { MatrixSurfaceOptions } from "./matrix-surface.ts";
import { number } from "./number.ts";
import { css, inkOn, type PaletteName, palette } from "./palette.ts";
import { blocksOf, Peaks } from "./peaks.ts";
import { levelFor, raster } from "./raster.ts";
import { type ColorScale, outsideColors, type ScaleKind, stepOf } from "./scale.ts";
import type { Theme } from "./theme.ts";
import type { Viewport } from "./viewport.ts";

/** How a matrix of numbers looks as a heat map. */
export interface HeatLook {
  /** A token for each row. */
  readonly rowLabels: readonly string[];
  /** A token for each column. */
  readonly columnLabels: readonly string[];
  /** The word on the axis of rows; "query" by default. */
  readonly rowAxis?: string;
  /** The word on the axis of columns; "key" by default. */
  readonly columnAxis?: string;
  /** Draws rows across and columns down, with their axes. */
  readonly transposed?: boolean;
  /** `sequential` for weights, `diverging` for signed numbers and differences. */
  readonly palette?: PaletteName;
  /** How numbers become colours; linear by default. */
  readonly scale?: ScaleKind;
  /** Whether a hidden cell keeps its colour under the hatching. */
  readonly hiddenKeepsColor?: boolean;
  /** How a number is written in its cell and a row's sum beside it; two decimals by default. */
  readonly write?: (value: number) => string;
  /** A heading for the rows' sums; null for none. */
  readonly sums?: string | null;
  /** The widest a cell may become, in pixels; 44 by default. */
  readonly maxCell?: number;
  /** The same for its height. */
  readonly maxCellHeight?: number;
  /** What a legend says of hatching, and of the end of a scale by rows. */
  readonly words?: { readonly hidden: string; readonly rowMaximum: string } | undefined;
}

/** A heat map by itself, without its numbers. */
export interface HeatOptions extends HeatLook {
  /** The cell that is framed; null for none, which is the default. */
  readonly selected?: Cell | null;
  /** Whether this is the matrix the selection is in, not only one that shares it; default true. */
  readonly isCurrent?: boolean;
  /** The accessible name of the picture. */
  readonly label: string;
  /** The accessible name of a cell. */
  readonly describe: (cell: Cell, value: number) => string;
  /** Called when somebody goes to a cell. */
  readonly onSelect?: (cell: Cell) => void;
  /** The cell under the pointer, where views share it; without `onHover` each has its own. */
  readonly hovered?: Cell | null | undefined;
  /** Called when the pointer comes to another cell, and with null when it leaves. */
  readonly onHover?: ((cell: Cell | null) => void) | undefined;
  /** How far one has zoomed in; views that share it move together. */
  readonly viewport?: Viewport;
}

/** The colours in use and what there is beside finite numbers: what a legend has to say. */
export interface Shown extends ColorScale {
  /** What there is beside finite numbers. */
  readonly outside: Outside;
}

const DEFAULTS = {
  rowAxis: "query",
  columnAxis: "key",
  transposed: false,
  palette: "sequential",
  scale: "linear",
  hiddenKeepsColor: false,
  write: format(".2f"),
  sums: null,
  maxCell: 44,
  maxCellHeight: 44,
  words: { hidden: "hidden", rowMaximum: "row maximum" },
  selected: null,
  isCurrent: true,
  onSelect: () => {},
} as const satisfies Partial<HeatOptions>;

const LOOK = [
  "rowLabels",
  "columnLabels",
  "rowAxis",
  "columnAxis",
  "transposed",
  "palette",
  "scale",
  "hiddenKeepsColor",
  "write",
  "sums",
  "maxCell",
  "maxCellHeight",
] as const satisfies readonly (keyof HeatLook)[];

/** Whether nothing changed but what follows the selection. */
export function isSameLook(one: HeatLook, other: HeatLook): boolean {
  return LOOK.every((key) => one[key] === other[key]);
}

/** Whether what is left out of a matrix's peaks, and how they are taken, is the same. */
export function isSameBeside(one: Beside, other: Beside): boolean {
  return (
    isSameData(one.hidden ?? null, other.hidden ?? null) &&
    one.hiddenKeepsColor === other.hiddenKeepsColor &&
    (one.scale === "row") === (other.scale === "row") &&
    one.transposed === other.transposed
  );
}

type Beside = HeatLook & { readonly hidden?: ArrayLike<number> | null };

type Optional = "hovered" | "onHover";
export type Resolved = Required<Omit<HeatOptions, Optional>> & Pick<HeatOptions, Optional>;

/** The options with the defaults where there are none. */
export function resolve<Options extends HeatOptions>(given: Options, viewport: Viewport): Options & Resolved {
  return { viewport, ...DEFAULTS, ...given } as unknown as Options & Resolved;
}

const turned = ({ row, column }: Cell): Cell => ({ row: column, column: row });

/** What a cell of a heat map holds beside its colour: its number. */
export function cellText(
  peaks: AnyPeaks,
  { row, column }: Cell,
  scale: ColorScale,
  options: Resolved,
  theme: Pick<Theme, "dark" | "ink">,
) {
  const value = peaks.valueAt(row, column);
  if (value === undefined) return { text: "", ink: theme.ink };
  const outside = outsideColors(theme.dark);
  if (Number.isNaN(value)) return { text: "NaN", ink: inkOn(outside.nan) };
  if (peaks.isBare(row, column)) {
    // A hidden cell shows a number only where the mask did not silence it: a row with nothing allowed.
    return { text: scale.palette === "sequential" && value > 0 ? options.write(value) : "", ink: theme.ink };
  }
  if (!Number.isFinite(value)) return { text: number(value), ink: inkOn(value > 0 ? outside.plus : outside.minus) };
  const ink = palette(scale.palette, theme.dark).ink[stepOf(peaks.shownAt(row, column), scale)];
  return { text: options.write(value), ink: ink ?? theme.ink };
}

/** A cell's colour as CSS; null where it is hidden. */
export function cellColor(peaks: Peaks, { row, column }: Cell, scale: ColorScale, dark: boolean): string | null {
  const value = peaks.shownAt(row, column);
  const outside = outsideColors(dark);
  if (Number.isNaN(value)) return css(outside.nan);
  if (peaks.isBare(row, column)) return null;
  if (!Number.isFinite(value)) return css(value > 0 ? outside.plus : outside.minus);
  return palette(scale.palette, dark).css[stepOf(value, scale)] ?? null;
}

/** A heat map as a matrix on a surface. Cells are given and named as those of the matrix, whichever way it is drawn. */
export function heatPicture(options: Resolved, peaks: AnyPeaks, scale: ColorScale): MatrixSurfaceOptions {
  const toDrawn = (cell: Cell | null) => (cell && options.transposed ? turned(cell) : cell);
  const toMatrix = (cell: Cell) => (options.transposed ? turned(cell) : cell);
  const rowSide = { labels: options.rowLabels, axis: options.rowAxis };
  const columnSide = { labels: options.columnLabels, axis: options.columnAxis };
  const [down, across] = options.transposed ? [columnSide, rowSide] : [rowSide, columnSide];
  const { write, sums, onHover } = options;
  const hasSums = sums !== null && !options.transposed;
  return {
    rows: peaks.rows,
    columns: peaks.columns,
    rowLabels: down.labels,
    rowAxis: down.axis,
    columnLabels: across.labels,
    columnAxis: across.axis,
    // They are made of numbers that are here.
    sums: hasSums && peaks instanceof Peaks ? { heading: sums, text: (row) => write(peaks.sumOf(row)) } : null,
    maxCell: options.maxCell,
    maxCellHeight: options.maxCellHeight,
    selected: toDrawn(options.selected),
    isCurrent: options.isCurrent,
    label: options.label,
    describe: (cell) => {
      const value = peaks.valueAt(cell.row, cell.column);
      return value === undefined ? "…" : options.describe(toMatrix(cell), value);
    },
    hatching: peaks.hatching,
    isHatched: ({ row, column }) => peaks.isHidden(row, column),
    cell: (cell, theme) => cellText(peaks, cell, scale, options, theme),
    pixels: (pixelsPerCell, seen, theme) => {
      const level = levelFor(pixelsPerCell, peaks);
      const block = 2 ** level;
      const region = blocksOf(seen, block);
      if (peaks instanceof DevicePeaks) return peaks.pixels(level, region, scale, theme.dark);
      return pixelsOf(raster(peaks, level, region, scale, theme.dark), block, region);
    },
    onPointer: (cells) => {
      const last = cells.at(-1);
      if (last) options.onSelect(toMatrix(last));
    },
    hovered: toDrawn(options.hovered ?? null),
    ...(onHover && { onHover: (cell) => onHover(cell && toMatrix(cell)) }),
    onMove: (cell) => options.onSelect(toMatrix(cell)),
    onPress: null,
    isPainted: false,
    viewport: options.viewport,
  };
}
