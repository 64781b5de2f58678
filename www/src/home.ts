import type { EngineOptions } from "attnscope";

/** Where the page lives: on a site, or in a file that holds all of it. */
export interface Home {
  readonly isFile: boolean;
  /** The state that the page came with, as JSON; null where it came without. */
  readonly state: string | null;
  /** Whether what was kept goes on; else it is only written over. */
  readonly isResumed: boolean;
  /** What the engine is made of. */
  engineOptions(): Promise<EngineOptions>;
  /** The page as one file that holds no state yet. */
  page(): Promise<string>;
  /** What was kept, null where nothing was. */
  stored(key: string): string | null;
  /** Whether it was kept. */
  store(key: string, value: string): boolean;
}
