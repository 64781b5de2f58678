/** What a page is looking at. All count from 0. */
export interface Place {
  /** The name of a stage, such as "weights". */
  readonly stage: string;
  /** The layer of a stack. */
  readonly layer: number;
  /** The head. */
  readonly head: number;
  /** The row of a matrix of weights. */
  readonly query: number;
  /** The column of a matrix of weights. */
  readonly key: number;
  /** The column of a stage that has no keys. */
  readonly feature: number;
}

/**
 * The one place shared by all views of a page. Views write to it and listen for its `change` event; where the pointer is
 * they share as well, with the `point` event.
 *
 * ```ts
 * const selection = new Selection({ head: 1 });
 * selection.addEventListener("change", () => console.log(selection.place.head, selection.place.query)); // 1 2
 * selection.set({ query: 2, key: 0 });
 * ```
 */
export class Selection extends EventTarget {
  #place: Place;
  #pointed: Partial<Place> | null = null;

  /** Begins at the weights of the first layer and head, at the first query and key, but for what `start` says. */
  constructor(start: Partial<Place> = {}) {
    super();
    this.#place = { stage: "weights", layer: 0, head: 0, query: 0, key: 0, feature: 0, ...start };
  }

  /** Where it is. */
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
