import { cellColor, cellText, type Resolved } from "./heat-picture.ts";
import { shortLabel, textWidth } from "./labels.ts";
import type { Peaks } from "./peaks.ts";
import { levelFor, raster } from "./raster.ts";
import type { ColorScale } from "./scale.ts";
import { type Colors, HATCH, node, type Part, text } from "./svg.ts";

const GAP = 6;
/** Larger matrices are a picture of blocks, not an element for each cell. */
const MOST_CELLS = 64 * 64;
const LARGE = 512;

function cellSize(rows: number, columns: number): number {
  const longer = Math.max(rows, columns);
  return longer <= 16 ? 38 : longer <= 64 ? 18 : LARGE / longer;
}

function image(peaks: Peaks, scale: ColorScale, { dark }: Colors, size: number): string {
  const level = levelFor(size, peaks);
  const block = 2 ** level;
  const region = { top: 0, left: 0, bottom: Math.ceil(peaks.rows / block), right: Math.ceil(peaks.columns / block) };
  const pixels = raster(peaks, level, region, scale, dark);
  const canvas = document.createElement("canvas");
  canvas.width = pixels.width;
  canvas.height = pixels.height;
  canvas.getContext("2d")?.putImageData(pixels, 0, 0);
  return node("image", {
    width: pixels.width * block * size,
    height: pixels.height * block * size,
    href: canvas.toDataURL(),
    preserveAspectRatio: "none",
    style: "image-rendering: pixelated",
  });
}

/** One matrix: rows down, columns across, as `options.transposed` says; both axes named. */
export function matrixSvg(options: Resolved, peaks: Peaks, scale: ColorScale, colors: Colors): Part {
  const { rows, columns } = peaks;
  const { transposed, write } = options;
  const [rowLabels, columnLabels] = [options.rowLabels, options.columnLabels].map((all) => all.map(shortLabel));
  const [down = [], across = []] = transposed ? [columnLabels, rowLabels] : [rowLabels, columnLabels];
  const [downAxis, acrossAxis] = transposed
    ? [options.columnAxis, options.rowAxis]
    : [options.rowAxis, options.columnAxis];
  const size = cellSize(rows, columns);
  const every = Math.ceil(13 / size);
  const widest = (texts: readonly string[]) => texts.reduce((most, each) => Math.max(most, textWidth(each)), 0);
  const isTurned = widest(across) > size - 4;
  const left = Math.max(widest(down), textWidth(`${downAxis} ↓`)) + GAP;
  const top = 16 + (isTurned ? widest(across) : 12) + GAP;
  const sums = transposed ? null : options.sums;
  const right = sums === null ? 0 : GAP + 36;
  const [width, height] = [size * columns, size * rows];
  const middle = { "dominant-baseline": "central" };

  const content = [
    text(`${acrossAxis} →`, { x: left, y: 10 }),
    text(`${downAxis} ↓`, { x: left - GAP, y: top - GAP - 2, "text-anchor": "end" }),
  ];
  for (let row = 0; row < rows; row += every) {
    const y = top + (row + 0.5) * size;
    content.push(text(down[row] ?? "", { x: left - GAP, y, "text-anchor": "end", ...middle }));
    if (sums !== null) content.push(text(write(peaks.sumOf(row)), { x: left + width + GAP, y, ...middle }));
  }
  if (sums !== null) content.push(text(sums, { x: left + width + GAP, y: top - GAP - 2 }));
  for (let column = 0; column < columns; column += every) {
    const x = left + (column + 0.5) * size;
    content.push(
      isTurned
        ? text(across[column] ?? "", { transform: `translate(${x} ${top - GAP}) rotate(-90)`, ...middle })
        : text(across[column] ?? "", { x, y: top - GAP - 2, "text-anchor": "middle" }),
    );
  }

  if (rows * columns > MOST_CELLS) {
    const background = peaks.hatching === "bare" ? [node("rect", { width, height, fill: HATCH })] : [];
    const clipped = { x: left, y: top, width, height, viewBox: `0 0 ${width} ${height}` };
    content.push(node("svg", clipped, [...background, image(peaks, scale, colors, size)]));
    return { width: left + width + right, height: top + height, content };
  }

  const hasNumbers = size > 30;
  const inner = { width: size - 1, height: size - 1 };
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const [x, y] = [left + column * size, top + row * size];
      const cell = { row, column };
      const fill = cellColor(peaks, cell, scale, colors.dark);
      if (fill) content.push(node("rect", { x, y, ...inner, fill }));
      if (peaks.isHidden(row, column) && (fill === null || peaks.hatching === "over colour")) {
        content.push(node("rect", { x, y, ...inner, fill: HATCH }));
      }
      if (!hasNumbers) continue;
      const written = cellText(peaks, cell, scale, options, colors);
      if (written.text === "") continue;
      const place = { x: x + inner.width / 2, y: y + inner.height / 2 };
      content.push(text(written.text, { ...place, fill: written.ink, "text-anchor": "middle", ...middle }));
    }
  }
  return { width: left + width + right, height: top + height, content };
}
