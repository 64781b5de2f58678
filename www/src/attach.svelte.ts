import type { View } from "attnscope/views";
import { untrack } from "svelte";
import type { Attachment } from "svelte/attachments";

/** A view of the package as a Svelte attachment; it follows whatever its options read. */
export function attach<Options, Made extends View<Options>>(
  create: (element: HTMLElement, options: Options) => Made,
  options: () => Options,
  /** Called with the view once it is there, and with null when it goes. */
  onView: (view: Made | null) => void = () => {},
): Attachment<HTMLElement> {
  return (element) => {
    const view = untrack(() => create(element, options()));
    untrack(() => onView(view));
    let isFirst = true;
    $effect(() => {
      const next = options();
      if (!isFirst) view.update(next as Partial<Options>);
      isFirst = false;
    });
    return () => {
      view.destroy();
      onView(null);
    };
  };
}
