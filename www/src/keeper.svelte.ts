import type { Bench } from "./bench.svelte.ts";
import { download } from "./download.ts";
import type { Home } from "./home.ts";
import { fromLink, LARGEST_STATE, LONGEST_LINK, toLink } from "./link.ts";
import { stateIn, withState } from "./page-file.ts";
import { Unreadable } from "./reader.ts";
import { type BenchState, readState, START, writeState } from "./state.ts";

const KEY = "attnscope.state";
/** The link that the page last wrote: where it still stands in the address, what is saved is at least as new. */
const KEY_LINK = "attnscope.link";
const PAUSE = 300;
/** A state with the page around it. */
const LARGEST_FILE = LARGEST_STATE + 4_000_000;

const hash = () => location.hash.slice(1);

function read(json: string | null): { state: BenchState | null; problem: Unreadable | null } {
  try {
    return { state: json === null ? null : readState(json), problem: null };
  } catch (error) {
    return { state: null, problem: error as Unreadable };
  }
}

/** What the page opens with. */
export interface Opened {
  readonly state: BenchState;
  /** The state that a link, or work on it, took the place of; undo leads back to it. */
  readonly before: BenchState | null;
  readonly problem: Unreadable | null;
}

export async function opened(home: Home): Promise<Opened> {
  const { state: kept } = read(home.isResumed ? home.stored(KEY) : null);
  const { state: came, problem } = read(home.state);
  const isChanged = kept && !(came && writeState(came) === writeState(kept));
  const own = isChanged
    ? { state: kept, before: came, problem: null }
    : { state: came ?? START, before: null, problem };
  const link = hash();
  if (link === "") return own;
  try {
    const state = await fromLink(link);
    const isOwn = kept && link === home.stored(KEY_LINK) && !state.lesson;
    return isOwn ? own : { state, before: kept ?? came, problem: null };
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
  /** Whether the page as one file could not be fetched. */
  isPageMissing = $state(false);

  readonly #bench: Bench;
  readonly #home: Home;
  #timer = 0;
  #isStale = false;

  constructor(bench: Bench, { problem }: Opened, home: Home) {
    this.#bench = bench;
    this.#home = home;
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
    this.isStored = this.#home.store(KEY, writeState(this.#bench.snapshot));
  }

  /** The address that opens what is on the bench now. */
  async link(): Promise<string> {
    return new URL(`#${await toLink(this.#bench.snapshot)}`, location.href).href;
  }

  /** Brings storage and address up to date. */
  async #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.save();
    const [state, address] = [this.#bench.snapshot, hash()];
    const link = await toLink(state);
    // A link that was put into the address meanwhile is followed, not written over.
    if (state !== this.#bench.snapshot || address !== hash()) return;
    this.tooLong = link.length > LONGEST_LINK ? link.length : 0;
    const shown = this.tooLong > 0 ? "" : link;
    try {
      if (shown !== hash())
        history.replaceState(history.state, "", shown === "" ? location.pathname + location.search : `#${shown}`);
    } catch {
      // Not every browser lets every page do it, nor as often as it likes; what is stored is the newest all the same.
    }
    this.#home.store(KEY_LINK, hash());
  }

  dismiss(): void {
    this.problem = null;
    this.isPageMissing = false;
  }

  // The history's entry is replaced, and not with every key: browsers allow a page a hundred times in half a minute.
  #later(): void {
    this.#isStale = true;
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => void this.#flush(), PAUSE);
  }

  /** Opens the link that was put into the address of the open page. */
  async followAddress(): Promise<void> {
    if (hash() === "" || hash() === this.#home.stored(KEY_LINK)) return;
    await this.#open(() => fromLink(hash()));
  }

  /** Gives the person the page as one file that opens with the bench's state. */
  async savePage(): Promise<void> {
    try {
      const page = withState(await this.#home.page(), writeState(this.#bench.snapshot));
      download("attnscope.html", page, "text/html");
      this.isPageMissing = false;
    } catch {
      this.isPageMissing = true;
    }
  }

  /** Opens a saved state, or a saved page with a state in it. */
  async openFile(file: File): Promise<void> {
    await this.#open(async () => {
      if (file.size > LARGEST_FILE) throw new Unreadable("too_large");
      const text = await file.text();
      return readState(text.startsWith("<") ? stateIn(text) : text);
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
