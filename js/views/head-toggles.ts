import { headColor } from "./head-colors.ts";
import { adoptStyles } from "./styles.ts";
import { themeOf } from "./theme.ts";
import type { View } from "./view.ts";

interface HeadTogglesOptions {
  readonly titles: readonly { readonly name: string; readonly note: string }[];
  readonly shown: ReadonlySet<number>;
  readonly onToggle: (head: number) => void;
}

/** A button for each head in its colour, to show and hide it. */
export function headToggles(element: HTMLElement, start: HeadTogglesOptions): View<HeadTogglesOptions> {
  adoptStyles(element);
  let options = start;
  const root = document.createElement("div");
  root.className = "attn-toggles";
  element.append(root);
  const buttons: HTMLButtonElement[] = [];

  function add(head: number): HTMLButtonElement {
    const button = document.createElement("button");
    button.type = "button";
    button.append(document.createElement("i"), document.createElement("b"), document.createElement("span"));
    button.addEventListener("click", () => options.onToggle(head));
    root.append(button);
    return button;
  }

  function show(): void {
    const { titles, shown } = options;
    const { dark } = themeOf(element);
    for (const extra of buttons.splice(titles.length)) extra.remove();
    while (buttons.length < titles.length) buttons.push(add(buttons.length));
    buttons.forEach((button, head) => {
      const [swatch, name, note] = button.children as unknown as [HTMLElement, HTMLElement, HTMLElement];
      button.setAttribute("aria-pressed", String(shown.has(head)));
      swatch.style.setProperty("--attn-head", headColor(head, dark));
      name.textContent = titles[head]?.name ?? "";
      note.textContent = titles[head]?.note ?? "";
    });
  }

  show();
  return {
    update(change) {
      options = { ...options, ...change };
      show();
    },
    destroy() {
      root.remove();
    },
  };
}
