import { adoptStyles } from "./styles.ts";
import { hatch, type Theme, themeOf } from "./theme.ts";
import type { View } from "./view.ts";
import { visible } from "./visible.ts";

export interface Cell {
  readonly row: number;
  readonly column: number;
}

/** What to draw one cell with: a colour and its ink, or null for a hidden cell, and a text where it fits. */
export interface Drawn {
  readonly fill: string | null;
  readonly ink: string;
  readonly hatched: boolean;
  readonly text: string;
}

export interface MatrixGridOptions {
  readonly rows: number;
  readonly columns: number;
  readonly rowLabels: readonly string[];
  readonly columnLabels: readonly string[];
  /** The words on the axes, "query" and "key" for weights. */
  readonly rowAxis: string;
  readonly columnAxis: string;
  /** A number beside each row, under a heading: the rows' sums. */
  readonly marks: { readonly heading: string; readonly texts: readonly string[] } | null;
  /** The largest a cell may become; cells are square unless the height is held lower. */
  readonly maxCell: number;
  readonly maxCellHeight: number;
  readonly selected: Cell | null;
  /** The grid's name, and what is said of a cell, to somebody who does not see it. */
  readonly label: string;
  readonly describe: (cell: Cell) => string;
  readonly cell: (cell: Cell, theme: Theme) => Drawn;
  /** Draws all cells at once, where one is too small to be drawn by itself. */
  readonly pixels: (width: number, height: number, theme: Theme) => ImageData;
  /** A pointer goes down on a cell, then moves over others. */
  readonly onPointer: (cell: Cell, phase: "down" | "move") => void;
  /** An arrow key asks for another cell. */
  readonly onMove: (cell: Cell) => void;
  /** The space bar; without it the key is left to the browser. */
  readonly onPress: ((cell: Cell) => void) | null;
}

const FONT = 12;
const GAP = 6;
const AXIS = 17;
const LABEL_LIMIT = 96;
const SMALLEST_CELL = 7;

interface Geometry {
  readonly left: number;
  readonly top: number;
  readonly cellWidth: number;
  readonly cellHeight: number;
  readonly width: number;
  readonly height: number;
  readonly turned: boolean;
  readonly labelLimit: number;
}

let instances = 0;

function clamp(value: number, count: number): number {
  return Math.min(count - 1, Math.max(0, value));
}

