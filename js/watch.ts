import { invalidOption } from "./errors.ts";
import { kindOf } from "./shown.ts";

/** How a pass is watched and given up: options of every module's `forward`, of `scaledDotProductAttention` and of `trace.remask`. */
export interface WatchOptions {
  /**
   * Called while the pass runs with the part of it that is done, from 0 to 1, at most about 30 times a second, and with 1 at the
   * end. In a worker it is called as the messages arrive. What it throws is reported as an uncaught error and stops nothing.
   */
  onProgress?: ((part: number) => void) | null | undefined;
  /**
   * Gives the pass up: the call rejects at once with the signal's reason (an `AbortError` unless it was given another). A pass
   * that has not begun is not computed: in a worker one with a signal waits here until those before it are done. One that has
   * begun hears nothing while it computes; its result is dropped when it comes. `engine.destroy()` ends it at once, and with it
   * all that the engine holds. In this thread a call computes before it returns, so that only what `onProgress` calls can abort it.
   */
  signal?: AbortSignal | null | undefined;
}

/** How a call is watched, checked. */
export interface Watch {
  readonly onProgress: ((part: number) => void) | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A call that nobody watches. */
export const UNWATCHED: Watch = { onProgress: undefined, signal: undefined };

/** Parts the watching from the options that the engine reads. @throws AttnError `invalid_option` */
export function watchOf<Options extends WatchOptions>(options: Options): [Watch, Omit<Options, keyof WatchOptions>] {
  const { onProgress, signal, ...rest } = options;
  if (onProgress != null && typeof onProgress !== "function")
    throw invalidOption("onProgress", onProgress, "a function");
  if (signal != null && kindOf(signal) !== "AbortSignal") throw invalidOption("signal", signal, "an AbortSignal");
  return [{ onProgress: onProgress ?? undefined, signal: signal ?? undefined }, rest];
}
