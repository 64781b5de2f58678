import type { Bench } from "./bench.svelte.ts";
import { fromLink, LARGEST_STATE, LONGEST_LINK, toLink } from "./link.ts";
import { Unreadable } from "./reader.ts";
import { type BenchState, readState, START, writeState } from "./state.ts";
import { store, stored } from "./storage.ts";

const KEY = "attnscope.state";
/** The link that the page last wrote: where it still stands in the address, what is saved is at least as new. */
const KEY_LINK = "attnscope.link";
const PAUSE = 300;

const hash = () => location.hash.slice(1);

function saved(): BenchState | null {
  try {
    return readState(stored(KEY) ?? "");
  } catch {
    return null;
  }
}

/** What the page opens with. */
export interface Opened {
  readonly state: BenchState;
  /** The saved state that a link took the place of; undo leads back to it. */
  readonly before: BenchState | null;
  readonly problem: Unreadable | null;
}

export async function opened(): Promise<Opened> {
  const before = saved();
  const link = hash();
  const own = { state: before ?? START, before: null, problem: null };
  if (link === "") return own;
  try {
    const state = await fromLink(link);
    return link === stored(KEY_LINK) && !state.lesson ? own : { state, before, problem: null };
  } catch (error) {
    return { ...own, problem: error as Unreadable };
  }
}

/** Keeps the bench's state in the address and in the browser's storage, and reads it from links and files. */
export class Keeper {
  problem = $state.raw<Unreadable | null>(null);
  /** The size of a link too long to be one, else 0. */
  tooLong = $state(0);
  isStored = $state(true);

  readonly #bench: Bench;
  #timer = 0;
  #isStale = false;

  constructor(bench: Bench, { problem }: Opened) {
    this.#bench = bench;
    this.problem = problem;
    // A link that cannot be read stays in the address until there is something new to say.
    let isUntouched = problem !== null;
    $effect(() => {
      void bench.snapshot;
      if (!isUntouched) this.#later();
      isUntouched = false;
    });
  }

  /** Saves at once: the page may be about to go. */
  save(): void {
    if (!this.#isStale) return;
    this.#isStale = false;
    // A lesson is kept by the address alone; what is stored stays one's own.
    if (this.#bench.work.lesson) return;
    this.isStored = store(KEY, writeState(this.#bench.snapshot));
  }

  /** Brings storage and address up to date. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.save();
    const [state, address] = [this.#bench.snapshot, hash()];
    const link = await toLink(state);
    // A link that was put into the address meanwhile is followed, not written over.
    if (state !== this.#bench.snapshot || address !== hash()) return;
    this.tooLong = link.length > LONGEST_LINK ? link.length : 0;
    const shown = this.tooLong > 0 ? "" : link;
    store(KEY_LINK, shown);
    if (shown !== hash())
      history.replaceState(history.state, "", shown === "" ? location.pathname + location.search : `#${shown}`);
  }

  dismiss(): void {
    this.problem = null;
  }

  // The history's entry is replaced, and not with every key: browsers allow a page a hundred times in half a minute.
  #later(): void {
    this.#isStale = true;
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => void this.flush(), PAUSE);
  }

  /** Opens the link that was put into the address of the open page. */
  async followAddress(): Promise<void> {
    if (hash() === "" || hash() === stored(KEY_LINK)) return;
    await this.#open(() => fromLink(hash()));
  }

  async openFile(file: File): Promise<void> {
    await this.#open(async () => {
      if (file.size > LARGEST_STATE) throw new Unreadable("too_large");
      return readState(await file.text());
    });
  }

  async #open(read: () => Promise<BenchState>): Promise<void> {
    try {
      this.#bench.open(await read());
      this.problem = null;
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      this.problem = error;
    }
  }
}
