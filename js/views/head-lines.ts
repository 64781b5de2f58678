import { type PictureView, png } from "./exported.ts";
import { headColor } from "./head-colors.ts";
import { headToggles } from "./head-toggles.ts";
import {
  type HeadsOptions,
  listen,
  placeIn,
  pointedIn,
  read,
  sizesOf,
  unlisten,
  weightAt,
  writeWeight,
} from "./heads.ts";
import { FAINT, FONT, setFont, shorten, widest } from "./labels.ts";
import { aside, BEND, besides, LEAST, LEAST_ASIDE, lineLook, PITCH } from "./line-look.ts";
import { linesSvg } from "./lines-svg.ts";
import type { Cell } from "./matrix.ts";
import { type Context, type Frame, type Layout, type SurfaceOptions, surface } from "./surface.ts";
import { colorsOf, pictureOf } from "./svg.ts";
import { themeOf } from "./theme.ts";
import { Viewport } from "./viewport.ts";
import { visible } from "./visible.ts";

/** Options of {@link headLines}. */
export interface HeadLinesOptions extends HeadsOptions {
  /** The heads that are shown; by default all. */
  readonly heads?: readonly number[] | undefined;
  /** Called when somebody shows or hides a head. */
  readonly onHeads?: ((heads: readonly number[]) => void) | undefined;
}

interface LinesLayout extends Layout {
  readonly labelWidth: number;
  /** Where the keys' labels begin. */
  readonly right: number;
}

const HEADING = 22;
const MOST_HEIGHT = 620;
const GAP = 8;

/**
 * Lines from queries on the left to keys on the right, a colour for each head, thick where the weight is large.
 *
 * @throws AttnError `invalid_option`, `shape_mismatch`
 */