function shorten(context: CanvasRenderingContext2D, text: string, limit: number): string {
  if (context.measureText(text).width <= limit) return text;
  const characters = [...text];
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > limit) characters.pop();
  return `${characters.join("")}…`;
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

  function measure(theme: Theme, available: number): Geometry {
    const { rows, columns, rowLabels, columnLabels, rowAxis, marks, maxCell, maxCellHeight } = options;
    context.font = `${FONT}px ${theme.font}`;
    const widest = (texts: readonly string[]) =>
      texts.reduce((most, text) => Math.max(most, context.measureText(visible(text)).width), 0);
    const labelLimit = Math.min(LABEL_LIMIT, available * 0.3);
    const left =
      Math.ceil(Math.max(Math.min(widest(rowLabels), labelLimit), context.measureText(`${rowAxis} ↓`).width)) + GAP;
    const right = marks ? Math.ceil(Math.max(widest(marks.texts), context.measureText(marks.heading).width)) + GAP : 1;
    const exact = Math.min(maxCell, (available - left - right) / columns);
    const cellWidth = exact > SMALLEST_CELL ? Math.floor(exact) : Math.max(exact, 1 / columns);
    const cellHeight = Math.min(cellWidth, maxCellHeight);
    const keys = widest(columnLabels);
    const turned = keys > cellWidth - 4;
    const top = AXIS + (turned ? Math.ceil(Math.min(keys, labelLimit)) : FONT) + GAP;
    return {
      left,
      top,
      cellWidth,
      cellHeight,
      width: cellWidth * columns,
      height: cellHeight * rows,
      turned,
      labelLimit,
    };
  }

  function drawCells(theme: Theme, at: Geometry, ratio: number): void {
    const { rows, columns } = options;
    const pattern = hatch(context, theme, ratio);
    if (at.cellHeight < SMALLEST_CELL) {
      const width = Math.max(1, Math.round(at.width * ratio));
      const height = Math.max(1, Math.round(at.height * ratio));
      if (pattern) {
        context.fillStyle = pattern;
        context.fillRect(at.left, at.top, at.width, at.height);
      }
      const layer = new OffscreenCanvas(width, height);
      layer.getContext("2d")?.putImageData(options.pixels(width, height, theme), 0, 0);
      context.drawImage(layer, at.left, at.top, at.width, at.height);
      return;
    }
    const gap = at.cellWidth > 14 ? 1 : 0.5;
    const size = Math.min(12.5, Math.max(9, at.cellHeight * 0.4));
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++) {
        const { fill, ink, hatched, text } = options.cell({ row: r, column: c }, theme);
        const x = at.left + c * at.cellWidth;
        const y = at.top + r * at.cellHeight;
        if (fill) {
          context.fillStyle = fill;
          context.fillRect(x, y, at.cellWidth - gap, at.cellHeight - gap);
        }
        if (hatched && pattern) {
          context.fillStyle = pattern;
          context.fillRect(x, y, at.cellWidth - gap, at.cellHeight - gap);
        }
        if (text === "") continue;
        context.font = `${size}px ${theme.font}`;
        if (context.measureText(text).width > at.cellWidth - 3) continue;
        context.fillStyle = ink;
        context.fillText(text, x + (at.cellWidth - gap) / 2, y + (at.cellHeight - gap) / 2 + 0.5);
      }
    }
  }

  function drawLabels(theme: Theme, at: Geometry): void {
    const { rows, columns, rowLabels, columnLabels, rowAxis, columnAxis, marks, selected } = options;
    const faint = 0.76;
    const step = (cell: number) => Math.max(1, Math.ceil((FONT + 1) / cell));
    const everyRow = step(at.cellHeight);
    const everyColumn = step(at.cellWidth);
    context.fillStyle = theme.ink;
    context.direction = "ltr";
    context.font = `${FONT}px ${theme.font}`;

    context.textBaseline = "alphabetic";
    context.globalAlpha = faint;
    context.textAlign = "left";
    context.fillText(`${columnAxis} →`, at.left, FONT);
    context.textAlign = "right";
    context.fillText(`${rowAxis} ↓`, at.left - GAP, at.top - GAP);

    const style = (on: boolean) => {
      context.globalAlpha = on ? 1 : faint;
      context.font = `${on ? "600 " : ""}${FONT}px ${theme.font}`;
    };
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (let r = 0; r < rows; r++) {
      const on = r === selected?.row || r === hovered?.row;
      if (r % everyRow !== 0 && !on) continue;
      if (everyRow > 1 && !on && selected && Math.abs(r - selected.row) < everyRow) continue;
      style(on);
      context.fillText(
        shorten(context, visible(rowLabels[r] ?? ""), at.labelLimit),
        at.left - GAP,
        at.top + (r + 0.5) * at.cellHeight,
      );
    }
    for (let c = 0; c < columns; c++) {
      const on = c === selected?.column || c === hovered?.column;
      if (c % everyColumn !== 0 && !on) continue;
      if (everyColumn > 1 && !on && selected && Math.abs(c - selected.column) < everyColumn) continue;
      style(on);
      const text = shorten(context, visible(columnLabels[c] ?? ""), at.turned ? at.labelLimit : at.cellWidth + 4);
      const x = at.left + (c + 0.5) * at.cellWidth;
      if (at.turned) {
        context.save();
        context.translate(x, at.top - GAP);
        context.rotate(-Math.PI / 2);
        context.textAlign = "left";
        context.fillText(text, 0, 0);
        context.restore();
      } else {
        context.textAlign = "center";
        context.fillText(text, x, at.top - GAP - FONT / 2 + 1);
      }
    }
    if (marks) {
      context.textAlign = "left";
      style(false);
      const x = at.left + at.width + GAP;
      context.fillText(marks.heading, x, at.top - GAP - FONT / 2 + 1);
      for (let r = 0; r < rows; r += everyRow) {
        style(r === selected?.row);
        context.fillText(marks.texts[r] ?? "", x, at.top + (r + 0.5) * at.cellHeight);
      }
    }
    context.globalAlpha = 1;
  }

  function drawCrosshair(theme: Theme, at: Geometry): void {
    const ring = (cell: Cell, alpha: number, width: number) => {
      const x = at.left + cell.column * at.cellWidth;
      const y = at.top + cell.row * at.cellHeight;
      const grow = at.cellWidth < SMALLEST_CELL ? 3 : 0;
      context.globalAlpha = alpha;
      context.strokeStyle = theme.paper;
      context.lineWidth = width + 2;
      context.strokeRect(x - grow, y - grow, at.cellWidth - 1 + 2 * grow, at.cellHeight - 1 + 2 * grow);
      context.strokeStyle = theme.ink;
      context.lineWidth = width;
      context.strokeRect(x - grow, y - grow, at.cellWidth - 1 + 2 * grow, at.cellHeight - 1 + 2 * grow);
      context.globalAlpha = 1;
    };
    const { selected } = options;
    if (hovered && (hovered.row !== selected?.row || hovered.column !== selected?.column)) ring(hovered, 0.55, 1);
    if (!selected) return;
    context.strokeStyle = theme.ink;
    context.globalAlpha = 0.5;
    context.lineWidth = 1;
    const x = at.left + selected.column * at.cellWidth;
    const y = at.top + selected.row * at.cellHeight;
    context.strokeRect(at.left - 0.5, y - 0.5, at.width, at.cellHeight);
    context.strokeRect(x - 0.5, at.top - 0.5, at.cellWidth, at.height);
    ring(selected, 1, 2);
  }

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
    const at = measure(theme, available);
    geometry = at;
    const ratio = window.devicePixelRatio || 1;
    const height = at.top + at.height + 3;
    canvas.width = Math.round(available * ratio);
    canvas.height = Math.round(height * ratio);
    Object.assign(canvas.style, { width: `${available}px`, height: `${height}px` });
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawCells(theme, at, ratio);
    drawCrosshair(theme, at);
    drawLabels(theme, at);
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
