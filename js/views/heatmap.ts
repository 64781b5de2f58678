import type { DeviceTensor } from "../device.ts";
import { isList, type Tensor } from "../tensor.ts";
import { checked, type Rule, sized } from "./checked.ts";
import { type AnyPeaks, close, DevicePeaks, isOnDevice, wholeOf } from "./device-peaks.ts";
import { type PictureView, png } from "./exported.ts";
import { type HeatOptions, heatPicture, isSameBeside, isSameLook, resolve, type Shown } from "./heat-picture.ts";
import { legendSvg } from "./legend-svg.ts";
import { isSameData, type Matrix } from "./matrix.ts";
import { matrixSurface } from "./matrix-surface.ts";
import { matrixSvg } from "./matrix-svg.ts";
import { Peaks } from "./peaks.ts";
import { type ColorScale, scaleTo } from "./scale.ts";
import { colorsOf, pictureOf } from "./svg.ts";
import { themeOf } from "./theme.ts";
import { Viewport } from "./viewport.ts";

/** Options of {@link heatmap}. */
export interface HeatmapOptions extends HeatOptions {
  /**
   * Row-major values, `rows * columns` of them, or a tensor `[rows, columns]`; give a new array for new numbers. Or a matrix that a lazy
   * pass left on a graphics processor, as `trace.drawable("weights").at(head)` gives it: it is drawn there, and only the cells in sight
   * are copied when they are large enough to hold their numbers.
   */
  readonly matrix: Matrix | Tensor | DeviceTensor;
  /** Cells a mask hides, row-major, nonzero where hidden; drawn hatched. */
  readonly hidden?: ArrayLike<number> | null;
  /** The values at the two ends of the palette; by default as far as the values reach. A scale by rows has its own. */
  readonly domain?: readonly [number, number] | undefined;
  /** Called when the colours in use are known, and when they change. */
  readonly onShown?: ((shown: Shown) => void) | undefined;
}

type Resolved = ReturnType<typeof read>;

const NEEDED = ["matrix", "rowLabels", "columnLabels", "label", "describe"] as const;
const MATRIX: Rule = [
  "a matrix, { data, rows, columns }, or a tensor",
  (matrix: { data?: unknown; open?: unknown } | null) => isList(matrix?.data) || matrix?.open,
  "matrix",
];

function read(given: HeatmapOptions, viewport: Viewport) {
  const options = checked(given, NEEDED, MATRIX);
  const { matrix } = options;
  const shape = "shape" in matrix ? matrix.shape : [matrix.rows, matrix.columns];
  const [rows = 0, columns = 0] = shape;
  sized(options, "matrix", { ...matrix, shape }, "[rows, columns]");
  return { ...resolve(options, viewport), matrix: isOnDevice(matrix) ? matrix : { data: matrix.data, rows, columns } };
}

function peaksOf({ matrix, hidden = null, hiddenKeepsColor, scale, transposed }: Resolved, changed: () => void) {
  const how = { hidden, hiddenKeepsColor, byRow: scale === "row", transposed };
  return isOnDevice(matrix) ? new DevicePeaks(matrix, how, changed) : new Peaks(matrix, how);
}

function scaleOf({ palette, scale, domain }: Resolved, peaks: AnyPeaks): ColorScale {
  return domain && scale !== "row" ? { palette, kind: scale, domain } : scaleTo(peaks.reach, palette, scale);
}

function isSameMatrix(one: Matrix | DeviceTensor, other: Matrix | DeviceTensor): boolean {
  if (isOnDevice(one) || isOnDevice(other)) return one === other;
  return isSameData(one.data, other.data) && one.rows === other.rows && one.columns === other.columns;
}

function isSamePeaks(one: Resolved, other: Resolved): boolean {
  return isSameMatrix(one.matrix, other.matrix) && isSameBeside(one, other);
}

/**
 * One matrix as a heat map: colours, numbers where they fit, both axes named, hidden cells hatched. A matrix of thousands
 * of rows shows the largest magnitude of each block; it is zoomed with + and - and 0, Ctrl and the wheel, or a double click.
 *
 * ```ts
 * const view = heatmap(element, {
 *   matrix: { data: [1, 0, 0.3, 0.7], rows: 2, columns: 2 },
 *   rowLabels: ["the", "cat"],
 *   columnLabels: ["the", "cat"],
 *   label: "head 1",
 *   describe: ({ row, column }, value) => `query ${row}, key ${column}, ${number(value)}`,
 * });
 * view.update({ palette: "diverging" });
 * console.log(view.toSvg().slice(0, 4)); // <svg
 * ```
 *
 * @throws AttnError `invalid_option`, `shape_mismatch`
 */
export function heatmap(element: HTMLElement, start: HeatmapOptions): PictureView<HeatmapOptions> {
  const viewport = new Viewport();
  let options = read(start, viewport);
  let peaks = peaksOf(options, changed);
  let told = "";

  const toSurface = () => heatPicture(options, peaks, scaleOf(options, peaks));

  const view = matrixSurface(element, toSurface(), (deadline) => {
    if (!peaks.advance(deadline)) return false;
    const shown = { ...scaleOf(options, peaks), outside: peaks.outside };
    const now = JSON.stringify(shown);
    if (now !== told) {
      told = now;
      view.update(toSurface());
      options.onShown?.(shown);
    }
    return true;
  });

  // Something came from a graphics processor.
  function changed(): void {
    view.update(toSurface());
    view.redraw();
  }

  function toSvg(): string {
    const numbers = wholeOf(peaks);
    numbers.advance(Number.POSITIVE_INFINITY);
    const scale = scaleOf(options, numbers);
    const colors = colorsOf(themeOf(element).dark);
    const { hidden, rowMaximum } = options.words;
    const meaning = numbers.hatching === "none" ? null : hidden;
    const shown = { ...scale, outside: numbers.outside };
    const parts = [matrixSvg(options, numbers, scale, colors), legendSvg(shown, meaning, rowMaximum, colors)];
    return pictureOf(options.label, parts, colors);
  }

  return {
    toSvg,
    toPng: () => png(toSvg()),
    update(change) {
      const before = options;
      options = read({ ...before, ...change }, viewport);
      const isSame = isSamePeaks(before, options);
      if (!isSame) {
        close(peaks);
        peaks = peaksOf(options, changed);
      }
      view.update(toSurface());
      if (!isSame || !isSameLook(before, options) || String(before.domain) !== String(options.domain)) view.redraw();
    },
    destroy() {
      close(peaks);
      view.destroy();
    },
  };
}
