// The page as one file: a state stands in it as JSON, before anything else that could read the same.
import { Unreadable } from "./reader.ts";

const STATE_START = '<script type="application/json" id="state">';
const END = "</script>";
export const NO_STATE = STATE_START + END;

/** @throws where there is no place for it */
export function withState(page: string, state: string): string {
  if (!page.includes(NO_STATE)) throw new Error("not the page as one file");
  // Whatever the tokens are, the state ends where its tag does.
  return page.replace(NO_STATE, () => STATE_START + state.replaceAll("<", "\\u003c") + END);
}

/** @throws Unreadable */
export function stateIn(page: string): string {
  const start = page.indexOf(STATE_START) + STATE_START.length;
  const end = page.indexOf(END, start);
  if (start < STATE_START.length || end < 0) throw new Unreadable("damaged");
  return page.slice(start, end);
}
