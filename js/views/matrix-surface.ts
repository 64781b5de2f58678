import type { Cell } from "./matrix.ts";
import { drawCells, drawMarks, layOut, type MatrixLayout, type MatrixPicture } from "./matrix-drawing.ts";
import { type Surface, type SurfaceOptions, surface } from "./surface.ts";

export interface MatrixSurfaceOptions extends MatrixPicture, Omit<SurfaceOptions, "rows" | "columns" | "selected"> {}

/** A labelled matrix on a surface. `prepare` is asked before anything is drawn. */
export function matrixSurface(
  element: HTMLElement,
  start: MatrixSurfaceOptions,
  prepare: (deadline: number) => boolean = () => true,
): Surface<MatrixSurfaceOptions> {
  let options = start;
  const made = surface<MatrixLayout>(
    element,
    {
      prepare,
      layout: (context, theme, available, zoom) => layOut(context, options, theme, available, zoom),
      base: (frame) => drawCells(frame, options),
      overlay: (frame) => drawMarks(frame, options),
      cellAt: (x, y, { cellWidth, cellHeight }): Cell => ({
        row: Math.floor(y / cellHeight),
        column: Math.floor(x / cellWidth),
      }),
      boxOf: ({ row, column }, { cellWidth, cellHeight }) => ({
        x: column * cellWidth,
        y: row * cellHeight,
        width: cellWidth,
        height: cellHeight,
      }),
    },
    start,
  );
  return {
    ...made,
    update(change) {
      options = { ...options, ...change };
      made.update(options);
    },
  };
}
