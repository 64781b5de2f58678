import { cancel, type Drawing, request } from "./frames.ts";
import { type Cell, isSameCell } from "./matrix.ts";
import { adoptStyles } from "./styles.ts";
import { type Theme, themeOf } from "./theme.ts";
import type { View } from "./view.ts";
import type { Viewport } from "./viewport.ts";

export type Context = CanvasRenderingContext2D;

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Where a surface shows its cells, in CSS pixels: a window on content that may be larger and then scrolls. */
export interface Layout {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  readonly contentWidth: number;
  readonly contentHeight: number;
  /** The height of the whole surface. */
  readonly total: number;
  /** The furthest one may zoom in. */
  readonly maxZoom: number;
}

export interface Frame<L extends Layout> {
  readonly context: Context;
  readonly layout: L;
  readonly theme: Theme;
  readonly ratio: number;
  /** How far the content is scrolled. */
  readonly x: number;
  readonly y: number;
  readonly hovered: Cell | null;
}

/** What a surface shows. Positions are those of the content, not of the window on it. */
export interface Painter<L extends Layout> {
  /** Works ahead until the deadline; whether all is there to be drawn. */
  prepare(deadline: number): boolean;
  layout(context: Context, theme: Theme, available: number, zoom: number): L;
  /** All but what follows the selection and the pointer. */
  base(frame: Frame<L>): void;
  /** What follows the selection and the pointer, on a canvas of its own, so that it moves without the rest. */
  overlay(frame: Frame<L>): void;
  cellAt(x: number, y: number, layout: L): Cell;
  boxOf(cell: Cell, layout: L): Box;
}

export interface SurfaceOptions {
  readonly rows: number;
  readonly columns: number;
  readonly selected: Cell | null;
  /** The accessible names of the grid and of a cell. */
  readonly label: string;
  readonly describe: (cell: Cell) => string;
  /** A pointer goes down on a cell, moves over others, and lets go. Moves come with every cell since the last. */
  readonly onPointer: (cells: readonly Cell[], phase: "down" | "move" | "up") => void;
  /** The cell under the pointer, where it is shared with other surfaces; without `onHover` it is this surface's own. */
  readonly hovered?: Cell | null;
  readonly onHover?: (cell: Cell | null) => void;
  /** An arrow key asks for another cell. */
  readonly onMove: (cell: Cell) => void;
  /** The space bar; without it the key is left to the browser. */
  readonly onPress: ((cell: Cell) => void) | null;
  /** Whether a finger draws on the surface and does not scroll the page. */
  readonly isPainted: boolean;
  readonly viewport: Viewport;
}

export interface Surface<Options = SurfaceOptions> extends View<Options> {
  /** Draws all again; `update` alone draws what follows the selection. */
  redraw(): void;
}

export const ZOOM_STEP = 1.5;

let instances = 0;

const themeKey = ({ ink, font }: Theme) => `${ink} ${font}`;

const clamp = (value: number, least: number, most: number) => Math.max(least, Math.min(most, value));

function make(className: string, role?: string): HTMLDivElement {
  const element = document.createElement("div");
  element.className = className;
  if (role) element.setAttribute("role", role);
  return element;
}

function makeCanvas(): [HTMLCanvasElement, Context] {
  const canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true");
  return [canvas, canvas.getContext("2d") as Context];
}

/**
 * Cells on a canvas, with one focusable grid over it: arrows move the selected cell, and a screen reader is told of it.
 * One element for the grid, not one for a cell, so that thousands of rows stay light. What does not fit scrolls as any
 * page does, and only what is in the window is drawn.
 */
