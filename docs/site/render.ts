// Markdown as the pages show it: code in colours, headings that are links to themselves, links to other pages and to sources as pages.
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import javascript from "highlight.js/lib/languages/javascript";
import python from "highlight.js/lib/languages/python";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import { blockOf, markdown } from "./blocks.ts";
import { PLACES, TOPICS } from "./topics.ts";

/** What a heading leads to: a place on its page, with the words below it. */
export interface Section {
  readonly id: string;
  readonly title: string;
  readonly level: number;
  readonly text: string;
}

for (const [name, language] of Object.entries({ bash, javascript, python, typescript, xml })) {
  hljs.registerLanguage(name, language);
}

export const { escapeHtml } = markdown.utils;

/** Code in colours. */
export function highlighted(code: string, language: string): string {
  return hljs.getLanguage(language) ? hljs.highlight(code, { language }).value : escapeHtml(code);
}

markdown.renderer.rules.fence = (tokens, i) => {
  const { info = "", content = "" } = tokens[i] ?? {};
  const { language, role, code } = blockOf(info, content);
  const shown = `<pre><code>${highlighted(code, language)}</code></pre>\n`;
  if (language === "html" && role === "") return `<figure><div class="live">\n${code}</div>${shown}</figure>\n`;
  return role.endsWith(".js") ? `<figure><figcaption>${role}</figcaption>${shown}</figure>\n` : shown;
};

/** Gives headings the ids that hosts of Markdown give them, and links to other pages their addresses. */
markdown.core.ruler.push("addresses", ({ tokens }) => {
  const used = new Map<string, number>();
  for (const [i, token] of tokens.entries()) {
    // The policy lets no attribute style a page.
    if (token.tag === "td" || token.tag === "th") token.attrs = null;
    if (token.type === "heading_open") {
      const id = textOf(tokens[i + 1]?.children ?? [])
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
        .replaceAll(" ", "-");
      const count = used.get(id) ?? 0;
      used.set(id, count + 1);
      token.attrSet("id", count === 0 ? id : `${id}-${count}`);
    }
    for (const child of token.children ?? []) {
      const href = child.attrGet("href");
      if (href) child.attrSet("href", addressOf(href));
    }
  }
});

/** On a page: a guide's page for its Markdown, and what the reference tells of a source for the source. */
function addressOf(href: string): string {
  const [, file, name] = /^\.\.\/\.\.\/js\/([\w/-]+)\.ts(?:#(\w+))?$/.exec(href) ?? [];
  if (!file) return href.replace(/^([\w-]+)\.md(?=#|$)/, "$1.html");
  const topic = TOPICS.find((topic) => topic.file === file);
  return (name ? PLACES.get(name) : topic && `${topic.name}.html`) ?? href;
}

markdown.renderer.rules.heading_open = (tokens, i) => {
  const { tag = "h2", attrGet } = tokens[i] ?? {};
  const id = attrGet?.call(tokens[i], "id");
  return tag === "h1" ? `<h1 id="${id}">` : `<${tag} id="${id}"><a href="#${id}">`;
};
markdown.renderer.rules.heading_close = (tokens, i) => {
  const { tag } = tokens[i] ?? {};
  return tag === "h1" ? "</h1>" : `</a></${tag}>`;
};

function textOf(words: readonly { readonly type: string; readonly content: string }[]): string {
  return words.map(({ type, content }) => (type === "softbreak" ? " " : content)).join("");
}

/** The parts of a page of Markdown, by its headings; what is code alone is left out. */
export function sectionsOf(source: string): Section[] {
  const sections: { id: string; title: string; level: number; text: string }[] = [];
  const tokens = markdown.parse(source, {});
  for (const [i, token] of tokens.entries()) {
    if (token.type !== "inline") continue;
    const text = textOf(token.children ?? []);
    const opened = tokens[i - 1];
    if (opened?.type === "heading_open") {
      sections.push({ id: String(opened.attrGet("id")), title: text, level: Number(opened.tag.slice(1)), text: "" });
    } else {
      const section = sections.at(-1);
      if (section) section.text += ` ${text}`;
    }
  }
  return sections;
}
