import type { Text } from "./text.ts";

const SHOWN_FOR = 1500;

/** What a button that copies says of it for a while. */
export class Copier {
  #outcome = $state<"copied" | "notCopied" | null>(null);

  label(text: Text, otherwise: string): string {
    return this.#outcome === null ? otherwise : text[this.#outcome];
  }

  /** The text may still be under way. Safari lets a page copy only what it names while the click is handled. */
  async copy(content: Promise<string>): Promise<void> {
    const blob = content.then((text) => new Blob([text], { type: "text/plain" }));
    try {
      await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
      this.#outcome = "copied";
    } catch {
      // Not every page may copy: where the address is not secure, the browser has no clipboard for it.
      this.#outcome = "notCopied";
    }
    setTimeout(() => {
      this.#outcome = null;
    }, SHOWN_FOR);
  }
}
