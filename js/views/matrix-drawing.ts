import type { Region } from "../device.ts";
import { FAINT, FONT, setFont, shorten, widest } from "./labels.ts";
import { type Cell, isSameCell } from "./matrix.ts";
import { toCanvas } from "./raster.ts";
import type { Context, Frame, Layout } from "./surface.ts";
import { hatch, type Theme } from "./theme.ts";
import { visible } from "./visible.ts";

/** What a cell has beside its colour. */
export interface CellText {
  readonly text: string;
  readonly ink: string;
}

/** What a labelled matrix looks like. */
export interface MatrixPicture {
  readonly rows: number;
  readonly columns: number;
  readonly rowLabels: readonly string[];
  readonly columnLabels: readonly string[];
  /** The words on the axes, "query" and "key" for weights. */
  readonly rowAxis: string;
  readonly columnAxis: string;
  /** A number beside each row, under a heading: the rows' sums. */
  readonly sums: { readonly heading: string; readonly text: (row: number) => string } | null;
  /** The largest a cell may become; cells are square unless the height is held lower. */
  readonly maxCell: number;
  readonly maxCellHeight: number;
  readonly selected: Cell | null;
  /** Whether this is the matrix the selection is in, not only one that shares it. */
  readonly isCurrent: boolean;
  /** Whether any cell is hatched, and whether a hatched one keeps its colour. */
  readonly hatching: "none" | "bare" | "over colour";
  readonly isHatched: (cell: Cell) => boolean;
  readonly cell: (cell: Cell, theme: Theme) => CellText;
  /** The longest text of these cells in all matrices whose numbers are to be of one size; without it the matrix has its own. */
  readonly longest?: ((seen: Region, theme: Theme) => string) | undefined;
  /** The colours of blocks of cells, a pixel for a block; what is transparent shows the hatching. Null where they come later. */
  readonly pixels: (pixelsPerCell: number, visible: Region, theme: Theme) => Pixels | null;
}

/** Blocks of `block` by `block` cells as an image. */
export interface Pixels {
  readonly image: ImageData | ImageBitmap;
  readonly block: number;
  readonly region: Region;
  /** Where the region begins in the image, which may hold more. */
  readonly left: number;
  readonly top: number;
}

/** An image of a region and no more. */
export function pixelsOf(image: ImageData, block: number, region: Region): Pixels {
  return { image, block, region, left: 0, top: 0 };
}

export interface MatrixLayout extends Layout {
  readonly cellWidth: number;
  readonly cellHeight: number;
  readonly isTurned: boolean;
  readonly labelLimit: number;
  readonly hasSums: boolean;
}

const GAP = 6;
const AXIS = 17;
const LABEL_LIMIT = 96;
const SMALLEST_CELL = 7;
const SMALLEST_TEXT = 8.5;
/** From this size on a cell holds its number, however long. */
const READABLE = 44;
/** The narrowest matrix that has room for sums. */
const ROOM_FOR_SUMS = 220;
/** Fewer rows than fill this height become taller than wide rather than a line. */
const LEAST_HEIGHT = 150;
const MOST_HEIGHT = 720;
/** The least height of the window on an enlarged matrix. */
const WINDOW = 260;

const whole = (size: number) => (size > SMALLEST_CELL ? Math.floor(size) : size);

