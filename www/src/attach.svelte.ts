import type { View } from "attnscope/views";
import { untrack } from "svelte";
import type { Attachment } from "svelte/attachments";

/** A view of the package as a Svelte attachment; it follows whatever its options read. `onview` is given the view. */
export function attach<Options, Made extends View<Options>>(
  create: (element: HTMLElement, options: Options) => Made,
  options: () => Options,
  onview?: (view: Made | null) => void,
): Attachment<HTMLElement> {
  return (element) => {
    const view = untrack(() => create(element, options()));
    untrack(() => onview?.(view));
    let isFirst = true;
    $effect(() => {
      const next = options();
      if (!isFirst) view.update(next as Partial<Options>);
      isFirst = false;
    });
    return () => {
      untrack(() => onview?.(null));
      view.destroy();
    };
  };
}
