import type { Cell } from "./matrix.ts";

/** How far into a matrix one looks; a `zoom` of 1 is the whole of it. */
export interface Look {
  /** How many times larger than the whole. */
  readonly zoom: number;
  /** The share of the columns left of the window. */
  readonly x: number;
  /** The share of the rows above it. */
  readonly y: number;
}

const WHOLE: Look = { zoom: 1, x: 0, y: 0 };

/** The look that several views of equal matrices share; fires `change`. */
export class Viewport extends EventTarget {
  /** The furthest one may zoom in. */
  most = 1;
  #look = WHOLE;

  /** What is seen now. */
  get look(): Look {
    return this.#look;
  }

  /** Looks elsewhere; fires `change` only where something is different. */
  set(change: Partial<Look>): void {
    const next = { ...this.#look, ...change };
    const { zoom, x, y } = this.#look;
    if (next.zoom === zoom && next.x === x && next.y === y) return;
    this.#look = next;
    this.dispatchEvent(new Event("change"));
  }

  /** Zooms and keeps a point, given in shares of the whole, where it stands in the window. */
  zoomAt(factor: number, point: { readonly x: number; readonly y: number }): void {
    this.#zoom(factor, (start, axis, share) => point[axis] - (point[axis] - start) * share);
  }

  /** Zooms and keeps a cell in sight. */
  zoomAtCell(factor: number, { row, column }: Cell, rows: number, columns: number): void {
    const from = { x: column / columns, y: row / rows };
    const size = { x: 1 / columns, y: 1 / rows };
    this.#zoom(factor, (start, axis, share, window) => {
      const middle = from[axis] + size[axis] / 2;
      const kept = middle - (middle - start) * share;
      return Math.min(from[axis], Math.max(from[axis] + size[axis] - window, kept));
    });
  }

  #zoom(factor: number, move: (start: number, axis: "x" | "y", share: number, window: number) => number): void {
    const before = this.#look;
    const zoom = Math.min(this.most, Math.max(1, before.zoom * factor));
    const [share, window] = [before.zoom / zoom, 1 / zoom];
    const near = { zoom, x: move(before.x, "x", share, window), y: move(before.y, "y", share, window) };
    this.set(zoom === 1 ? WHOLE : near);
  }
}
