import { type PaletteName, palette } from "./palette.ts";
import { raster } from "./raster.ts";
import { themeOf } from "./theme.ts";
import type { View } from "./view.ts";

export interface ThumbnailOptions {
  /** `[rows, columns]`, or `[heads, rows, columns]` drawn side by side. */
  readonly values: { readonly data: Float32Array; readonly shape: readonly number[] };
  readonly palette: PaletteName;
  readonly domain: readonly [number, number];
  readonly hidden: Uint8Array | null;
  readonly width: number;
  readonly height: number;
}

const GAP = 2;

/** A stage small enough for a strip of stages: its pattern, no numbers. */
export function thumbnail(element: HTMLElement, start: ThumbnailOptions): View<ThumbnailOptions> {
  let options = start;
  const canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true");
  element.append(canvas);

  function draw(): void {
    const { values, domain, hidden, width, height } = options;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    Object.assign(canvas.style, { inlineSize: `${width}px`, blockSize: `${height}px`, display: "block" });
    const [rows = 1, columns = 1] = values.shape.slice(-2);
    const heads = values.data.length / (rows * columns);
    const colors = palette(options.palette, themeOf(element).dark);
    const each = Math.max(1, Math.floor((canvas.width - (heads - 1) * GAP * ratio) / heads));
    const context = canvas.getContext("2d");
    for (let head = 0; head < heads; head++) {
      const data = values.data.subarray(head * rows * columns, (head + 1) * rows * columns);
      const offset = hidden && hidden.length > rows * columns ? head * rows * columns : 0;
      const covered = hidden?.subarray(offset, offset + rows * columns) ?? null;
      const picture = raster(
        { data, rows, columns },
        { width: each, height: canvas.height, palette: colors, domain, hidden: covered },
      );
      context?.putImageData(picture, Math.round(head * (each + GAP * ratio)), 0);
    }
  }

  draw();
  return {
    update(change) {
      options = { ...options, ...change };
      draw();
    },
    destroy() {
      canvas.remove();
    },
  };
}