export function surface<L extends Layout>(element: HTMLElement, painter: Painter<L>, start: SurfaceOptions): Surface {
  adoptStyles(element);
  let options = start;
  let layout: L | null = null;
  let theme: Theme | null = null;
  let available = 0;
  let placedIn = "";
  let hovered: Cell | null = null;
  let isStale = true;
  let isVisible = true;
  let toReveal: Cell | null = null;
  // What a scroll bar takes from the window.
  let bar = 0;

  const root = make("attn-surface");
  const [base, baseContext] = makeCanvas();
  const [overlay, overlayContext] = makeCanvas();
  const scroller = make("attn-scroll");
  const grid = make("attn-grid", "grid");
  grid.tabIndex = 0;
  const row = make("attn-row", "row");
  const active = make("attn-cell", "gridcell");
  active.id = `attn-cell-${++instances}`;
  grid.setAttribute("aria-activedescendant", active.id);
  const live = make("attn-live");
  live.setAttribute("aria-live", "polite");
  row.append(active);
  grid.append(row);
  scroller.append(grid);
  root.append(base, overlay, scroller, live);
  element.append(root);

  function tell(): void {
    const { rows, columns, selected, label } = options;
    const cell = selected ?? { row: 0, column: 0 };
    grid.classList.toggle("attn-paint", options.isPainted);
    grid.setAttribute("aria-label", label);
    grid.setAttribute("aria-rowcount", String(rows));
    grid.setAttribute("aria-colcount", String(columns));
    row.setAttribute("aria-rowindex", String(cell.row + 1));
    active.setAttribute("aria-colindex", String(cell.column + 1));
    active.setAttribute("aria-selected", String(selected !== null));
    const said = options.describe(cell);
    if (active.getAttribute("aria-label") === said) return;
    active.setAttribute("aria-label", said);
    if (document.activeElement === grid) live.textContent = said;
  }

  function place(child: HTMLElement, { x, y, width, height }: Box): void {
    Object.assign(child.style, { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` });
  }

  const isScrolled = () => scroller.style.overflowX === "auto" || scroller.style.overflowY === "auto";

  const scrolled = (at: L) => {
    const { x, y } = options.viewport.look;
    const most = (content: number, window: number) => (content > window + 1 ? content - window + bar : 0);
    return {
      x: clamp(x * at.contentWidth, 0, most(at.contentWidth, at.width)),
      y: clamp(y * at.contentHeight, 0, most(at.contentHeight, at.height)),
    };
  };

  function reveal(at: L): void {
    if (!toReveal) return;
    const box = painter.boxOf(toReveal, at);
    toReveal = null;
    const { x, y } = scrolled(at);
    const into = (now: number, from: number, size: number, window: number) =>
      from < now ? from : from + size > now + window ? from + size - window : now;
    options.viewport.set({
      x: into(x, box.x, box.width, at.width) / at.contentWidth,
      y: into(y, box.y, box.height, at.height) / at.contentHeight,
    });
  }

  function resize(canvas: HTMLCanvasElement, context: Context, height: number, ratio: number): void {
    const [w, h] = [Math.round(available * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) {
      canvas.width = w;
      canvas.height = h;
      Object.assign(canvas.style, { width: `${available}px`, height: `${height}px` });
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, available, height);
  }

  const isEmpty = () => available === 0 || options.rows === 0 || options.columns === 0;

  const drawing: Drawing = {
    measure() {
      // It may have come under another root, as a shadow's.
      adoptStyles(element);
      available = element.clientWidth;
      theme = themeOf(element);
    },
    place() {
      if (!theme || isEmpty()) return;
      if (placedIn === themeKey(theme)) return;
      placedIn = themeKey(theme);
      isStale = true;
      layout = painter.layout(baseContext, theme, available, options.viewport.look.zoom);
      const { left, top, width, height, contentWidth, contentHeight, total } = layout;
      options.viewport.most = layout.maxZoom;
      root.style.height = `${total}px`;
      place(scroller, { x: left, y: top, width, height });
      Object.assign(grid.style, { width: `${contentWidth}px`, height: `${contentHeight}px` });
      // A pixel of rounding is nothing to scroll.
      scroller.style.overflowX = contentWidth > width + 1 ? "auto" : "hidden";
      scroller.style.overflowY = contentHeight > height + 1 ? "auto" : "hidden";
    },
    draw(deadline) {
      if (!theme || !layout || isEmpty()) return true;
      if (!painter.prepare(deadline)) return false;
      const ratio = window.devicePixelRatio || 1;
      if (isStale) {
        bar = isScrolled()
          ? Math.max(scroller.offsetWidth - scroller.clientWidth, scroller.offsetHeight - scroller.clientHeight)
          : 0;
      }
      reveal(layout);
      const { x, y } = scrolled(layout);
      if (isStale && isScrolled()) scroller.scrollTo({ left: x, top: y, behavior: "instant" });
      const frame = { layout, theme, ratio, x, y, hovered: options.onHover ? (options.hovered ?? null) : hovered };
      if (isStale) {
        resize(base, baseContext, layout.total, ratio);
        painter.base({ ...frame, context: baseContext });
      }
      isStale = false;
      resize(overlay, overlayContext, layout.total, ratio);
      painter.overlay({ ...frame, context: overlayContext });
      place(active, painter.boxOf(options.selected ?? { row: 0, column: 0 }, layout));
      return true;
    },
    isSeen: () => isVisible,
  };

  function redraw(): void {
    isStale = true;
    placedIn = "";
    request(drawing);
  }

  function cellAt(event: PointerEvent): Cell | null {
    if (!layout) return null;
    const box = grid.getBoundingClientRect();
    const { row, column } = painter.cellAt(event.clientX - box.left, event.clientY - box.top, layout);
    return { row: clamp(row, 0, options.rows - 1), column: clamp(column, 0, options.columns - 1) };
  }

  function hover(cell: Cell | null): void {
    if (isSameCell(cell, hovered)) return;
    hovered = cell;
    if (options.onHover) options.onHover(cell);
    else request(drawing);
  }

  function zoomAt(factor: number, event: MouseEvent): void {
    if (!layout) return;
    const { contentWidth, contentHeight } = layout;
    const box = grid.getBoundingClientRect();
    const point = { x: (event.clientX - box.left) / contentWidth, y: (event.clientY - box.top) / contentHeight };
    options.viewport.zoomAt(factor, point);
  }

  grid.addEventListener("pointerdown", (event) => {
    const cell = cellAt(event);
    if (!cell || event.button !== 0) return;
    if (event.pointerType !== "touch" || options.isPainted) grid.setPointerCapture(event.pointerId);
    options.onPointer([cell], "down");
  });
  grid.addEventListener("pointermove", (event) => {
    if (event.pointerType !== "touch") hover(cellAt(event));
    if (!grid.hasPointerCapture(event.pointerId)) return;
    const events = event.getCoalescedEvents?.() ?? [];
    const cells = (events.length > 0 ? events : [event]).flatMap((part) => cellAt(part) ?? []);
    if (cells.length > 0) options.onPointer(cells, "move");
  });
  for (const end of ["pointerup", "pointercancel"] as const) {
    grid.addEventListener(end, () => options.onPointer([], "up"));
  }
  grid.addEventListener("pointerleave", () => hover(null));
  grid.addEventListener("dblclick", (event) => {
    if (!layout || options.isPainted) return;
    zoomAt(options.viewport.look.zoom > 1 ? 0 : layout.maxZoom, event);
  });
  scroller.addEventListener(
    "wheel",
    (event) => {
      // With Ctrl it is also what pinching a touchpad gives. Where there is nothing to zoom the browser has it.
      if (!event.ctrlKey || !layout || layout.maxZoom === 1) return;
      event.preventDefault();
      zoomAt(2 ** (-event.deltaY / 200), event);
    },
    { passive: false },
  );
  scroller.addEventListener("scroll", () => {
    if (!layout || isStale) return;
    const { x, y } = scrolled(layout);
    const { scrollLeft, scrollTop } = scroller;
    if (Math.abs(scrollLeft - x) < 1 && Math.abs(scrollTop - y) < 1) return;
    options.viewport.set({ x: scrollLeft / layout.contentWidth, y: scrollTop / layout.contentHeight });
  });
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
    const zooms: Partial<Record<string, number>> = { "+": ZOOM_STEP, "=": ZOOM_STEP, "-": 1 / ZOOM_STEP, "0": 0 };
    const to = moves[event.key];
    const factor = event.ctrlKey ? undefined : zooms[event.key];
    if (to) {
      event.preventDefault();
      options.onMove({ row: clamp(to.row, 0, rows - 1), column: clamp(to.column, 0, columns - 1) });
    } else if (factor !== undefined) {
      event.preventDefault();
      options.viewport.zoomAtCell(factor, { row: r, column: c }, rows, columns);
    } else if (event.key === " " && options.onPress) {
      event.preventDefault();
      options.onPress({ row: r, column: c });
    }
  });
  grid.addEventListener("focus", () => {
    live.textContent = active.getAttribute("aria-label");
    options.onMove(options.selected ?? { row: 0, column: 0 });
  });

  const sizes = new ResizeObserver(() => {
    if (element.clientWidth !== available) redraw();
  });
  sizes.observe(element);
  const sight = new IntersectionObserver(
    ([entry]) => {
      isVisible = entry?.isIntersecting ?? true;
      if (isVisible) request(drawing);
    },
    { rootMargin: "25%" },
  );
  sight.observe(element);
  document.fonts?.addEventListener("loadingdone", redraw);
  options.viewport.addEventListener("change", redraw);
  tell();
  redraw();

  return {
    update(change) {
      const before = options;
      options = { ...options, ...change };
      if (options.viewport !== before.viewport) {
        before.viewport.removeEventListener("change", redraw);
        options.viewport.addEventListener("change", redraw);
        isStale = true;
        placedIn = "";
      }
      if (!isSameCell(options.selected, before.selected)) toReveal = options.selected;
      tell();
      request(drawing);
    },
    redraw,
    destroy() {
      cancel(drawing);
      sizes.disconnect();
      sight.disconnect();
      document.fonts?.removeEventListener("loadingdone", redraw);
      options.viewport.removeEventListener("change", redraw);
      root.remove();
    },
  };
}
