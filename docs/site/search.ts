// The search field of every page: a combobox, whose list leads to places in the documentation.
import type { Place } from "./finder.ts";

const home = document.querySelector("#search") as HTMLElement;
home.innerHTML = `
  <input type="search" role="combobox" placeholder="Search" aria-label="Search the documentation" aria-keyshortcuts="/"
    aria-autocomplete="list" aria-expanded="false" aria-controls="found" autocomplete="off" autocapitalize="off" spellcheck="false" />
  <kbd aria-hidden="true">/</kbd>
  <div role="listbox" id="found" aria-label="Results" hidden></div>
  <p role="status" class="visually-hidden"></p>`;
const input = home.querySelector("input") as HTMLInputElement;
const list = home.querySelector("[role=listbox]") as HTMLElement;
const status = home.querySelector("[role=status]") as HTMLElement;

/** The option that Enter opens, counted from 0. */
let active = 0;

function option({ address, title, page, group, text }: Place, i: number): HTMLElement {
  const line = (kind: string, words: string) => {
    const span = document.createElement("span");
    span.className = kind;
    span.textContent = words;
    return span;
  };
  // The field keeps the focus: an option is no stop of its own.
  const link = Object.assign(document.createElement("a"), {
    href: address,
    id: `found-${i}`,
    role: "option",
    tabIndex: -1,
  });
  link.append(line("title", title), line("where", group === page ? page : `${group} › ${page}`), line("text", text));
  return link;
}

function activate(i: number): void {
  const options = [...list.children];
  active = (i + options.length) % options.length;
  for (const [at, option] of options.entries()) option.ariaSelected = String(at === active);
  input.setAttribute("aria-activedescendant", `found-${active}`);
  options[active]?.scrollIntoView({ block: "nearest" });
}

function show(places: readonly Place[]): void {
  list.replaceChildren(...places.map(option));
  list.hidden = places.length === 0;
  input.ariaExpanded = String(!list.hidden);
  if (list.hidden) input.removeAttribute("aria-activedescendant");
  else activate(0);
}

function close(): void {
  show([]);
  status.textContent = "";
}

async function search(): Promise<void> {
  const query = input.value.trim();
  const { find } = await import("./finder.ts");
  // While the index came, more was typed.
  if (query !== input.value.trim()) return;
  const places = query === "" ? [] : find(query);
  show(places);
  const { length } = places;
  status.textContent = query === "" ? "" : length === 0 ? "Nothing found" : `${length} result${length > 1 ? "s" : ""}`;
  home.classList.toggle("nothing", query !== "" && length === 0);
}

function onKey(event: KeyboardEvent): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && !list.hidden) activate(active + step);
  else if (event.key === "Enter" && !list.hidden) (list.children[active] as HTMLElement).click();
  else if (event.key === "Escape" && !list.hidden) close();
  else return;
  event.preventDefault();
}

input.addEventListener("focus", search);
input.addEventListener("input", search);
input.addEventListener("keydown", onKey);
list.addEventListener("click", close);
home.addEventListener("focusout", ({ relatedTarget }) => {
  if (!home.contains(relatedTarget as Node | null)) close();
});

const TYPED = "input, textarea, select, [contenteditable]";
document.addEventListener("keydown", (event) => {
  const { key, ctrlKey, metaKey, altKey } = event;
  const [target] = event.composedPath();
  if (key !== "/" || ctrlKey || metaKey || altKey || (target instanceof Element && target.matches(TYPED))) return;
  event.preventDefault();
  input.focus();
  input.select();
});
