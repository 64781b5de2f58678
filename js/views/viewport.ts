/** How far into a matrix one looks: `zoom` 1 is the whole of it, `x` and `y` are the shares left of and above the window. */
export interface Look {
  readonly zoom: number;
  readonly x: number;
  readonly y: number;
}

const WHOLE: Look = { zoom: 1, x: 0, y: 0 };

/** The look that several views of equal matrices share; fires `change`. */
export class Viewport extends EventTarget {
  /** The furthest one may zoom in. */
  most = 1;
  #look = WHOLE;

  get look(): Look {
    return this.#look;
  }

  set(change: Partial<Look>): void {
    const next = { ...this.#look, ...change };
    const { zoom, x, y } = this.#look;
    if (next.zoom === zoom && next.x === x && next.y === y) return;
    this.#look = next.zoom <= 1 ? WHOLE : next;
    this.dispatchEvent(new Event("change"));
  }

  /** Zooms and keeps a point, given in shares of the whole, where it stands in the window. */
  zoomBy(factor: number, point: { readonly x: number; readonly y: number }): void {
    const before = this.#look;
    const zoom = Math.min(this.most, Math.max(1, before.zoom * factor));
    const keep = (start: number, at: number) => at - (at - start) * (before.zoom / zoom);
    this.set({ zoom, x: keep(before.x, point.x), y: keep(before.y, point.y) });
  }
}
