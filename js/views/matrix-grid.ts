import { type Cell, drawMatrix, type Geometry, type MatrixPicture, measure } from "./matrix-drawing.ts";
import { adoptStyles } from "./styles.ts";
import { themeOf } from "./theme.ts";
import type { View } from "./view.ts";

export interface MatrixGridOptions extends MatrixPicture {
  /** The grid's name, and what is said of a cell, to somebody who does not see it. */
  readonly label: string;
  readonly describe: (cell: Cell) => string;
  /** A pointer goes down on a cell, then moves over others. */
  readonly onPointer: (cell: Cell, phase: "down" | "move") => void;
  /** An arrow key asks for another cell. */
  readonly onMove: (cell: Cell) => void;
  /** The space bar; without it the key is left to the browser. */
  readonly onPress: ((cell: Cell) => void) | null;
}

let instances = 0;

function clamp(value: number, count: number): number {
  return Math.min(count - 1, Math.max(0, value));
}

/**
 * A labelled matrix on a canvas, with one focusable grid over it: arrows move the selected cell, and a screen reader
 * is told of it. One element for the grid, not one for a cell, so that a matrix of thousands of rows stays light.
 */
export function matrixGrid(element: HTMLElement, start: MatrixGridOptions): View<MatrixGridOptions> {
  adoptStyles(element);
  let options = start;
  let geometry: Geometry | null = null;
  let frame = 0;
  let hovered: Cell | null = null;

  const id = `attn-cell-${++instances}`;
  const root = document.createElement("div");
  root.className = "attn-matrix";
  const canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true");
  const grid = document.createElement("div");
  grid.className = "attn-grid";
  grid.tabIndex = 0;
  grid.setAttribute("role", "grid");
  const row = document.createElement("div");
  row.setAttribute("role", "row");
  const active = document.createElement("div");
  active.id = id;
  active.className = "attn-cell";
  active.setAttribute("role", "gridcell");
  const live = document.createElement("div");
  live.className = "attn-live";
  live.setAttribute("aria-live", "polite");
  row.append(active);
  grid.append(row);
  root.append(canvas, grid, live);
  element.append(root);

  const context = canvas.getContext("2d") as CanvasRenderingContext2D;

  function placeGrid(at: Geometry): void {
    const { rows, columns, selected, label, onPress } = options;
    Object.assign(grid.style, {
      left: `${at.left}px`,
      top: `${at.top}px`,
      width: `${at.width}px`,
      height: `${at.height}px`,
    });
    grid.classList.toggle("attn-paint", onPress !== null);
    grid.setAttribute("aria-label", label);
    grid.setAttribute("aria-rowcount", String(rows));
    grid.setAttribute("aria-colcount", String(columns));
    grid.setAttribute("aria-activedescendant", id);
    const cell = selected ?? { row: 0, column: 0 };
    Object.assign(active.style, {
      left: `${cell.column * at.cellWidth}px`,
      top: `${cell.row * at.cellHeight}px`,
      width: `${at.cellWidth}px`,
      height: `${at.cellHeight}px`,
    });
    row.setAttribute("aria-rowindex", String(cell.row + 1));
    active.setAttribute("aria-colindex", String(cell.column + 1));
    active.setAttribute("aria-selected", String(selected !== null));
    const said = options.describe(cell);
    if (active.getAttribute("aria-label") === said) return;
    active.setAttribute("aria-label", said);
    if (document.activeElement === grid) live.textContent = said;
  }

  function draw(): void {
    frame = 0;
    const available = element.clientWidth;
    if (available === 0 || options.rows === 0 || options.columns === 0) return;
    const theme = themeOf(element);
    const at = measure(context, options, theme, available);
    geometry = at;
    const ratio = window.devicePixelRatio || 1;
    const height = at.top + at.height + 3;
    canvas.width = Math.round(available * ratio);
    canvas.height = Math.round(height * ratio);
    Object.assign(canvas.style, { width: `${available}px`, height: `${height}px` });
    drawMatrix(context, options, at, theme, { ratio, hovered });
    placeGrid(at);
  }

  function redraw(): void {
    if (frame === 0) frame = requestAnimationFrame(draw);
  }

  function cellAt(event: PointerEvent): Cell | null {
    if (!geometry) return null;
    const box = grid.getBoundingClientRect();
    return {
      row: clamp(Math.floor((event.clientY - box.top) / geometry.cellHeight), options.rows),
      column: clamp(Math.floor((event.clientX - box.left) / geometry.cellWidth), options.columns),
    };
  }

  function hover(cell: Cell | null): void {
    if (cell?.row === hovered?.row && cell?.column === hovered?.column) return;
    hovered = cell;
    redraw();
  }

  grid.addEventListener("pointerdown", (event) => {
    const cell = cellAt(event);
    if (!cell || event.button !== 0) return;
    grid.setPointerCapture(event.pointerId);
    options.onPointer(cell, "down");
  });
  grid.addEventListener("pointermove", (event) => {
    if (event.pointerType !== "touch") hover(cellAt(event));
    if (!grid.hasPointerCapture(event.pointerId)) return;
    for (const part of event.getCoalescedEvents?.() ?? [event]) {
      const cell = cellAt(part);
      if (cell) options.onPointer(cell, "move");
    }
  });
  grid.addEventListener("pointerleave", () => hover(null));
  grid.addEventListener("keydown", (event) => {
    if (event.altKey || event.metaKey) return;
    const { row: r, column: c } = options.selected ?? { row: 0, column: 0 };
    const { rows, columns } = options;
    const moves: Record<string, Cell> = {
      ArrowUp: { row: r - 1, column: c },
      ArrowDown: { row: r + 1, column: c },
      ArrowLeft: { row: r, column: c - 1 },
      ArrowRight: { row: r, column: c + 1 },
      Home: { row: event.ctrlKey ? 0 : r, column: 0 },
      End: { row: event.ctrlKey ? rows - 1 : r, column: columns - 1 },
    };
    const to = moves[event.key];
    if (to) {
      event.preventDefault();
      options.onMove({ row: clamp(to.row, rows), column: clamp(to.column, columns) });
    } else if (event.key === " " && options.onPress) {
      event.preventDefault();
      options.onPress({ row: r, column: c });
    }
  });
  grid.addEventListener("focus", () => {
    live.textContent = active.getAttribute("aria-label");
    options.onMove(options.selected ?? { row: 0, column: 0 });
  });

  const resize = new ResizeObserver(redraw);
  resize.observe(element);
  document.fonts?.addEventListener("loadingdone", redraw);
  draw();

  return {
    update(change) {
      options = { ...options, ...change };
      redraw();
    },
    destroy() {
      cancelAnimationFrame(frame);
      resize.disconnect();
      document.fonts?.removeEventListener("loadingdone", redraw);
      root.remove();
    },
  };
}
