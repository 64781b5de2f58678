import type { AttnError } from "./errors.ts";

/** What elements fire: of each event its `detail`. */
export interface ElementEvents {
  /** Something else is selected; all count from 0. */
  readonly select: { readonly head: number; readonly query: number; readonly key: number };
  /** A mask was painted: nonzero where a query may attend to a key. */
  readonly maskchange: { readonly allowed: Uint8Array; readonly shape: readonly number[] };
  /** Something cannot be drawn. */
  readonly error: AttnError;
}

/** The ways to listen to an element; `Events` says what the `detail` of each event of its own is. */
export interface Tells<Events> {
  addEventListener<Name extends keyof Events>(
    type: Name,
    listener: (event: CustomEvent<Events[Name]>) => unknown,
    options?: boolean | AddEventListenerOptions,
  ): void;
  removeEventListener<Name extends keyof Events>(
    type: Name,
    listener: (event: CustomEvent<Events[Name]>) => unknown,
    options?: boolean | EventListenerOptions,
  ): void;
}

/** What elements extend. Where there are none, as in a server's rendering, importing them does nothing. */
export function elementBase<Events>(): new () => Tells<Events> & HTMLElement {
  return globalThis.HTMLElement ?? (class {} as typeof HTMLElement);
}

/** Gives to the setters what was set before the element was defined: as properties of its own they would be hidden by it. */
export function upgrade(element: HTMLElement): void {
  for (const [name, value] of Object.entries(element)) {
    if (!(name in Object.getPrototypeOf(element))) continue;
    Reflect.deleteProperty(element, name);
    Reflect.set(element, name, value);
  }
}
