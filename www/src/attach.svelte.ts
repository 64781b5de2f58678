import type { CreateView } from "attnscope/views";
import { untrack } from "svelte";
import type { Attachment } from "svelte/attachments";

/** A view of the package as a Svelte attachment; it follows whatever its options read. */
export function attach<Options>(create: CreateView<Options>, options: () => Options): Attachment<HTMLElement> {
  return (element) => {
    const view = untrack(() => create(element, options()));
    let isFirst = true;
    $effect(() => {
      const next = options();
      if (!isFirst) view.update(next as Partial<Options>);
      isFirst = false;
    });
    return () => view.destroy();
  };
}
