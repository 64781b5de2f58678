/** Something that wants to be drawn. */
export interface Drawing {
  /** Reads the page; every drawing of a frame does so before the first one writes to it. */
  measure(): void;
  /** Works until the deadline; false where something is left for the next frame. */
  draw(deadline: number): boolean;
}

// Of the 16 ms of a frame the rest is left to the page.
const BUDGET = 6;

const waiting = new Set<Drawing>();
let isAsked = false;
// Whether the last frame used up its budget. The first one follows the page's own start.
let isBusy = true;

function run(): void {
  isAsked = false;
  const deadline = performance.now() + BUDGET;
  const drawings = [...waiting];
  for (const drawing of drawings) drawing.measure();
  for (const drawing of drawings) {
    if (!waiting.has(drawing)) continue;
    if (drawing.draw(deadline)) waiting.delete(drawing);
    if (performance.now() > deadline) break;
  }
  isBusy = performance.now() > deadline;
  if (waiting.size > 0) ask();
}

function ask(): void {
  if (isAsked) return;
  isAsked = true;
  // Browsers prefer frames to timers; after a full frame the page's timers are let through before the next.
  if (isBusy) setTimeout(() => requestAnimationFrame(run));
  else requestAnimationFrame(run);
}

/** Asks for a drawing in the next frame; however often it asks, it is drawn once a frame. */
export function request(drawing: Drawing): void {
  waiting.add(drawing);
  ask();
}

export function cancel(drawing: Drawing): void {
  waiting.delete(drawing);
}
