/** Something that wants to be drawn. */
export interface Drawing {
  /** Reads the page; every drawing of a frame does so before the first one writes to it. */
  measure(): void;
  /** Works until the deadline; false where something is left for the next frame. */
  draw(deadline: number): boolean;
}

// Of the 16 ms of a frame the rest is left to the page.
const BUDGET = 8;

const waiting = new Set<Drawing>();
let frame = 0;

function run(): void {
  frame = 0;
  const deadline = performance.now() + BUDGET;
  const drawings = [...waiting];
  for (const drawing of drawings) drawing.measure();
  for (const drawing of drawings) {
    if (!waiting.has(drawing)) continue;
    if (drawing.draw(deadline)) waiting.delete(drawing);
    if (performance.now() > deadline) break;
  }
  if (waiting.size > 0 && frame === 0) frame = requestAnimationFrame(run);
}

/** Asks for a drawing in the next frame; however often it asks, it is drawn once a frame. */
export function request(drawing: Drawing): void {
  waiting.add(drawing);
  if (frame === 0) frame = requestAnimationFrame(run);
}

export function cancel(drawing: Drawing): void {
  waiting.delete(drawing);
}
