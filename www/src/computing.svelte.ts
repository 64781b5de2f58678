// Shorter work is done before one could read of it.
const LONG = 200;

/** How far the passes are that are being computed. */
export class Computing {
  /** From 0 to 1. */
  part = $state(0);
  /** Whether they take long enough to be spoken of. */
  isLong = $state(false);

  #timer = 0;
  #passes = 1;
  #done = 0;

  /** So many passes follow; what is being shown stays so. */
  begin(passes: number): void {
    [this.part, this.#passes, this.#done] = [0, Math.max(1, passes), 0];
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => {
      this.isLong = true;
    }, LONG);
  }

  /** Hears which part of the next pass is done. */
  readonly hear = (part: number): void => {
    this.part = (this.#done + part) / this.#passes;
    if (part === 1) this.#done++;
  };

  end(): void {
    clearTimeout(this.#timer);
    this.isLong = false;
  }
}
