/** A picture in an element: `update` takes the options that changed, `destroy` leaves the element empty. */
export interface View<Options> {
  /** Draws anew with these options changed; the others stay. */
  update(change: Partial<Options>): void;
  /** Takes the picture away and stops listening. */
  destroy(): void;
}

/** How every view is made. */
export type CreateView<Options> = (element: HTMLElement, options: Options) => View<Options>;
