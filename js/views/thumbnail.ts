import { checked, HIDDEN, sized } from "./checked.ts";
import { cancel, type Drawing, requestBehind } from "./frames.ts";
import { isSameData } from "./matrix.ts";
import type { PaletteName } from "./palette.ts";
import { Peaks } from "./peaks.ts";
import { levelFor, raster, toCanvas } from "./raster.ts";
import { scaleTo } from "./scale.ts";
import { type Theme, themeOf } from "./theme.ts";
import type { View } from "./view.ts";

/** Options of {@link thumbnail}. */
export interface ThumbnailOptions {
  /** `[rows, columns]`, or `[heads, rows, columns]` drawn side by side. */
  readonly values: { readonly data: Float32Array; readonly shape: readonly number[] };
  /** Its colours. */
  readonly palette: PaletteName;
  /** The values at the two ends of the palette; by default as far as the values reach. */
  readonly domain?: readonly [number, number] | undefined;
  /** Hidden cells, of all heads or of one matrix that holds for every head; null for none. */
  readonly hidden: Uint8Array | null;
  /** In pixels. */
  readonly width: number;
  /** In pixels. */
  readonly height: number;
}

const GAP = 2;

function read(given: ThumbnailOptions): ThumbnailOptions {
  const options = checked(given, ["values", "palette", "width", "height"], HIDDEN);
  return sized(options, "values", options.values, "[rows, columns]", "[heads, rows, columns]");
}

function peaksOf({ values: { data, shape }, hidden }: ThumbnailOptions): Peaks[] {
  const [rows = 1, columns = 1] = shape.slice(-2);
  const size = rows * columns;
  return Array.from({ length: data.length / size }, (_, head) => {
    const offset = hidden && hidden.length > size ? head * size : 0;
    return new Peaks(
      { data: data.subarray(head * size, (head + 1) * size), rows, columns },
      {
        hidden: hidden?.subarray(offset, offset + size) ?? null,
        hiddenKeepsColor: false,
        byRow: false,
        transposed: false,
      },
    );
  });
}

/**
 * A stage small enough for a strip of stages: its pattern, no numbers.
 *
 * @throws AttnError `invalid_option`, `shape_mismatch`
 */
export function thumbnail(element: HTMLElement, start: ThumbnailOptions): View<ThumbnailOptions> {
  let options = read(start);
  let peaks = peaksOf(options);
  let theme: Theme | null = null;
  const canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true");
  canvas.style.display = "block";
  element.append(canvas);
  // At once, so that nothing moves when the picture comes.
  const size = () => {
    canvas.style.inlineSize = `${options.width}px`;
    canvas.style.blockSize = `${options.height}px`;
  };
  size();

  const drawing: Drawing = {
    measure() {
      theme = themeOf(element);
    },
    draw(deadline) {
      if (!peaks.every((head) => head.advance(deadline))) return false;
      const { domain, width, height } = options;
      const ratio = window.devicePixelRatio || 1;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      const reach = Math.max(...peaks.map((head) => head.reach));
      const scale = domain
        ? { palette: options.palette, kind: "linear" as const, domain }
        : scaleTo(reach, options.palette, "linear");
      const each = Math.max(1, (canvas.width - (peaks.length - 1) * GAP * ratio) / peaks.length);
      const context = canvas.getContext("2d") as CanvasRenderingContext2D;
      context.imageSmoothingEnabled = false;
      peaks.forEach((head, i) => {
        const { rows, columns } = head;
        const level = levelFor(Math.min(each / columns, canvas.height / rows), head);
        const block = 2 ** level;
        const region = { top: 0, left: 0, bottom: Math.ceil(rows / block), right: Math.ceil(columns / block) };
        const image = raster(head, level, region, scale, theme?.dark ?? false);
        const [left, right] = [Math.round(i * (each + GAP * ratio)), Math.round(i * (each + GAP * ratio) + each)];
        context.drawImage(
          toCanvas(image, 0, 0, image.width, image.height),
          0,
          0,
          columns / block,
          rows / block,
          left,
          0,
          Math.max(1, right - left),
          canvas.height,
        );
      });
      return true;
    },
  };

  requestBehind(drawing);
  return {
    update(change) {
      const before = options;
      options = read({ ...options, ...change });
      const isSame =
        isSameData(before.values.data, options.values.data) &&
        String(before.values.shape) === String(options.values.shape) &&
        isSameData(before.hidden, options.hidden);
      if (!isSame) peaks = peaksOf(options);
      size();
      requestBehind(drawing);
    },
    destroy() {
      cancel(drawing);
      canvas.remove();
    },
  };
}
