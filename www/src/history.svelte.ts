const STEPS = 100;

/** A state that is never changed, only replaced, and the way back and forth between those it was. */
export class History<State> {
  #present = $state.raw() as State;
  #past = $state.raw<readonly State[]>([]);
  #future = $state.raw<readonly State[]>([]);
  #merging: string | null = null;

  constructor(start: State) {
    this.#present = start;
  }

  get present(): State {
    return this.#present;
  }

  get canUndo(): boolean {
    return this.#past.length > 0;
  }

  get canRedo(): boolean {
    return this.#future.length > 0;
  }

  /** Changes of the same name that follow each other are one step: a word that is typed, a line that is painted. */
  replace(next: State, name: string | null = null): void {
    const isSameStep = name !== null && name === this.#merging;
    if (!isSameStep) this.#past = [...this.#past, this.#present].slice(-STEPS);
    this.#future = [];
    this.#present = next;
    this.#merging = name;
  }

  /** Makes the present another, with no step of its own. */
  amend(present: State): void {
    this.#present = present;
  }

  /** Whatever comes next is a step of its own. */
  seal(): void {
    this.#merging = null;
  }

  undo(): void {
    const before = this.#past.at(-1);
    if (before === undefined) return;
    this.#future = [this.#present, ...this.#future];
    this.#past = this.#past.slice(0, -1);
    this.#present = before;
    this.seal();
  }

  redo(): void {
    const [after, ...rest] = this.#future;
    if (after === undefined) return;
    this.#past = [...this.#past, this.#present];
    this.#future = rest;
    this.#present = after;
    this.seal();
  }
}
