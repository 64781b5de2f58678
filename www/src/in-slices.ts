/** Numbers that are gone through at a time: a few milliseconds. */
export const SLICE = 1 << 20;

/** Does work that stops after every slice, so that the page goes on, for as long as it is wanted. */
export async function inSlices(work: Iterable<void>, isWanted: () => boolean): Promise<void> {
  for (const _ of work) {
    await new Promise((resolve) => setTimeout(resolve));
    if (!isWanted()) return;
  }
}

/** Does it at once. */
export function atOnce(work: Iterable<void>): void {
  for (const _ of work);
}