/** Fits a matrix and its labels into a width. */
export function layOut(
  context: Context,
  picture: MatrixPicture,
  theme: Theme,
  available: number,
  zoom: number,
): MatrixLayout {
  const { rows, columns, rowLabels, columnLabels, rowAxis, sums, maxCell, maxCellHeight } = picture;
  setFont(context, theme, FONT, true);
  const width = (text: string) => context.measureText(text).width;
  const labelLimit = Math.min(LABEL_LIMIT, available * 0.3);
  const left = Math.ceil(Math.max(Math.min(widest(context, rowLabels), labelLimit), width(`${rowAxis} ↓`))) + GAP;
  const hasSums = sums !== null && available >= ROOM_FOR_SUMS;
  const right = hasSums ? Math.ceil(Math.max(width(sums.text(0)), width("0.00"), width(sums.heading))) + GAP : 1;
  const room = Math.max(1, available - left - right);
  const fitWidth = whole(Math.min(maxCell, room / columns));
  const square = Math.max(fitWidth, Math.min(14, LEAST_HEIGHT / rows));
  const fitHeight = whole(Math.min(square, maxCellHeight, Math.max(MOST_HEIGHT, room) / rows));
  const smaller = Math.min(fitWidth, fitHeight);
  const maxZoom = smaller < READABLE / 2 ? READABLE / smaller : 1;
  const enlarged = (fit: number) => (zoom > 1 ? whole(Math.min(fit * zoom, Math.max(fit, READABLE))) : fit);
  const [cellWidth, cellHeight] = [enlarged(fitWidth), enlarged(fitHeight)];
  const longest = widest(context, columnLabels);
  const isTurned = longest > cellWidth - 2;
  const top = AXIS + (longest > fitWidth - 2 ? Math.ceil(Math.min(longest, labelLimit)) : FONT) + GAP;
  const height = Math.min(cellHeight * rows, Math.max(fitHeight * rows, WINDOW));
  return {
    left,
    top,
    width: Math.min(cellWidth * columns, room),
    height,
    contentWidth: cellWidth * columns,
    contentHeight: cellHeight * rows,
    total: Math.ceil(top + height + 3),
    maxZoom,
    cellWidth,
    cellHeight,
    isTurned,
    labelLimit,
    hasSums,
  };
}

/** The cells in the window. */
function inSight({ layout, x, y }: Frame<MatrixLayout>, { rows, columns }: MatrixPicture): Region {
  const { cellWidth, cellHeight, width, height } = layout;
  return {
    top: Math.max(0, Math.floor(y / cellHeight)),
    left: Math.max(0, Math.floor(x / cellWidth)),
    bottom: Math.min(rows, Math.ceil((y + height) / cellHeight)),
    right: Math.min(columns, Math.ceil((x + width) / cellWidth)),
  };
}

function clipToWindow({ context, layout: { left, top, width, height } }: Frame<MatrixLayout>, spare = 0): void {
  context.beginPath();
  context.rect(left - spare, top - spare, width + 2 * spare, height + 2 * spare);
  context.clip();
}

export const longer = (one: string, other: string) => (other.length > one.length ? other : one);

// One size for the whole matrix, or no numbers at all: some with and some without would read as a pattern.
function textSize({ context, layout, theme }: Frame<MatrixLayout>, longest: string): number {
  const largest = Math.min(12.5, layout.cellHeight * 0.44);
  setFont(context, theme, largest);
  const size = Math.min(largest, (largest * (layout.cellWidth - 5)) / context.measureText(longest).width);
  return size < SMALLEST_TEXT ? 0 : size;
}

export function cellsIn({ top, left, bottom, right }: Region): Cell[] {
  const columns = right - left;
  return Array.from({ length: (bottom - top) * columns }, (_, i) => ({
    row: top + Math.floor(i / columns),
    column: left + (i % columns),
  }));
}

function drawNumbers(frame: Frame<MatrixLayout>, picture: MatrixPicture, region: Region, gap: number): void {
  const { context, layout, theme, x, y } = frame;
  const { left, top, cellWidth, cellHeight } = layout;
  if (cellHeight * 0.44 < SMALLEST_TEXT) return;
  const cells = cellsIn(region);
  const texts = cells.map((cell) => picture.cell(cell, theme));
  const longest = picture.longest?.(region, theme) ?? "";
  const size = textSize(
    frame,
    texts.reduce((most, { text }) => longer(most, text), longest || "0"),
  );
  if (size === 0) return;
  setFont(context, theme, size);
  context.textAlign = "center";
  context.textBaseline = "middle";
  cells.forEach(({ row, column }, i) => {
    const { text = "", ink = theme.ink } = texts[i] ?? {};
    if (text === "") return;
    context.fillStyle = ink;
    context.fillText(
      text,
      left + (column + 0.5) * cellWidth - x - gap / 2,
      top + (row + 0.5) * cellHeight - y - gap / 2 + 0.5,
    );
  });
}

