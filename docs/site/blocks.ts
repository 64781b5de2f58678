// The blocks of code in a page of Markdown. What stands behind a block's language says how a test runs it:
//   js                a program for Node.js; all of a page are one program, from top to bottom
//   js NAME.js        a module of that name, which others on its page import
//   html              a part of a page: drawn above its code
//   html document     a page of its own
//   python            a program, where there is a Python with PyTorch
//   LANGUAGE not-run  nothing runs it
import MarkdownIt from "markdown-it";

export interface Block {
  readonly language: string;
  readonly role: string;
  readonly code: string;
  readonly line: number;
}

export const markdown = new MarkdownIt({ html: true, typographer: false });

export function blockOf(info: string, code: string, line = 0): Block {
  const [language = "", role = ""] = info.trim().split(/\s+/);
  return { language, role, code, line };
}

export function blocksOf(source: string): Block[] {
  return markdown
    .parse(source, {})
    .filter(({ type }) => type === "fence")
    .map(({ info, content, map }) => blockOf(info, content, (map?.[0] ?? 0) + 1));
}
