/** What elements extend. Where there are none, as in a server's rendering, importing them does nothing. */
export const ElementBase = globalThis.HTMLElement ?? (class {} as typeof HTMLElement);
