// The code in the documentation, run from its Markdown and from the comments of the package against the built package. What a program
// prints must be what stands in the comments beside or below the lines that print. What draws is run in tests/browser/docs.spec.ts.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import MarkdownIt from "markdown-it";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Block, blocksOf, markdown } from "../../docs/site/blocks.ts";
import { examples, expected, isDrawn } from "../../docs/site/examples.ts";
import { guides, pageNames } from "../../docs/site/pages.ts";
import { readReference } from "../../docs/site/reference.ts";
import { sectionsOf } from "../../docs/site/render.ts";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const PYTHON = process.env.PYTHON ?? "python3";
const hasTorch = spawnSync(PYTHON, ["-c", "import torch"]).status === 0;

// In the repository, so that "attnscope" is the built package.
const FOLDER = at(`../../target/docs-run-${process.pid}`);

const LANGUAGES = {
  js: { comment: "//", run: (code: string) => run(process.execPath, ["--input-type=module"], code) },
  python: { comment: "#", run: (code: string) => run(PYTHON, ["-"], code) },
};

function run(program: string, options: string[], input: string): string[] {
  return execFileSync(program, options, { cwd: FOLDER, input, encoding: "utf8" }).split("\n").slice(0, -1);
}

beforeAll(() => {
  mkdirSync(FOLDER, { recursive: true });
  cpSync(at("../golden/samples"), FOLDER, { recursive: true });
  cpSync(at("docs"), FOLDER, { recursive: true });
});
afterAll(() => rmSync(FOLDER, { recursive: true }));

const pages = guides.map(({ name, source }) => ({ name, blocks: blocksOf(source) }));
const isRun = ({ role }: Block) => role !== "not-run";

test("every page is among the guides", () => {
  const files = readdirSync(at("../../docs/site")).filter((file) => file.endsWith(".md"));
  expect(files.sort()).toEqual(guides.map(({ name }) => `${name}.md`).sort());
});

test("every entry of the package is told of", () => {
  const { exports } = JSON.parse(readFileSync(at("../../package.json"), "utf8"));
  const entries = Object.keys(exports).filter((name) => name !== "./package.json");
  const told = guides.find(({ name }) => name === "entries")?.source;
  for (const name of entries) expect(told).toContain(`\`${name.replace(".", "attnscope")}\``);
});

/** Where a text's links and pictures lead, but for those to other hosts. */
function linksOf(text: string, parser: MarkdownIt): string[] {
  const tokens = parser.parse(text, {}).flatMap((token) => [token, ...(token.children ?? [])]);
  const links = tokens.flatMap(({ type, attrs, content }) => {
    const isHtml = type.startsWith("html_");
    const inHtml = isHtml ? [...content.matchAll(/ (?:href|src|srcset)="([^"]*)"/g)].map(([, link = ""]) => link) : [];
    return [...(attrs ?? []).flatMap(([name, value]) => (name === "href" || name === "src" ? value : [])), ...inHtml];
  });
  return links.filter((link) => !/^https?:/.test(link));
}

describe("links", () => {
  const documents = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/PERFORMANCE.md"];
  const paths = [...documents, ...guides.map(({ name }) => `docs/site/${name}.md`)];

  /** Whether a file has what a link's # names: a heading, or an export. */
  function has(file: URL, place: string): boolean {
    const text = readFileSync(file, "utf8");
    if (file.pathname.endsWith(".md")) return sectionsOf(text).some(({ id }) => id === place);
    return new RegExp(`^export .*\\b${place}\\b`, "m").test(text);
  }

  test.each(paths)("%s: each leads to a file of the repository and a place in it", (path) => {
    const here = new URL(`../../${path}`, import.meta.url);
    const plain = new MarkdownIt({ html: true });
    const dead = linksOf(readFileSync(here, "utf8"), plain).filter((link) => {
      const file = new URL(link, here);
      const place = file.hash.slice(1);
      return !existsSync(file) || (place !== "" && !has(file, place));
    });
    expect(dead).toEqual([]);
  });

  test.each(guides)("$name: as a page each leads to a page", ({ source }) => {
    const pages = linksOf(source, markdown).map((link) => /^([\w-]+)\.html(#.+)?$|^#/.exec(link)?.[1] ?? link);
    expect(pages.filter((page) => !page.startsWith("#") && !pageNames.includes(page))).toEqual([]);
  });
});

test("every test that CONTRIBUTING.md names is there", () => {
  const [...named] = readFileSync(at("../../CONTRIBUTING.md"), "utf8").matchAll(/tests\/[\w./-]+\.ts/g);
  expect(named.length).toBeGreaterThan(0);
  for (const [file] of named) expect(existsSync(at(`../../${file}`)), file).toBe(true);
});

test("every block of code is run, or says that it is not", () => {
  for (const { name, blocks } of pages) {
    for (const { language, line } of blocks.filter((block) => !isRun(block))) {
      console.warn(`docs/site/${name}.md:${line}: ${language} IS NOT RUN`);
    }
    expect(["html", ...Object.keys(LANGUAGES)]).toEqual(
      expect.arrayContaining(blocks.filter(isRun).map(({ language }) => language)),
    );
  }
  if (!hasTorch) console.warn(`${PYTHON} has no PyTorch: PYTHON IN THE DOCUMENTATION WAS NOT RUN`);
});

// What Python writes, JavaScript reads.
describe.each(["python", "js"] as const)("%s", (language) => {
  const { comment, run } = LANGUAGES[language];
  const programs = pages.flatMap(({ name, blocks }) => {
    const code = blocks.filter((block) => block.language === language && isRun(block)).map(({ code }) => code);
    return code.length > 0 ? [[`${name}.md`, code.join("\n")] as const] : [];
  });
  test.skipIf(language === "python" && !hasTorch).each(programs)("%s prints what it says", (_, code) => {
    expect(run(code)).toEqual(expected(code, comment));
  });
});

// What an example of the package takes for granted.
const PRELUDE = `import { createEngine, mask, tensor, AttnError, Selection, Trace } from "attnscope";
const engine = await createEngine();
`;

describe("the package's comments", () => {
  const run = examples.filter((example) => !isDrawn(example));

  test.each(run.map(({ file, line, code }) => [`${file}:${line}`, code] as const))(
    "%s prints what it says",
    (_, code) => {
      const program = /^import /m.test(code) ? code : `${PRELUDE}{\n${code}}\nengine.destroy();`;
      expect(LANGUAGES.js.run(program)).toEqual(expected(code, "//"));
    },
  );

  test("all that users meet is documented", () => {
    const bare = [...readReference().values()].flatMap(({ sections }) =>
      sections.filter(({ level, text }) => level > 1 && !text),
    );
    expect(bare.map(({ title }) => title)).toEqual([]);
  });
});
