// The pages of the documentation, made of Markdown: what lies in this folder, and the reference.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";
import { blocksOf, markdown } from "./blocks.ts";
import { readReference } from "./reference.ts";
import { escapeHtml, type Section, sectionsOf } from "./render.ts";
import { TOPICS } from "./topics.ts";

/** Vite's names have forward slashes everywhere. */
const at = (file: string) => fileURLToPath(new URL(file, import.meta.url)).replaceAll("\\", "/");

/** In the order in which they are read. */
const GUIDES = [
  "index",
  "masks",
  "pytorch",
  "files",
  "gpu",
  "embedding",
  "gallery",
  "entries",
  "runtimes",
  "comparison",
];

interface Link {
  readonly name: string;
  readonly title: string;
}

interface Page extends Link {
  readonly html: string;
  readonly sections: readonly Section[];
  /** The group of the navigation that it is in. */
  readonly group: string;
}

function guide(name: string) {
  const source = readFileSync(at(`${name}.md`), "utf8");
  return { name, title: /^# (.*)$/m.exec(source)?.[1] ?? name, source };
}

export const guides = GUIDES.map(guide);
export const pageNames: readonly string[] = [...guides, ...TOPICS].map(({ name }) => name);

function allPages(): Page[] {
  const reference = readReference();
  return [
    ...guides.map(({ name, title, source }) => {
      return { name, title, group: "Guides", html: markdown.render(source), sections: sectionsOf(source) };
    }),
    ...TOPICS.map(({ name, title, entry }) => {
      const { html = "", sections = [] } = reference.get(name) ?? {};
      return { name, title, group: entry, html, sections };
    }),
  ];
}

/** What one finds on a page: its second headings, and under each the third. */
function contents({ sections }: Page): string {
  const link = ({ id, title }: Section) => `<a href="#${id}">${escapeHtml(title.replace(/^\w+\.(?=\w+\(\))/, ""))}</a>`;
  const items = sections
    .filter(({ level }) => level === 2 || level === 3)
    .map((section) => `<li class="level-${section.level}">${link(section)}</li>`);
  if (items.length < 2) return "";
  return `<nav class="contents" aria-labelledby="contents"><h2 id="contents">On this page</h2><ul>${items.join("\n")}</ul></nav>`;
}

function navigation(pages: readonly Page[], here: Page): string {
  const item = ({ name, title }: Page) =>
    `<li><a href="${name}.html"${name === here.name ? ' aria-current="page"' : ""}>${escapeHtml(title)}</a></li>`;
  const groups = [...new Set(pages.map(({ group }) => group))].map((group) => {
    const members = pages.filter((page) => page.group === group);
    return `<h2>${group}</h2>\n<ul>${members.map(item).join("\n")}</ul>`;
  });
  return groups.join("\n");
}

/** What the search looks through: every place of every page. */
function places(pages: readonly Page[]) {
  return pages.flatMap(({ name, title: page, group, sections }) =>
    sections.map(({ id, title, level, text }) => {
      const address = level === 1 ? `${name}.html` : `${name}.html#${id}`;
      return { address, title, page, level, group, text: text.trim() };
    }),
  );
}

const INDEX = "virtual:places";

/** Makes pages of the Markdown, and modules of the blocks in it that are named. */
export function pages(): Plugin {
  const all = allPages();
  const template = readFileSync(at("page.html"), "utf8");

  function render(page: Page): string {
    const parts: Record<string, string> = {
      title: page.name === "index" ? "attnscope" : `${page.title} · attnscope`,
      pages: navigation(all, page),
      contents: contents(page),
      content: page.html,
    };
    return template.replaceAll(/\{\{(\w+)\}\}/g, (_, part) => parts[part] ?? "");
  }

  const made = new Map<string, string>();
  for (const page of all) made.set(at(`${page.name}.html`), render(page));
  for (const { name, source } of guides) {
    for (const { role, code } of blocksOf(source)) if (role.endsWith(".js")) made.set(at(`${name}/${role}`), code);
  }
  made.set(INDEX, `export default JSON.parse(${JSON.stringify(JSON.stringify(places(all)))})`);

  return {
    name: "pages",
    enforce: "pre",
    config: () => ({ build: { rolldownOptions: { input: all.map(({ name }) => at(`${name}.html`)) } } }),
    resolveId(id, importer) {
      if (made.has(id)) return id;
      // What is written on a page is as if it stood in a folder of the page's name.
      const [folder] = importer?.split(".html?") ?? [];
      const beside = `${folder}/${id.replace("./", "")}`;
      return made.has(beside) ? beside : null;
    },
    load: (id) => made.get(id) ?? null,
  };
}
