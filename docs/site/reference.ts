// The reference: what each entry of the package exports, as the types that are published and their comments say it.
import ts from "typescript";
import { markdown } from "./blocks.ts";
import { aliasText, callsOf, DIST, isTold, typeText } from "./declarations.ts";
import { escapeHtml, highlighted, type Section } from "./render.ts";
import { PLACES, TOPICS, type Topic } from "./topics.ts";

/** A page of the reference. */
export interface Reference {
  readonly html: string;
  readonly sections: readonly Section[];
}

type Exports = ReadonlyMap<string, ts.Symbol>;

/** The pages of the reference by their names. */
export function readReference(): Map<string, Reference> {
  const files = new Map(TOPICS.map(({ entry, file }) => [entry, `${DIST}${file}.d.ts`]));
  const options = { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022, strict: true, skipLibCheck: true };
  const program = ts.createProgram([...files.values()], options);
  const checker = program.getTypeChecker();
  const entries = new Map<string, Exports>();
  for (const [entry, file] of files) {
    const source = program.getSourceFile(file);
    const module = source && checker.getSymbolAtLocation(source);
    if (!module) throw new Error(`${file} is no module`);
    entries.set(entry, new Map(checker.getExportsOfModule(module).map((symbol) => [symbol.name, original(symbol)])));
  }
  function original(symbol: ts.Symbol): ts.Symbol {
    return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  }
  checkComplete(entries);
  return new Map(TOPICS.map((topic) => [topic.name, page(topic, entries.get(topic.entry) ?? new Map(), checker)]));
}

function checkComplete(entries: ReadonlyMap<string, Exports>): void {
  const told = new Set(TOPICS.flatMap(({ entry, exports }) => exports.map((name) => entries.get(entry)?.get(name))));
  for (const [entry, exports] of entries) {
    for (const [name, symbol] of exports) if (!told.has(symbol)) throw new Error(`no page tells of ${entry}'s ${name}`);
  }
}

/** Code whose types lead to where they stand. */
function linked(code: string): string {
  return highlighted(code, "typescript").replaceAll(/<[^>]*>|\b[A-Z]\w+\b/g, (part) => {
    const place = PLACES.get(part);
    return place ? `<a href="${place}">${part}</a>` : part;
  });
}

/** A comment's Markdown, with links to what it names. */
function withLinks(text: string): string {
  return text.replaceAll(/\{@link (\w+)(\.\w+)?\}/g, (_, thing: string, member = "") => {
    return `[\`${thing}${member}\`](${PLACES.get(thing)}${member})`;
  });
}

/** Links each error's code to what is said of it. */
function withCodes(text: string): string {
  return text.replaceAll(
    /`([a-z]+_[a-z_]+|disposed)`/g,
    (code, name) => `[${code}](api-errors.html#ErrorCodes.${name})`,
  );
}

function page({ title, intro = "", exports }: Topic, symbols: Exports, checker: ts.TypeChecker): Reference {
  const sections: Section[] = [{ id: "top", title, level: 1, text: plain(intro) }];
  const comment = (symbol: ts.Symbol) => withLinks(ts.displayPartsToString(symbol.getDocumentationComment(checker)));

  function words(symbol: ts.Symbol): string {
    const throws = symbol.getJsDocTags(checker).find(({ name }) => name === "throws");
    const thrown = throws ? `Throws ${withCodes(withLinks(ts.displayPartsToString(throws.text)))}` : "";
    return markdown.render(`${comment(symbol)}\n\n${thrown}`);
  }

  function place(level: number, id: string, title: string, symbol: ts.Symbol): void {
    sections.push({ id, title, level, text: plain(comment(symbol)) });
  }

  function heading(level: number, id: string, title: string, symbol: ts.Symbol): string {
    place(level, id, title, symbol);
    return `<h${level} id="${id}"><a href="#${id}">${escapeHtml(title)}</a></h${level}>`;
  }

  function property(thing: string, member: ts.Symbol): string {
    const id = `${thing}.${member.name}`;
    // A code is looked for by itself.
    if (thing === "ErrorCodes") place(3, id, member.name, member);
    else place(4, id, id, member);
    const isOptional = (member.flags & ts.SymbolFlags.Optional) !== 0;
    const name = `<a href="#${id}"><code>${member.name}</code></a>`;
    const type = `<code class="type">${linked(`${isOptional ? "?" : ""}: ${typeText(member)}`)}</code>`;
    return `<dt id="${id}">${name}${type}</dt><dd>${words(member)}</dd>`;
  }

  function method(thing: string, member: ts.Symbol): string {
    const id = `${thing}.${member.name}`;
    return `${heading(3, id, `${id}()`, member)}${signature(callsOf(member))}${words(member)}`;
  }

  function members(name: string, symbol: ts.Symbol): string {
    const isValue = (symbol.flags & ts.SymbolFlags.Variable) !== 0;
    const type = isValue ? checker.getTypeOfSymbol(symbol) : checker.getDeclaredTypeOfSymbol(symbol);
    const isMethod = (member: ts.Symbol) =>
      (member.flags & ts.SymbolFlags.Method) !== 0 ||
      (isValue && checker.getTypeOfSymbol(member).getCallSignatures().length > 0);
    const own = type.getProperties().filter(isTold);
    const properties = own.filter((member) => !isMethod(member)).map((member) => property(name, member));
    const isClass = (symbol.flags & ts.SymbolFlags.Class) !== 0;
    const statics = isClass ? checker.getTypeOfSymbol(symbol).getProperties().filter(isTold) : [];
    const methods = [...own, ...statics].filter(isMethod).map((member) => method(name, member));
    return [properties.length > 0 ? `<dl class="members">${properties.join("\n")}</dl>` : "", ...methods].join("\n");
  }

  /** A constructor, where it is said what it is for. */
  function made(name: string, symbol: ts.Symbol): string {
    const maker = symbol.members?.get("__constructor" as ts.__String);
    if (!maker || !isTold(maker) || !comment(maker)) return "";
    return `${signature(callsOf(maker, name))}${words(maker)}`;
  }

  function section(name: string): string {
    const symbol = symbols.get(name);
    if (!symbol) throw new Error(`there is no ${name} for the page ${title}`);
    if (symbol.flags & ts.SymbolFlags.Function) {
      return `${heading(2, name, `${name}()`, symbol)}${signature(callsOf(symbol))}${words(symbol)}`;
    }
    const start = `${heading(2, name, name, symbol)}${words(symbol)}`;
    const alias = symbol.declarations?.find(ts.isTypeAliasDeclaration);
    if (alias && !ts.isTypeLiteralNode(alias.type)) return `${start}${signature(aliasText(alias))}`;
    return `${start}${made(name, symbol)}${members(name, symbol)}`;
  }

  const html = `<h1 id="top">${title}</h1>\n${markdown.render(intro)}${exports.map(section).join("\n")}`;
  return { html, sections };
}

function signature(code: string): string {
  return `<pre class="signature"><code>${linked(code)}</code></pre>`;
}

/** Markdown as the words that it shows. */
function plain(text: string): string {
  return text
    .replaceAll(/^```.*$[\s\S]*?^```$/gm, "")
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/[`*]/g, "")
    .replaceAll(/\s+/g, " ")
    .trim();
}
