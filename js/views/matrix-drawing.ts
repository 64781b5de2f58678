import { hatch, type Theme } from "./theme.ts";
import { visible } from "./visible.ts";

export interface Cell {
  readonly row: number;
  readonly column: number;
}

/** What to draw one cell with: a colour (null for none) and its ink, hatching, and a text where it fits. */
export interface Drawn {
  readonly fill: string | null;
  readonly ink: string;
  readonly hatched: boolean;
  readonly text: string;
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
  readonly marks: { readonly heading: string; readonly texts: readonly string[] } | null;
  /** The largest a cell may become; cells are square unless the height is held lower. */
  readonly maxCell: number;
  readonly maxCellHeight: number;
  readonly selected: Cell | null;
  /** Whether this is the matrix the selection is in, not only one that shares it. */
  readonly isCurrent: boolean;
  readonly cell: (cell: Cell, theme: Theme) => Drawn;
  /** Draws all cells at once, where one is too small to be drawn by itself. */
  readonly pixels: (width: number, height: number, theme: Theme) => ImageData;
}

/** Where the cells lie on the canvas, in CSS pixels. */
export interface Geometry {
  readonly left: number;
  readonly top: number;
  readonly cellWidth: number;
  readonly cellHeight: number;
  readonly width: number;
  readonly height: number;
  readonly isTurned: boolean;
  readonly labelLimit: number;
}

type Context = CanvasRenderingContext2D;

const FONT = 12;
const GAP = 6;
const AXIS = 17;
const LABEL_LIMIT = 96;
const SMALLEST_CELL = 7;
const SMALLEST_TEXT = 8.5;
const FAINT = 0.76;

function setFont(context: Context, theme: Theme, size: number, isBold = false): void {
  context.font = `${isBold ? "600 " : ""}${size}px ${theme.font}`;
}

function shorten(context: Context, text: string, limit: number): string {
  if (context.measureText(text).width <= limit) return text;
  const characters = [...text];
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > limit) characters.pop();
  return `${characters.join("")}…`;
}

/** Fits a matrix and its labels into a width. */
export function measure(context: Context, picture: MatrixPicture, theme: Theme, available: number): Geometry {
  const { rows, columns, rowLabels, columnLabels, rowAxis, marks, maxCell, maxCellHeight } = picture;
  setFont(context, theme, FONT, true);
  const width = (text: string) => context.measureText(text).width;
  const widest = (texts: readonly string[]) => texts.reduce((most, text) => Math.max(most, width(visible(text))), 0);
  const labelLimit = Math.min(LABEL_LIMIT, available * 0.3);
  const left = Math.ceil(Math.max(Math.min(widest(rowLabels), labelLimit), width(`${rowAxis} ↓`))) + GAP;
  const right = marks ? Math.ceil(Math.max(widest(marks.texts), width(marks.heading))) + GAP : 1;
  const exact = Math.min(maxCell, (available - left - right) / columns);
  const cellWidth = exact > SMALLEST_CELL ? Math.floor(exact) : Math.max(exact, 1 / columns);
  const cellHeight = Math.min(cellWidth, maxCellHeight);
  const longest = widest(columnLabels);
  const isTurned = longest > cellWidth - 2;
  const top = AXIS + (isTurned ? Math.ceil(Math.min(longest, labelLimit)) : FONT) + GAP;
  return {
    left,
    top,
    cellWidth,
    cellHeight,
    width: cellWidth * columns,
    height: cellHeight * rows,
    isTurned,
    labelLimit,
  };
}

// One size for the whole matrix, or no numbers at all: some with and some without would read as a pattern.
function textSize(context: Context, theme: Theme, at: Geometry, cells: readonly Drawn[]): number {
  const largest = Math.min(12.5, at.cellHeight * 0.44);
  setFont(context, theme, largest);
  const widest = cells.reduce((most, { text }) => Math.max(most, context.measureText(text).width), 1);
  const size = Math.min(largest, (largest * (at.cellWidth - 5)) / widest);
  return size < SMALLEST_TEXT ? 0 : size;
}

function drawPixels(context: Context, picture: MatrixPicture, at: Geometry, theme: Theme, ratio: number): void {
  const width = Math.max(1, Math.round(at.width * ratio));
  const height = Math.max(1, Math.round(at.height * ratio));
  context.fillStyle = hatch(context, theme, ratio) ?? theme.ink;
  context.fillRect(at.left, at.top, at.width, at.height);
  const layer = new OffscreenCanvas(width, height);
  layer.getContext("2d")?.putImageData(picture.pixels(width, height, theme), 0, 0);
  context.drawImage(layer, at.left, at.top, at.width, at.height);
}

