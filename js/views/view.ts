/** A picture in an element: `update` takes the options that changed, `destroy` leaves the element empty. */
export interface View<Options> {
  update(change: Partial<Options>): void;
  destroy(): void;
}

/** How every view is made. */
export type CreateView<Options> = (element: HTMLElement, options: Options) => View<Options>;
