import type { Cell } from "./matrix-drawing.ts";
import { type MatrixGridOptions, matrixGrid } from "./matrix-grid.ts";
import type { View } from "./view.ts";

export interface MaskEditorOptions {
  readonly rows: number;
  readonly columns: number;
  /** Row-major, nonzero where a query may attend to a key. */
  readonly allowed: Uint8Array;
  readonly rowLabels: readonly string[];
  readonly columnLabels: readonly string[];
  readonly rowAxis?: string;
  readonly columnAxis?: string;
  readonly maxCell?: number;
  readonly selected?: Cell | null;
  readonly label: string;
  readonly describe: (cell: Cell, allowed: boolean) => string;
  readonly onSelect?: (cell: Cell) => void;
  /** The whole mask after a cell was painted; a new array each time. */
  readonly onPaint: (allowed: Uint8Array) => void;
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

/** A mask that is painted: a click or the space bar turns a cell over, a drag gives all it meets the same state. */
export function maskEditor(element: HTMLElement, start: MaskEditorOptions): View<MaskEditorOptions> {
  let options = start;
  let brush = 0;
  let last: Cell = { row: 0, column: 0 };

  const at = ({ row, column }: Cell) => row * options.columns + column;
  const isAllowed = (cell: Cell) => (options.allowed[at(cell)] ?? 0) !== 0;

  function paint(cells: Iterable<Cell>): void {
    const allowed = options.allowed.slice();
    for (const cell of cells) allowed[at(cell)] = brush;
    options = { ...options, allowed };
    grid.update(toGrid());
    options.onPaint(allowed);
  }

  function begin(cell: Cell): void {
    brush = isAllowed(cell) ? 0 : 1;
    last = cell;
    paint([cell]);
  }

  function toGrid(): MatrixGridOptions {
    const { rows, columns, rowLabels, columnLabels, label } = options;
    return {
      rows,
      columns,
      rowLabels,
      columnLabels,
      rowAxis: options.rowAxis ?? "query",
      columnAxis: options.columnAxis ?? "key",
      marks: null,
      maxCell: options.maxCell ?? 40,
      maxCellHeight: options.maxCell ?? 40,
      selected: options.selected ?? null,
      isCurrent: true,
      label,
      describe: (cell) => options.describe(cell, isAllowed(cell)),
      cell: (cell, theme) => ({
        fill: isAllowed(cell) ? (theme.dark ? "#3b424e" : "#e4e1da") : null,
        ink: theme.ink,
        hatched: !isAllowed(cell),
        text: "",
      }),
      pixels: (width, height, theme) => {
        const image = new ImageData(width, height);
        const shade = theme.dark ? [59, 66, 78, 255] : [228, 225, 218, 255];
        for (let y = 0; y < height; y++) {
          for (let x = 0; x < width; x++) {
            const cell = { row: Math.floor((y * rows) / height), column: Math.floor((x * columns) / width) };
            if (isAllowed(cell)) image.data.set(shade, (y * width + x) * 4);
          }
        }
        return image;
      },
      onPointer: (cell, phase) => {
        options.onSelect?.(cell);
        if (phase === "down") return begin(cell);
        if (cell.row === last.row && cell.column === last.column) return;
        const met = [...line(last, cell)];
        last = cell;
        paint(met);
      },
      onMove: (cell) => options.onSelect?.(cell),
      onPress: begin,
    };
  }

  const grid = matrixGrid(element, toGrid());
  return {
    update(change) {
      options = { ...options, ...change };
      grid.update(toGrid());
    },
    destroy: grid.destroy,
  };
}
