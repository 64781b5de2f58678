/** What a page is looking at. Positions count from 0; `feature` is a column of a stage that has no keys. */
export interface Place {
  readonly stage: string;
  readonly layer: number;
  readonly head: number;
  readonly query: number;
  readonly key: number;
  readonly feature: number;
}

/**
 * The one place shared by all views of a page. Views write to it and listen for its `change` event; where the pointer is
 * they share as well, with the `point` event.
 *
 * ```ts
 * const selection = new Selection({ head: 1 });
 * selection.addEventListener("change", () => console.log(selection.place));
 * selection.set({ query: 2, key: 0 });
 * ```
 */
export class Selection extends EventTarget {
  #place: Place;
  #pointed: Partial<Place> | null = null;

  constructor(start: Partial<Place> = {}) {
    super();
    this.#place = { stage: "weights", layer: 0, head: 0, query: 0, key: 0, feature: 0, ...start };
  }

  get place(): Place {
    return this.#place;
  }

  /** Moves to another place; fires `change` only where something is different. */
  set(change: Partial<Place>): void {
    const next = { ...this.#place, ...change };
    const fields = Object.keys(next) as (keyof Place)[];
    if (fields.every((field) => next[field] === this.#place[field])) return;
    this.#place = next;
    this.dispatchEvent(new Event("change"));
  }

  /** The place under the pointer, as far as the view under it knows; null where there is none. */
  get pointed(): Partial<Place> | null {
    return this.#pointed;
  }

  /** Says what the pointer is on; fires `point` only where something is different. */
  point(place: Partial<Place> | null): void {
    const [before, after] = [this.#pointed ?? {}, place ?? {}];
    const fields = Object.keys({ ...before, ...after }) as (keyof Place)[];
    if (fields.every((field) => before[field] === after[field])) return;
    this.#pointed = place;
    this.dispatchEvent(new Event("point"));
  }
}
