import type { Place, Selection } from "attnscope";
import { createSubscriber } from "svelte/reactivity";

const follow = new WeakMap<Selection, () => void>();

/** The selection's place, for Svelte to follow. */
export function placeOf(selection: Selection): Place {
  const subscribe =
    follow.get(selection) ??
    createSubscriber((update) => {
      selection.addEventListener("change", update);
      return () => selection.removeEventListener("change", update);
    });
  follow.set(selection, subscribe);
  subscribe();
  return selection.place;
}