export function headLines(element: HTMLElement, start: HeadLinesOptions): PictureView<HeadLinesOptions> {
  const viewport = new Viewport();
  let options = read(start);
  let { selection } = options;
  let shown = new Set(options.heads ?? options.titles.keys());

  const write = (value: number) => writeWeight(options, value);

  const toggles = headToggles(element, toToggles());

  function toToggles() {
    return {
      titles: options.titles,
      shown,
      onToggle: (head: number) => {
        if (!shown.delete(head)) shown.add(head);
        options.onHeads?.([...shown].sort((a, b) => a - b));
        toggles.update({ shown });
        view.redraw();
      },
    };
  }

  function layout(context: Context, theme: Frame<LinesLayout>["theme"], available: number): LinesLayout {
    const { queries, keys } = sizesOf(options);
    setFont(context, theme, FONT + 1, true);
    const longest = Math.max(widest(context, options.rowLabels), widest(context, options.columnLabels));
    const labelWidth = Math.ceil(Math.min(Math.max(longest, 44), available * 0.26, 180));
    const contentHeight = Math.max(queries, keys) * PITCH;
    const numberWidth = Math.ceil(context.measureText(write(-0.0001)).width) + GAP;
    const width = Math.min(available, 2 * labelWidth + numberWidth + 420);
    const height = Math.min(contentHeight, MOST_HEIGHT);
    return {
      left: 0,
      top: HEADING,
      width,
      height,
      contentWidth: width,
      contentHeight,
      total: HEADING + height + 4,
      maxZoom: 1,
      labelWidth,
      right: width - labelWidth - numberWidth,
    };
  }

  const middle = (i: number, { y }: Frame<LinesLayout>) => HEADING + (i + 0.5) * PITCH - y;

  function drawLine(frame: Frame<LinesLayout>, head: number, query: number, key: number, strength: number): void {
    const { context, layout: at, theme } = frame;
    const { heads } = sizesOf(options);
    const value = weightAt(options, head, query, key);
    const look = lineLook(value, options.reach ?? 1, heads, strength);
    const [from, to] = [at.labelWidth + GAP, at.right - GAP];
    const beside = besides(head, heads);
    const [y0, y1] = [middle(query, frame) + beside, middle(key, frame) + beside];
    const bend = (to - from) * BEND;
    context.globalAlpha = look.opacity;
    context.strokeStyle = headColor(head, theme.dark);
    context.lineWidth = look.width;
    context.setLineDash(look.dash);
    context.beginPath();
    context.moveTo(from, y0);
    context.bezierCurveTo(from + bend, y0, to - bend, y1, to, y1);
    context.stroke();
  }

  function clip({ context, layout: at }: Frame<LinesLayout>): void {
    context.save();
    context.beginPath();
    context.rect(0, at.top, at.width, at.height);
    context.clip();
    context.lineCap = "butt";
  }

  function inSight({ y, layout: { height } }: Frame<LinesLayout>, count: number): readonly [number, number] {
    return [Math.max(0, Math.floor(y / PITCH)), Math.min(count, Math.ceil((y + height) / PITCH))];
  }

  function drawAside(frame: Frame<LinesLayout>): void {
    const { queries, keys } = sizesOf(options);
    const { reach = 1 } = options;
    const [first, last] = inSight(frame, queries);
    const strength = aside(shown.size, last - first);
    clip(frame);
    for (const head of shown) {
      for (let query = first; query < last; query++) {
        for (let key = 0; key < keys; key++) {
          if (Math.abs(weightAt(options, head, query, key)) >= LEAST_ASIDE * reach)
            drawLine(frame, head, query, key, strength);
        }
      }
    }
    frame.context.restore();
  }

  function drawLabels(frame: Frame<LinesLayout>, query: number, key: number): void {
    const { context, layout: at, theme } = frame;
    const { rowLabels, columnLabels, rowAxis = "query", columnAxis = "key", titles } = options;
    const { queries, keys } = sizesOf(options);
    const { head } = placeIn(options);
    context.fillStyle = theme.ink;
    context.direction = "ltr";
    context.textBaseline = "middle";
    context.globalAlpha = FAINT;
    setFont(context, theme, FONT);
    context.textAlign = "right";
    context.fillText(rowAxis, at.labelWidth, HEADING / 2);
    context.textAlign = "left";
    context.fillText(columnAxis, at.right, HEADING / 2);
    context.textAlign = "right";
    context.fillText(titles[head]?.name ?? "", at.width, HEADING / 2);
    clip(frame);
    const label = (text: string, x: number, i: number, isOn: boolean) => {
      context.globalAlpha = isOn ? 1 : FAINT;
      setFont(context, theme, FONT + 1, isOn);
      context.fillText(shorten(context, visible(text), at.labelWidth - 2), x, middle(i, frame));
    };
    context.textAlign = "right";
    const [firstQuery, lastQuery] = inSight(frame, queries);
    for (let i = firstQuery; i < lastQuery; i++) label(rowLabels[i] ?? "", at.labelWidth, i, i === query);
    context.textAlign = "left";
    const [firstKey, lastKey] = inSight(frame, keys);
    for (let i = firstKey; i < lastKey; i++) label(columnLabels[i] ?? "", at.right, i, i === key);
    // The numbers are those of the query in the selected head.
    context.textAlign = "right";
    for (let i = firstKey; i < lastKey; i++) {
      context.globalAlpha = i === key ? 1 : FAINT;
      setFont(context, theme, FONT, i === key);
      context.fillText(write(weightAt(options, head, query, i)), at.width, middle(i, frame));
    }
    context.restore();
  }

  function drawFocus(frame: Frame<LinesLayout>): void {
    const { queries, keys } = sizesOf(options);
    const { reach = 1 } = options;
    const place = placeIn(options);
    const { hovered } = frame;
    const query = hovered?.row ?? place.query;
    const key = hovered?.column ?? place.key;
    // Pointing at a key asks who attends to it; else the lines are those of the query.
    const isKey = hovered !== null && hovered.column !== place.key;
    clip(frame);
    // The selected head's lines lie on top.
    const order = [...shown].sort((a, b) => Number(a === place.head) - Number(b === place.head));
    for (const head of order) {
      for (let i = 0; i < (isKey ? queries : keys); i++) {
        const [from, to] = isKey ? [i, key] : [query, i];
        if (Math.abs(weightAt(options, head, from, to)) >= LEAST * reach) drawLine(frame, head, from, to, 1);
      }
    }
    frame.context.restore();
    drawLabels(frame, query, key);
  }

  function toSurface(): SurfaceOptions {
    const { queries, keys } = sizesOf(options);
    const { head, query, key } = placeIn(options);
    return {
      rows: queries,
      columns: keys,
      selected: { row: query, column: key },
      label: options.label,
      describe: (cell) => options.describe(head, cell, weightAt(options, head, cell.row, cell.column)),
      onPointer: (cells, phase) => {
        const cell = cells.at(-1);
        if (phase === "down" && cell) select(cell);
      },
      hovered: pointedIn(options),
      onHover: (cell) => selection.point(cell && { query: cell.row, key: cell.column }),
      onMove: select,
      onPress: null,
      isPainted: false,
      viewport,
    };
  }

  function select({ row, column }: Cell): void {
    selection.set({ query: row, key: column });
  }

  const view = surface<LinesLayout>(
    element,
    {
      prepare: () => true,
      layout,
      base: drawAside,
      overlay: drawFocus,
      cellAt: (x, y, at) => {
        const { query, key } = placeIn(options);
        const i = Math.floor(y / PITCH);
        return x < (at.labelWidth + at.right) / 2 ? { row: i, column: key } : { row: query, column: i };
      },
      boxOf: ({ row }, { width }) => ({ x: 0, y: row * PITCH, width, height: PITCH }),
    },
    toSurface(),
  );

  function toSvg(): string {
    const colors = colorsOf(themeOf(element).dark);
    return pictureOf(options.label, linesSvg(options, shown, colors), colors);
  }

  const follow = () => view.update(toSurface());
  listen(selection, follow);

  return {
    toSvg,
    toPng: () => png(toSvg()),
    update(change) {
      const before = options;
      options = read({ ...options, ...change });
      if (options.selection !== selection) {
        unlisten(selection, follow);
        selection = options.selection;
        listen(selection, follow);
      }
      if (change.heads) shown = new Set(change.heads);
      else if (options.titles.length !== before.titles.length) shown = new Set(options.titles.keys());
      toggles.update(toToggles());
      follow();
      view.redraw();
    },
    destroy() {
      unlisten(selection, follow);
      view.destroy();
      toggles.destroy();
    },
  };
}