function drawPixels({ context, layout, x, y }: Frame<MatrixLayout>, { image, block, region, ...from }: Pixels): void {
  const { left, top, cellWidth, cellHeight } = layout;
  const [width, height] = [region.right - region.left, region.bottom - region.top];
  context.imageSmoothingEnabled = false;
  context.drawImage(
    toCanvas(image, from.left, from.top, width, height),
    0,
    0,
    width,
    height,
    left + region.left * block * cellWidth - x,
    top + region.top * block * cellHeight - y,
    width * block * cellWidth,
    height * block * cellHeight,
  );
}

/** The cells: colours, hatching, numbers where they fit. */
export function drawCells(frame: Frame<MatrixLayout>, picture: MatrixPicture): void {
  const { context, layout, theme, ratio, x, y } = frame;
  const { left, top, width, height, cellWidth, cellHeight } = layout;
  const seen = inSight(frame, picture);
  const pixels = picture.pixels(Math.min(cellWidth, cellHeight) * ratio, seen, theme);
  context.save();
  clipToWindow(frame);
  const lines = hatch(context, theme, ratio) ?? theme.ink;
  if (picture.hatching === "bare") {
    context.fillStyle = lines;
    context.fillRect(left, top, width, height);
  }
  if (pixels) drawPixels(frame, pixels);
  const gap = Math.min(cellWidth, cellHeight) > 14 ? 1 : 0.5;
  if (Math.min(cellWidth, cellHeight) >= SMALLEST_CELL) {
    if (picture.hatching === "over colour") {
      context.globalAlpha = 0.45;
      context.fillStyle = lines;
      for (let row = seen.top; row < seen.bottom; row++) {
        for (let column = seen.left; column < seen.right; column++) {
          if (picture.isHatched({ row, column })) {
            context.fillRect(left + column * cellWidth - x, top + row * cellHeight - y, cellWidth, cellHeight);
          }
        }
      }
      context.globalAlpha = 1;
    }
    for (let row = seen.top; row < seen.bottom; row++) {
      context.clearRect(left, top + (row + 1) * cellHeight - y - gap, width, gap);
    }
    for (let column = seen.left; column < seen.right; column++) {
      context.clearRect(left + (column + 1) * cellWidth - x - gap, top, gap, height);
    }
    drawNumbers(frame, picture, seen, gap);
  }
  context.restore();
}

function drawCrosshair(frame: Frame<MatrixLayout>, picture: MatrixPicture): void {
  const { context, layout: at, theme, x, y, hovered } = frame;
  const grow = at.cellHeight < SMALLEST_CELL ? 3 : 0;
  const box = (bx: number, by: number, width: number, height: number) => context.strokeRect(bx, by, width, height);
  const place = ({ row, column }: Cell) =>
    [at.left + column * at.cellWidth - x, at.top + row * at.cellHeight - y] as const;
  const ring = (cell: Cell, alpha: number, width: number) => {
    const [cx, cy] = place(cell);
    const sides = [Math.max(1, at.cellWidth - 1) + 2 * grow, Math.max(1, at.cellHeight - 1) + 2 * grow] as const;
    context.globalAlpha = alpha;
    context.strokeStyle = theme.paper;
    context.lineWidth = width + 2;
    box(cx - grow, cy - grow, ...sides);
    context.strokeStyle = theme.ink;
    context.lineWidth = width;
    box(cx - grow, cy - grow, ...sides);
    context.globalAlpha = 1;
  };
  const { selected, isCurrent } = picture;
  context.save();
  clipToWindow(frame, 5);
  if (hovered && !isSameCell(hovered, selected)) ring(hovered, 0.55, 1);
  if (selected) {
    const [cx, cy] = place(selected);
    context.globalAlpha = isCurrent ? 0.5 : 0.25;
    context.strokeStyle = theme.ink;
    context.lineWidth = 1;
    box(at.left - x - 0.5, cy - 0.5, at.contentWidth, at.cellHeight);
    box(cx - 0.5, at.top - y - 0.5, at.cellWidth, at.contentHeight);
    ring(selected, isCurrent ? 1 : 0.7, isCurrent ? 2 : 1);
  }
  context.restore();
}

