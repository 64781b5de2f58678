import { barsSvg } from "./bars-svg.ts";
import { type PictureView, png } from "./exported.ts";
import { headColor } from "./head-colors.ts";
import {
  type HeadsOptions,
  hasNegative,
  isHidden,
  listen,
  placeIn,
  read,
  sizesOf,
  unlisten,
  weightAt,
  writeWeight,
} from "./heads.ts";
import { FAINT, FONT, setFont, shorten, widest } from "./labels.ts";
import type { Cell } from "./matrix.ts";
import { type Context, type Frame, type Layout, type SurfaceOptions, surface } from "./surface.ts";
import { colorsOf, pictureOf } from "./svg.ts";
import { hatch, themeOf } from "./theme.ts";
import { Viewport } from "./viewport.ts";
import { visible } from "./visible.ts";

interface BarsLayout extends Layout {
  readonly columnWidth: number;
  readonly numberWidth: number;
}

const PITCH = 24;
const BAR = 12;
const HEADING = 54;
const MOST_HEIGHT = 620;
const GAP = 8;
const NARROWEST = 112;
const WIDEST = 240;

/**
 * One query's row as bars: a line for each key, a column for each head, and every number.
 *
 * @throws AttnError `invalid_option`, `shape_mismatch`
 */
export function rowBars(element: HTMLElement, start: HeadsOptions): PictureView<HeadsOptions> {
  const viewport = new Viewport();
  let options = read(start);
  let { selection } = options;

  const write = (value: number) => writeWeight(options, value);

  function layout(context: Context, theme: Frame<BarsLayout>["theme"], available: number): BarsLayout {
    const { heads, keys } = sizesOf(options);
    setFont(context, theme, FONT + 1, true);
    const { columnAxis = "key" } = options;
    const longest = Math.max(widest(context, options.columnLabels), context.measureText(`${columnAxis} ↓`).width);
    const left = Math.ceil(Math.min(longest, available * 0.3, 160)) + GAP;
    const numberWidth = Math.ceil(context.measureText(write(-0.0001)).width) + GAP;
    const columnWidth = Math.max(NARROWEST, Math.min(WIDEST, Math.floor((available - left) / heads)));
    const height = Math.min(keys * PITCH, MOST_HEIGHT);
    return {
      left,
      top: HEADING,
      width: Math.min(available - left, columnWidth * heads),
      height,
      contentWidth: columnWidth * heads,
      contentHeight: keys * PITCH,
      total: HEADING + height + 4,
      maxZoom: 1,
      columnWidth,
      numberWidth,
    };
  }

  function inSight({ x, y, layout: at }: Frame<BarsLayout>) {
    const { heads, keys } = sizesOf(options);
    return {
      keys: [Math.floor(y / PITCH), Math.min(keys, Math.ceil((y + at.height) / PITCH))] as const,
      heads: [Math.floor(x / at.columnWidth), Math.min(heads, Math.ceil((x + at.width) / at.columnWidth))] as const,
    };
  }

  function clip({ context, layout: at }: Frame<BarsLayout>, top: number): void {
    context.save();
    context.beginPath();
    context.rect(at.left - 2, top, at.width + 4, at.top + at.height - top + 3);
    context.clip();
  }

  function drawBar(frame: Frame<BarsLayout>, head: number, key: number, isSigned: boolean): void {
    const { context, layout: at, theme, ratio, x, y } = frame;
    const { query } = placeIn(options);
    const value = weightAt(options, head, query, key);
    const left = at.left + head * at.columnWidth - x;
    const middle = at.top + (key + 0.5) * PITCH - y;
    const room = at.columnWidth - at.numberWidth - 2 * GAP;
    const zero = isSigned ? left + room / 2 : left;
    const scale = (isSigned ? room / 2 : room) / (options.reach ?? 1);
    if (isHidden(options, head, query, key)) {
      context.fillStyle = hatch(context, theme, ratio) ?? theme.ink;
      context.fillRect(left, middle - BAR / 2, room, BAR);
    }
    const length = Math.max(-room, Math.min(room, (Number.isNaN(value) ? 0 : value) * scale));
    context.fillStyle = headColor(head, theme.dark);
    context.fillRect(Math.min(zero, zero + length), middle - BAR / 2, Math.abs(length), BAR);
    context.fillRect(zero, middle - BAR / 2 - 2, 1, BAR + 4);
    context.fillStyle = theme.ink;
    context.textAlign = "right";
    context.fillText(write(value), left + room + at.numberWidth, middle + 0.5);
  }

  function drawBars(frame: Frame<BarsLayout>): void {
    const { context, theme, layout: at } = frame;
    const seen = inSight(frame);
    const isSigned = hasNegative(options, placeIn(options).query);
    clip(frame, at.top);
    context.textBaseline = "middle";
    setFont(context, theme, FONT);
    for (let head = seen.heads[0]; head < seen.heads[1]; head++) {
      for (let key = seen.keys[0]; key < seen.keys[1]; key++) drawBar(frame, head, key, isSigned);
    }
    context.restore();
  }

  function drawMarks(frame: Frame<BarsLayout>): void {
    const { context, layout: at, theme, x, y, hovered } = frame;
    const { rowLabels, columnLabels, rowAxis = "query", columnAxis = "key", titles } = options;
    const place = placeIn(options);
    const seen = inSight(frame);
    const on = hovered ?? { row: place.key, column: place.head };
    context.fillStyle = theme.ink;
    context.strokeStyle = theme.ink;
    context.direction = "ltr";
    context.textBaseline = "middle";
    const style = (isOn: boolean) => {
      context.globalAlpha = isOn ? 1 : FAINT;
      setFont(context, theme, FONT, isOn);
    };
    style(true);
    context.textAlign = "left";
    const asked = `${rowAxis} ${visible(rowLabels[place.query] ?? "")}`;
    context.fillText(shorten(context, asked, at.left + at.width), 0, FONT / 2 + 2);
    style(false);
    context.textAlign = "right";
    context.fillText(`${columnAxis} ↓`, at.left - GAP, HEADING - 10);

    context.save();
    context.beginPath();
    context.rect(0, at.top - 1, at.left, at.height + 2);
    context.clip();
    for (let key = seen.keys[0]; key < seen.keys[1]; key++) {
      style(key === on.row);
      const text = shorten(context, visible(columnLabels[key] ?? ""), at.left - GAP);
      context.fillText(text, at.left - GAP, at.top + (key + 0.5) * PITCH - y);
    }
    context.restore();

    clip(frame, 0);
    context.textAlign = "left";
    for (let head = seen.heads[0]; head < seen.heads[1]; head++) {
      const left = at.left + head * at.columnWidth - x;
      context.globalAlpha = 1;
      context.fillStyle = headColor(head, theme.dark);
      context.fillRect(left, HEADING - 29, 9, 9);
      context.fillStyle = theme.ink;
      const { name = "", note = "" } = titles[head] ?? {};
      const write = (text: string, up: number) =>
        context.fillText(shorten(context, text, at.columnWidth - 14 - GAP), left + 14, HEADING - up);
      style(head === on.column);
      write(name, 24);
      style(false);
      write(note, 10);
    }
    context.restore();

    clip(frame, at.top - 2);
    context.globalAlpha = 1;
    context.lineWidth = 1.5;
    const [left, top] = [at.left + place.head * at.columnWidth - x, at.top + place.key * PITCH - y];
    context.strokeRect(left - 1, top + 2, at.columnWidth - GAP, PITCH - 4);
    context.restore();
  }

  /** What is pointed at of the query that is shown. */
  function hoveredBar(): Cell | null {
    const { head = -1, query, key = -1 } = selection.pointed ?? {};
    const { heads, keys } = sizesOf(options);
    const isHere = query === placeIn(options).query && head >= 0 && head < heads && key >= 0 && key < keys;
    return isHere ? { row: key, column: head } : null;
  }

  function toSurface(): SurfaceOptions {
    const { heads, keys } = sizesOf(options);
    const { head, query, key } = placeIn(options);
    const select = ({ row, column }: { row: number; column: number }) => selection.set({ key: row, head: column });
    return {
      rows: keys,
      columns: heads,
      selected: { row: key, column: head },
      label: options.label,
      describe: ({ row, column }) =>
        options.describe(column, { row: query, column: row }, weightAt(options, column, query, row)),
      onPointer: (cells) => {
        const cell = cells.at(-1);
        if (cell) select(cell);
      },
      hovered: hoveredBar(),
      onHover: (cell) => selection.point(cell && { head: cell.column, query, key: cell.row }),
      onMove: select,
      onPress: null,
      isPainted: false,
      viewport,
    };
  }

  const view = surface<BarsLayout>(
    element,
    {
      prepare: () => true,
      layout,
      base: drawBars,
      overlay: drawMarks,
      cellAt: (x, y, { columnWidth }) => ({ row: Math.floor(y / PITCH), column: Math.floor(x / columnWidth) }),
      boxOf: ({ row, column }, { columnWidth }) => ({
        x: column * columnWidth,
        y: row * PITCH,
        width: columnWidth,
        height: PITCH,
      }),
    },
    toSurface(),
  );

  let drawnQuery = placeIn(options).query;

  function follow(): void {
    view.update(toSurface());
    const { query } = placeIn(options);
    if (query !== drawnQuery) view.redraw();
    drawnQuery = query;
  }
  listen(selection, follow);

  function toSvg(): string {
    const colors = colorsOf(themeOf(element).dark);
    return pictureOf(options.label, [barsSvg(options, colors)], colors);
  }

  return {
    toSvg,
    toPng: () => png(toSvg()),
    update(change) {
      options = read({ ...options, ...change });
      if (options.selection !== selection) {
        unlisten(selection, follow);
        selection = options.selection;
        listen(selection, follow);
      }
      follow();
      view.redraw();
    },
    destroy() {
      unlisten(selection, follow);
      view.destroy();
    },
  };
}
