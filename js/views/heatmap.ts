import { format } from "d3-format";
import type { Cell, Drawn } from "./matrix-drawing.ts";
import { type MatrixGridOptions, matrixGrid } from "./matrix-grid.ts";
import { type PaletteName, palette, step } from "./palette.ts";
import { type Matrix, raster } from "./raster.ts";
import type { Theme } from "./theme.ts";
import type { View } from "./view.ts";

export interface HeatmapOptions {
  /** Row-major values, `rows * columns` of them. */
  readonly matrix: Matrix;
  readonly rowLabels: readonly string[];
  readonly columnLabels: readonly string[];
  readonly rowAxis?: string;
  readonly columnAxis?: string;
  readonly palette?: PaletteName;
  /** The values at the two ends of the palette. */
  readonly domain?: readonly [number, number];
  /** Cells a mask hides, row-major, nonzero where hidden; drawn hatched. */
  readonly hidden?: ArrayLike<number> | null;
  /** Whether a hidden cell keeps its colour under the hatching. */
  readonly hiddenKeepsColor?: boolean;
  /** How a number is written in its cell and a row's sum beside it; two decimals by default. */
  readonly write?: (value: number) => string;
  /** A heading for the rows' sums; null for none. */
  readonly sums?: string | null;
  readonly maxCell?: number;
  readonly maxCellHeight?: number;
  readonly selected?: Cell | null;
  /** Whether this is the matrix the selection is in, not only one that shares it; default true. */
  readonly isCurrent?: boolean;
  readonly label: string;
  readonly describe: (cell: Cell, value: number) => string;
  readonly onSelect?: (cell: Cell) => void;
}

const DEFAULTS = {
  rowAxis: "query",
  columnAxis: "key",
  palette: "sequential",
  domain: [0, 1],
  hidden: null,
  hiddenKeepsColor: false,
  write: format(".2f"),
  sums: null,
  maxCell: 44,
  maxCellHeight: 44,
  selected: null,
  isCurrent: true,
  onSelect: () => {},
} as const;

function rowSums({ data, rows, columns }: Matrix): number[] {
  return Array.from({ length: rows }, (_, row) => {
    let sum = 0;
    for (let column = 0; column < columns; column++) sum += data[row * columns + column] ?? 0;
    return sum;
  });
}

function toGrid(given: HeatmapOptions): MatrixGridOptions {
  const options = { ...DEFAULTS, ...given };
  const { matrix, hidden, domain } = options;
  const { write } = options;
  const valueAt = ({ row, column }: Cell) => matrix.data[row * matrix.columns + column] ?? Number.NaN;
  const isHidden = ({ row, column }: Cell) => hidden !== null && (hidden[row * matrix.columns + column] ?? 0) !== 0;

  function cell(at: Cell, theme: Theme): Drawn {
    const value = valueAt(at);
    const hatched = isHidden(at);
    // A hidden cell shows a number only where the mask did not silence it: a row with nothing allowed.
    if (hatched && !options.hiddenKeepsColor)
      return { fill: null, ink: theme.ink, hatched, text: visibleThrough(value) };
    if (Number.isNaN(value)) return { fill: null, ink: theme.ink, hatched, text: "NaN" };
    const colors = palette(options.palette, theme.dark);
    const at256 = step(value, domain);
    return { fill: colors.css[at256] ?? null, ink: colors.ink[at256] ?? theme.ink, hatched, text: write(value) };
  }

  function visibleThrough(value: number): string {
    if (Number.isNaN(value)) return "NaN";
    return options.palette === "sequential" && value > 0 ? write(value) : "";
  }

  return {
    rows: matrix.rows,
    columns: matrix.columns,
    rowLabels: options.rowLabels,
    columnLabels: options.columnLabels,
    rowAxis: options.rowAxis,
    columnAxis: options.columnAxis,
    marks: options.sums === null ? null : { heading: options.sums, texts: rowSums(matrix).map(write) },
    maxCell: options.maxCell,
    maxCellHeight: options.maxCellHeight,
    selected: options.selected,
    isCurrent: options.isCurrent,
    label: options.label,
    describe: (at) => options.describe(at, valueAt(at)),
    cell,
    pixels: (width, height, theme) =>
      raster(matrix, {
        width,
        height,
        palette: palette(options.palette, theme.dark),
        domain,
        hidden: options.hiddenKeepsColor ? null : hidden,
      }),
    onPointer: options.onSelect,
    onMove: options.onSelect,
    onPress: null,
  };
}

/** One matrix as a heat map: colours, numbers where they fit, both axes named, hidden cells hatched. */
export function heatmap(element: HTMLElement, start: HeatmapOptions): View<HeatmapOptions> {
  let options = start;
  const grid = matrixGrid(element, toGrid(options));
  return {
    update(change) {
      options = { ...options, ...change };
      grid.update(toGrid(options));
    },
    destroy: grid.destroy,
  };
}