// Where cells are smaller than their labels only every so many are written, but always the one pointed at and, where
// that leaves room, the selected one.
function* written(from: number, to: number, cell: number, on: readonly (number | undefined)[]) {
  const every = Math.max(1, Math.ceil((FONT + 1) / cell));
  const marked: number[] = [];
  const isCrowded = (i: number) => marked.some((m) => Math.abs(i - m) < every);
  for (const i of on) if (i !== undefined && i >= from && i < to && !isCrowded(i)) marked.push(i);
  for (let i = from - (from % every); i < to; i += every) {
    if (i >= from && !isCrowded(i)) yield { i, isOn: false };
  }
  for (const i of marked) yield { i, isOn: true };
}

function drawLabels(frame: Frame<MatrixLayout>, picture: MatrixPicture): void {
  const { context, layout: at, theme, x, y, hovered } = frame;
  const { rowLabels, columnLabels, rowAxis, columnAxis, sums, selected } = picture;
  const seen = inSight(frame, picture);
  const bottom = at.top - GAP - FONT / 2 + 1;
  const style = (isOn: boolean) => {
    context.globalAlpha = isOn ? 1 : FAINT;
    setFont(context, theme, FONT, isOn);
  };
  context.fillStyle = theme.ink;
  context.direction = "ltr";
  context.textBaseline = "middle";

  style(false);
  context.textAlign = "left";
  context.fillText(`${columnAxis} →`, at.left, FONT / 2 + 2);
  context.textAlign = "right";
  context.fillText(`${rowAxis} ↓`, at.left - GAP, bottom);

  const marked = [hovered, selected];
  let free = 0;
  const rows = marked.map((cell) => cell?.row);
  for (const { i, isOn } of written(seen.top, seen.bottom, at.cellHeight, rows)) {
    const middle = (i + 0.5) * at.cellHeight - y;
    if (middle < 0 || middle > at.height) continue;
    const cy = at.top + Math.max(middle, FONT / 2);
    // The first label is moved down into the window and may take the next one's place.
    if (cy < free && !isOn) continue;
    free = isOn ? free : cy + FONT;
    style(isOn);
    context.textAlign = "right";
    context.fillText(shorten(context, visible(rowLabels[i] ?? ""), at.labelLimit), at.left - GAP, cy);
    if (!sums || !at.hasSums) continue;
    context.textAlign = "left";
    context.fillText(sums.text(i), at.left + at.width + GAP, cy);
  }
  const columns = marked.map((cell) => cell?.column);
  for (const { i, isOn } of written(seen.left, seen.right, at.cellWidth, columns)) {
    const middle = (i + 0.5) * at.cellWidth - x;
    if (middle < 0 || middle > at.width) continue;
    style(isOn);
    const text = visible(columnLabels[i] ?? "");
    const isUpright = !at.isTurned || context.measureText(text).width <= Math.min(FONT + 2, at.cellWidth);
    context.save();
    context.translate(at.left + middle, isUpright ? bottom : at.top - GAP);
    if (!isUpright) context.rotate(-Math.PI / 2);
    context.textAlign = isUpright ? "center" : "left";
    context.fillText(isUpright ? text : shorten(context, text, at.labelLimit), 0, 0);
    context.restore();
  }
  if (sums && at.hasSums) {
    style(false);
    context.textAlign = "left";
    context.fillText(sums.heading, at.left + at.width + GAP, bottom);
  }
  context.globalAlpha = 1;
}

/** What follows the selection and the pointer: crosshair, labels. */
export function drawMarks(frame: Frame<MatrixLayout>, picture: MatrixPicture): void {
  drawCrosshair(frame, picture);
  drawLabels(frame, picture);
}
