/** Something that wants to be drawn. */
export interface Drawing {
  /** Reads the page; every drawing of a frame does so before the first one writes to it. */
  measure(): void;
  /** Takes its room on the page; every drawing of a frame does so before the first one draws, so that nothing moves then. */
  place?(): void;
  /** Works until the deadline; false where something is left for the next frame. */
  draw(deadline: number): boolean;
  /** Whether it is in sight; what is not is drawn when the page has been still for a moment. */
  isSeen?(): boolean;
}

// Of the 16 ms of a frame the rest is left to the page.
const BUDGET = 6;
// Milliseconds without a wish after which what is out of sight is drawn.
const STILL = 300;

const waiting = new Set<Drawing>();
const behind = new Set<Drawing>();
const unseen = new Set<Drawing>();
let still: ReturnType<typeof setTimeout> | undefined;
let isAsked = false;
// Whether the last frame used up its budget. The first one follows the page's own start.
let isBusy = true;

function place(): Drawing[] {
  for (const drawing of behind) waiting.add(drawing);
  behind.clear();
  for (const drawing of waiting) safely(drawing, () => drawing.measure());
  for (const drawing of waiting) safely(drawing, () => drawing.place?.());
  return [...waiting];
}

/** One that fails is drawn no more until it is asked for again, and holds up no other. */
function safely<T>(drawing: Drawing, act: () => T): T | undefined {
  try {
    return act();
  } catch (reason) {
    cancel(drawing);
    reportError(reason);
    return undefined;
  }
}

function run(): void {
  isAsked = false;
  const deadline = performance.now() + BUDGET;
  const drawings = place();
  for (const drawing of drawings) {
    if (!waiting.has(drawing)) continue;
    const isUnseen = drawing.isSeen?.() === false;
    if (isUnseen) unseen.add(drawing);
    if (isUnseen || safely(drawing, () => drawing.draw(deadline))) waiting.delete(drawing);
    if (performance.now() > deadline) break;
  }
  isBusy = performance.now() > deadline;
  clearTimeout(still);
  if (waiting.size > 0) ask();
  else if (unseen.size > 0) still = setTimeout(drawUnseen, STILL);
}

function drawUnseen(): void {
  const deadline = performance.now() + BUDGET;
  for (const drawing of unseen) {
    if (safely(drawing, () => drawing.draw(deadline))) unseen.delete(drawing);
    if (performance.now() > deadline) break;
  }
  if (unseen.size > 0) still = setTimeout(drawUnseen);
}

function ask(): void {
  if (isAsked) return;
  isAsked = true;
  requestAnimationFrame(isBusy ? place : run);
  // Browsers prefer frames to timers; after a full frame the page's timers are let through before the next is drawn.
  if (isBusy) setTimeout(() => requestAnimationFrame(run));
}

/** Asks for a drawing in the next frame; however often it asks, it is drawn once a frame. */
export function request(drawing: Drawing): void {
  waiting.add(drawing);
  unseen.delete(drawing);
  ask();
}

/** Asks for a drawing that comes behind all that are asked for until that frame. */
export function requestBehind(drawing: Drawing): void {
  behind.add(drawing);
  ask();
}

export function cancel(drawing: Drawing): void {
  waiting.delete(drawing);
  behind.delete(drawing);
  unseen.delete(drawing);
}
