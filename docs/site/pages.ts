// The pages of the documentation, made of Markdown: what lies in this folder, and the reference that TypeDoc writes.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import javascript from "highlight.js/lib/languages/javascript";
import python from "highlight.js/lib/languages/python";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import type { Plugin } from "vite";
import { blockOf, blocksOf, markdown } from "./blocks.ts";

/** Vite's names have forward slashes everywhere. */
const at = (file: string) => fileURLToPath(new URL(file, import.meta.url)).replaceAll("\\", "/");

/** In the order in which they are read. */
const GUIDES = ["index", "masks", "pytorch", "files", "embedding", "gallery", "comparison", "runtimes"];
/** The package's entries, by the name of what TypeDoc writes of them. */
const ENTRIES = {
  index: "attnscope",
  slim: "attnscope/slim",
  views: "attnscope/views",
  elements: "attnscope/elements",
};

interface Page {
  readonly name: string;
  readonly title: string;
  readonly source: string;
  /** A long page, whose second and third headings are listed first. */
  readonly hasContents: boolean;
}

function guide(name: string): Page {
  const source = readFileSync(at(`${name}.md`), "utf8");
  return { name, title: /^# (.*)$/m.exec(source)?.[1] ?? name, source, hasContents: false };
}

const referenceName = (file: string) => `api-${file === "index" ? "attnscope" : file}`;

function reference([file, title]: readonly [string, string]): Page {
  const text = readFileSync(at(`../../target/docs/${file}.md`), "utf8");
  const linked = text.replaceAll(/\]\((\w+)\.md/g, (_, other) => `](${referenceName(other)}.md`);
  return { name: referenceName(file), title, source: `# ${title}\n\n${linked}`, hasContents: true };
}

export const guides: readonly Page[] = GUIDES.map(guide);
export const pageNames: readonly string[] = [...GUIDES, ...Object.keys(ENTRIES).map(referenceName)];

for (const [name, language] of Object.entries({ bash, javascript, python, typescript, xml })) {
  hljs.registerLanguage(name, language);
}

const { escapeHtml } = markdown.utils;

markdown.renderer.rules.fence = (tokens, i) => {
  const { info = "", content = "" } = tokens[i] ?? {};
  const { language, role, code } = blockOf(info, content);
  const text = hljs.getLanguage(language) ? hljs.highlight(code, { language }).value : escapeHtml(code);
  const shown = `<pre><code>${text}</code></pre>\n`;
  if (language === "html" && role === "") return `<figure><div class="live">\n${code}</div>${shown}</figure>\n`;
  return role.endsWith(".js") ? `<figure><figcaption>${role}</figcaption>${shown}</figure>\n` : shown;
};

const GIVEN_ID = /\s*\{#(.+)\}$/;

/** Gives headings the ids that stand behind them, or those that hosts of Markdown give, and links to other pages their addresses. */
markdown.core.ruler.push("addresses", ({ tokens }) => {
  const used = new Map<string, number>();
  for (const [i, token] of tokens.entries()) {
    // The policy lets no attribute style a page.
    if (token.tag === "td" || token.tag === "th") token.attrs = null;
    if (token.type === "heading_open") {
      const words = tokens[i + 1]?.children ?? [];
      const last = words.at(-1);
      const given = GIVEN_ID.exec(last?.content ?? "");
      if (last) last.content = last.content.replace(GIVEN_ID, "");
      const id = words
        .map(({ content }) => content)
        .join("")
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
        .replaceAll(" ", "-");
      const count = used.get(id) ?? 0;
      used.set(id, count + 1);
      token.attrSet("id", given?.[1] ?? (count === 0 ? id : `${id}-${count}`));
    }
    for (const child of token.children ?? []) {
      const href = child.attrGet("href");
      if (href) child.attrSet("href", href.replace(/^([\w-]+)\.md(?=#|$)/, "$1.html"));
    }
  }
});

function contents(source: string): string {
  const tokens = markdown.parse(source, {});
  const groups: { readonly name: string; readonly members: string[] }[] = [];
  for (const [i, token] of tokens.entries()) {
    const words = tokens[i + 1];
    if (token.type !== "heading_open" || !words) continue;
    const name = markdown.renderer.renderInline(words.children ?? [], {}, {});
    if (token.tag === "h2") groups.push({ name, members: [] });
    if (token.tag === "h3") groups.at(-1)?.members.push(`<li><a href="#${token.attrGet("id")}">${name}</a></li>`);
  }
  const lists = groups.map(({ name, members }) => `<dt>${name}</dt><dd><ul>${members.join("\n")}</ul></dd>`);
  return `<nav class="contents" aria-label="On this page"><dl>${lists.join("\n")}</dl></nav>`;
}

function links(pages: readonly Page[], here: Page): string {
  const item = ({ name, title }: Page) =>
    `<li><a href="${name}.html"${name === here.name ? ' aria-current="page"' : ""}>${escapeHtml(title)}</a></li>`;
  return pages.map(item).join("\n");
}

/** Makes pages of the Markdown, and modules of the blocks in it that are named. */
export function pages(): Plugin {
  const entries = Object.entries(ENTRIES).map(reference);
  const all = [...guides, ...entries];
  const template = readFileSync(at("page.html"), "utf8");

  function render(page: Page): string {
    const heading = page.hasContents ? `</h1>${contents(page.source)}` : "</h1>";
    const parts: Record<string, string> = {
      title: page.name === "index" ? "attnscope" : `${page.title} · attnscope`,
      guides: links(guides, page),
      reference: links(entries, page),
      content: markdown.render(page.source).replace("</h1>", () => heading),
    };
    return template.replaceAll(/\{\{(\w+)\}\}/g, (_, part) => parts[part] ?? "");
  }

  const made = new Map<string, string>();
  for (const page of all) {
    made.set(at(`${page.name}.html`), render(page));
    for (const { role, code } of blocksOf(page.source)) {
      if (role.endsWith(".js")) made.set(at(`${page.name}/${role}`), code);
    }
  }

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