function drawCells(context: Context, picture: MatrixPicture, at: Geometry, theme: Theme, ratio: number): void {
  const cells = Array.from({ length: picture.rows * picture.columns }, (_, i) =>
    picture.cell({ row: Math.floor(i / picture.columns), column: i % picture.columns }, theme),
  );
  const lines = hatch(context, theme, ratio) ?? theme.ink;
  const gap = at.cellWidth > 14 ? 1 : 0.5;
  const [width, height] = [at.cellWidth - gap, at.cellHeight - gap];
  const size = textSize(context, theme, at, cells);
  setFont(context, theme, size);
  context.textAlign = "center";
  context.textBaseline = "middle";
  cells.forEach(({ fill, ink, hatched, text }, i) => {
    const x = at.left + (i % picture.columns) * at.cellWidth;
    const y = at.top + Math.floor(i / picture.columns) * at.cellHeight;
    if (fill) {
      context.fillStyle = fill;
      context.fillRect(x, y, width, height);
    }
    if (hatched) {
      context.globalAlpha = fill ? 0.45 : 1;
      context.fillStyle = lines;
      context.fillRect(x, y, width, height);
      context.globalAlpha = 1;
    }
    if (text === "" || size === 0) return;
    context.fillStyle = ink;
    context.fillText(text, x + width / 2, y + height / 2 + 0.5);
  });
}

function drawCrosshair(context: Context, picture: MatrixPicture, at: Geometry, theme: Theme, hovered: Cell | null) {
  const grow = at.cellHeight < SMALLEST_CELL ? 3 : 0;
  const box = (x: number, y: number, width: number, height: number) => context.strokeRect(x, y, width, height);
  const place = ({ row, column }: Cell) => [at.left + column * at.cellWidth, at.top + row * at.cellHeight] as const;
  const ring = (cell: Cell, alpha: number, width: number) => {
    const [x, y] = place(cell);
    const sides = [at.cellWidth - 1 + 2 * grow, at.cellHeight - 1 + 2 * grow] as const;
    context.globalAlpha = alpha;
    context.strokeStyle = theme.paper;
    context.lineWidth = width + 2;
    box(x - grow, y - grow, ...sides);
    context.strokeStyle = theme.ink;
    context.lineWidth = width;
    box(x - grow, y - grow, ...sides);
    context.globalAlpha = 1;
  };
  const { selected, isCurrent } = picture;
  if (hovered && (hovered.row !== selected?.row || hovered.column !== selected?.column)) ring(hovered, 0.55, 1);
  if (!selected) return;
  const [x, y] = place(selected);
  context.globalAlpha = isCurrent ? 0.5 : 0.25;
  context.strokeStyle = theme.ink;
  context.lineWidth = 1;
  box(at.left - 0.5, y - 0.5, at.width, at.cellHeight);
  box(x - 0.5, at.top - 0.5, at.cellWidth, at.height);
  ring(selected, isCurrent ? 1 : 0.7, isCurrent ? 2 : 1);
}

// Where cells are smaller than their labels only every so many are written, and always the selected one.
function* written(count: number, cell: number, selected: number | undefined, hovered: number | undefined) {
  const every = Math.max(1, Math.ceil((FONT + 1) / cell));
  for (let i = 0; i < count; i++) {
    const isOn = i === selected || i === hovered;
    const isCrowded = selected !== undefined && Math.abs(i - selected) < every;
    if (isOn || (i % every === 0 && !isCrowded)) yield { i, isOn };
  }
}

function drawLabels(context: Context, picture: MatrixPicture, at: Geometry, theme: Theme, hovered: Cell | null): void {
  const { rows, columns, rowLabels, columnLabels, rowAxis, columnAxis, marks, selected } = picture;
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

  for (const { i, isOn } of written(rows, at.cellHeight, selected?.row, hovered?.row)) {
    style(isOn);
    const y = at.top + Math.max((i + 0.5) * at.cellHeight, FONT / 2);
    context.textAlign = "right";
    context.fillText(shorten(context, visible(rowLabels[i] ?? ""), at.labelLimit), at.left - GAP, y);
    if (!marks) continue;
    context.textAlign = "left";
    context.fillText(marks.texts[i] ?? "", at.left + at.width + GAP, y);
  }
  for (const { i, isOn } of written(columns, at.cellWidth, selected?.column, hovered?.column)) {
    style(isOn);
    const text = visible(columnLabels[i] ?? "");
    const x = at.left + (i + 0.5) * at.cellWidth;
    const isUpright = !at.isTurned || context.measureText(text).width <= Math.min(FONT + 2, at.cellWidth);
    context.save();
    context.translate(x, isUpright ? bottom : at.top - GAP);
    if (!isUpright) context.rotate(-Math.PI / 2);
    context.textAlign = isUpright ? "center" : "left";
    context.fillText(isUpright ? text : shorten(context, text, at.labelLimit), 0, 0);
    context.restore();
  }
  if (marks) {
    style(false);
    context.textAlign = "left";
    context.fillText(marks.heading, at.left + at.width + GAP, bottom);
  }
  context.globalAlpha = 1;
}

/** Draws the matrix: cells, crosshair, labels. */
export function drawMatrix(
  context: Context,
  picture: MatrixPicture,
  at: Geometry,
  theme: Theme,
  { ratio, hovered }: { ratio: number; hovered: Cell | null },
): void {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  if (at.cellHeight < SMALLEST_CELL) drawPixels(context, picture, at, theme, ratio);
  else drawCells(context, picture, at, theme, ratio);
  drawCrosshair(context, picture, at, theme, hovered);
  drawLabels(context, picture, at, theme, hovered);
}
