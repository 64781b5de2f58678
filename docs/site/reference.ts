// The reference: what each entry of the package exports, as the types that are published and their comments say it.
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { markdown } from "./blocks.ts";
import { escapeHtml, highlighted, type Section } from "./render.ts";

/** A page of the reference: some exports of an entry, in the order in which they are read. */
export interface Topic {
  readonly name: string;
  readonly title: string;
  readonly entry: string;
  readonly file: string;
  readonly intro?: string;
  readonly exports: readonly string[];
}

const main = { entry: "attnscope", file: "index" };
const views = { entry: "attnscope/views", file: "views/index" };

/** Every export stands on one page; the build fails over one that is forgotten. */
export const TOPICS: readonly Topic[] = [
  {
    ...main,
    name: "api-engine",
    title: "Engine",
    exports: [
      "createEngine",
      "EngineOptions",
      "Engine",
      "EngineInfo",
      "BackendOption",
      "WatchOptions",
      "FileFormat",
      "WasmSource",
    ],
  },
  {
    ...main,
    name: "api-attention",
    title: "Attention",
    exports: [
      "MultiHeadAttention",
      "MultiHeadAttentionOptions",
      "AttentionForwardOptions",
      "ForwardResult",
      "ScaledDotProductOptions",
      "AttentionResult",
      "StateDict",
      "LoadOptions",
      "EmptyRow",
      "Positions",
      "Init",
      "Asked",
    ],
  },
  {
    ...main,
    name: "api-transformer",
    title: "Transformer blocks",
    exports: [
      "TransformerBlock",
      "Transformer",
      "TransformerOptions",
      "ForwardOptions",
      "StackResult",
      "DecoderBlock",
      "Decoder",
      "DecoderForwardOptions",
      "DecoderBlockResult",
      "DecoderResult",
      "Activation",
      "NormKind",
    ],
  },
  {
    ...main,
    name: "api-masks",
    title: "Masks",
    exports: ["mask", "Mask", "MaskMatrix", "MaskAxes", "MaterializedMask", "MaskSize", "TorchConvention"],
  },
  {
    ...main,
    name: "api-traces",
    title: "Traces",
    exports: [
      "Trace",
      "Stage",
      "Explanation",
      "Term",
      "Operation",
      "LayerOption",
      "RemaskOptions",
      "Remasked",
      "TraceJson",
    ],
  },
  {
    ...main,
    name: "api-analysis",
    title: "Analysis",
    exports: [
      "Analysis",
      "Tokens",
      "LabelOptions",
      "OffsetOption",
      "HeadLabel",
      "HeadPattern",
      "PatternScores",
      "MaskEffect",
      "CellChange",
      "Moved",
    ],
  },
  { ...main, name: "api-tensors", title: "Tensors", exports: ["tensor", "Tensor", "TensorLike", "NestedArray"] },
  {
    ...main,
    name: "api-operations",
    title: "Operations",
    exports: ["Ops", "AxisOption", "LayerNormOptions", "RmsNormOptions", "RotaryOptions"],
  },
  { ...main, name: "api-random", title: "Random numbers", exports: ["Generator"] },
  { ...main, name: "api-selection", title: "Selection", exports: ["Selection", "Place"] },
  {
    ...main,
    name: "api-errors",
    title: "Errors",
    exports: ["AttnError", "ErrorCodes", "ErrorCode", "ErrorDetails"],
  },
  {
    entry: "attnscope/slim",
    file: "slim",
    name: "api-slim",
    title: "Engine of your parts",
    intro: "All that `attnscope` exports, but for `createEngine`, which takes the parts of the engine from its caller.",
    exports: ["createEngine", "SlimEngineOptions"],
  },
  {
    ...views,
    name: "api-views",
    title: "Views",
    intro: "Each view is drawn in the [gallery](gallery.html), above the code that draws it.",
    exports: [
      "View",
      "PictureView",
      "CreateView",
      "headGrid",
      "HeadGridOptions",
      "Axes",
      "heatmap",
      "HeatmapOptions",
      "headLines",
      "HeadLinesOptions",
      "rowBars",
      "HeadsOptions",
      "maskEditor",
      "MaskEditorOptions",
      "cellInspector",
      "CellInspectorOptions",
      "InspectorText",
      "thumbnail",
      "ThumbnailOptions",
      "legend",
      "LegendOptions",
      "sideBySide",
      "Headed",
      "Pictured",
    ],
  },
  {
    ...views,
    name: "api-looks",
    title: "Colours, zoom and labels",
    exports: [
      "HeatOptions",
      "HeatLook",
      "Shown",
      "Outside",
      "ColorScale",
      "ScaleKind",
      "palette",
      "Palette",
      "PaletteName",
      "Rgb",
      "step",
      "headColor",
      "isDark",
      "number",
      "visible",
      "Viewport",
      "Look",
      "ZoomText",
      "Matrix",
      "Cell",
    ],
  },
  {
    entry: "attnscope/elements",
    file: "elements",
    name: "api-elements",
    title: "Custom elements",
    intro:
      '`import "attnscope/elements"` registers these tags. [In pages, slides and notebooks](embedding.html) shows them at work.',
    exports: ["AttnHeads", "AttnLines", "AttnHeatmap", "AttnMask", "AttnScope", "FrameMessage"],
  },
];

export interface Reference {
  readonly html: string;
  readonly sections: readonly Section[];
}

const dist = fileURLToPath(new URL("../../dist/", import.meta.url)).replaceAll("\\", "/");

/** The pages of the reference by their names. */
export function readReference(): Map<string, Reference> {
  const files = new Map(TOPICS.map(({ entry, file }) => [entry, `${dist}${file}.d.ts`]));
  const options = { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022, strict: true, noEmit: true };
  const program = ts.createProgram([...files.values()], { ...options, skipLibCheck: true });
  const checker = program.getTypeChecker();

  const exported = new Map(
    [...files].map(([entry, file]) => {
      const source = program.getSourceFile(file);
      const module = source && checker.getSymbolAtLocation(source);
      if (!module) throw new Error(`${file} is no module`);
      return [entry, new Map(checker.getExportsOfModule(module).map((symbol) => [symbol.name, resolved(symbol)]))];
    }),
  );
  function resolved(symbol: ts.Symbol): ts.Symbol {
    return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  }

  const told = new Set(TOPICS.flatMap(({ entry, exports }) => exports.map((name) => exported.get(entry)?.get(name))));
  for (const [entry, symbols] of exported) {
    for (const [name, symbol] of symbols)
      if (!told.has(symbol)) throw new Error(`no page tells of ${name} of ${entry}`);
  }

  /** Where a type stands, by its name. */
  const places = new Map<string, string>();
  for (const { name, exports } of TOPICS) for (const thing of exports) places.set(thing, `${name}.html#${thing}`);

  const linked = (code: string) =>
    highlighted(code, "typescript").replaceAll(/<[^>]*>|\b[A-Z]\w+\b/g, (part) => {
      const place = places.get(part);
      return place ? `<a href="${place}">${part}</a>` : part;
    });

  /** A comment's Markdown, with links to what it names. */
  const prose = (text: string) =>
    text.replaceAll(/\{@link ([\w.]+)\}/g, (_, path: string) => {
      const [thing = "", member] = path.split(".");
      const [page = ""] = (places.get(thing) ?? "").split("#");
      return `[\`${path}\`](${page}#${member ? path : thing})`;
    });

  const codes = new Set(exported.get("attnscope")?.get("ErrorCodes")?.members?.keys());
  const withCodes = (text: string) =>
    text.replaceAll(/`(\w+)`/g, (code, name: ts.__String) =>
      codes.has(name) ? `[${code}](api-errors.html#ErrorCodes.${name})` : code,
    );

  const comment = (symbol: ts.Symbol) => prose(ts.displayPartsToString(symbol.getDocumentationComment(checker)));

  function thrown(symbol: ts.Symbol): string {
    const tag = symbol.getJsDocTags(checker).find(({ name }) => name === "throws");
    return tag ? `Throws ${withCodes(prose(ts.displayPartsToString(tag.text)))}` : "";
  }

  function words(symbol: ts.Symbol): string {
    return markdown.render(`${comment(symbol)}\n\n${thrown(symbol)}`);
  }

  function page({ entry, title, intro = "", exports }: Topic): Reference {
    const sections: { id: string; title: string; level: number; text: string }[] = [];
    const place = (id: string, title: string, level: number, symbol: ts.Symbol) => {
      sections.push({ id, title, level, text: plain(comment(symbol)) });
    };

    const heading = (level: number, id: string, title: string) =>
      `<h${level} id="${id}"><a href="#${id}">${escapeHtml(title)}</a></h${level}>`;

    const properties = (thing: string, members: readonly ts.Symbol[]) => {
      if (members.length === 0) return "";
      const rows = members.map((member) => {
        const id = `${thing}.${member.name}`;
        place(id, member.name, 4, member);
        const isOptional = (member.flags & ts.SymbolFlags.Optional) !== 0;
        const type = linked(`${isOptional ? "?" : ""}: ${typeText(member)}`);
        return `<dt id="${id}"><a href="#${id}"><code>${escapeHtml(member.name)}</code></a><code class="type">${type}</code></dt><dd>${words(member)}</dd>`;
      });
      return `<dl class="members">${rows.join("\n")}</dl>`;
    };
    const method = (thing: string, member: ts.Symbol, prefix = "") => {
      const id = `${thing}.${member.name}`;
      place(id, `${member.name}()`, 3, member);
      return `${heading(3, id, `${prefix}${member.name}()`)}${code(callsOf(member))}${words(member)}`;
    };
    const code = (text: string) => `<pre class="signature"><code>${linked(text)}</code></pre>`;

    function section(name: string): string {
      const symbol = exported.get(entry)?.get(name);
      if (!symbol) throw new Error(`${entry} has no ${name}`);
      const isFunction = (symbol.flags & ts.SymbolFlags.Function) !== 0;
      place(name, isFunction ? `${name}()` : name, 2, symbol);
      const start = `${heading(2, name, isFunction ? `${name}()` : name)}`;
      if (isFunction) return `${start}${code(callsOf(symbol))}${words(symbol)}`;
      const node = symbol.declarations?.find(ts.isTypeAliasDeclaration);
      if (node && !ts.isTypeLiteralNode(node.type)) {
        return `${start}${words(symbol)}${code(`type ${node.name.text}${generics(node)} = ${aliased(node.type)};`)}`;
      }
      const isValue = (symbol.flags & ts.SymbolFlags.Variable) !== 0;
      const type = isValue ? checker.getTypeOfSymbol(symbol) : checker.getDeclaredTypeOfSymbol(symbol);
      const own = type.getProperties().filter(isTold);
      const isMethod = (member: ts.Symbol) =>
        (member.flags & ts.SymbolFlags.Method) !== 0 ||
        (isValue && checker.getTypeOfSymbol(member).getCallSignatures().length > 0);
      const constructors = symbol.members?.get("__constructor" as ts.__String);
      const made = constructors && isTold(constructors) && comment(constructors) ? constructors : undefined;
      const statics =
        symbol.flags & ts.SymbolFlags.Class
          ? checker
              .getTypeOfSymbol(symbol)
              .getProperties()
              .filter((member) => isTold(member) && isMethod(member))
          : [];
      return [
        start,
        words(symbol),
        made ? `${code(callsOf(made, name))}${words(made)}` : "",
        properties(
          name,
          own.filter((member) => !isMethod(member)),
        ),
        ...own.filter(isMethod).map((member) => method(name, member, isValue ? `${name}.` : "")),
        ...statics.map((member) => method(name, member, `${name}.`)),
      ].join("\n");
    }

    const content = exports.map(section).join("\n");
    const lead = intro && markdown.render(intro);
    return {
      html: `<h1 id="top">${title}</h1>\n${lead}${content}`,
      sections: [{ id: "top", title, level: 1, text: plain(intro) }, ...sections],
    };
  }

  return new Map(TOPICS.map((topic) => [topic.name, page(topic)]));
}

const HIDDEN = /^(__#|observedAttributes$|prototype$|(dis)?connectedCallback$|attributeChangedCallback$)/;

/** Of what the package declares, what is there for its users. */
function isTold(symbol: ts.Symbol): boolean {
  const declaration = symbol.declarations?.[0];
  if (!declaration || HIDDEN.test(symbol.name) || !declaration.getSourceFile().fileName.startsWith(dist)) return false;
  return (ts.getCombinedModifierFlags(declaration) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) === 0;
}

function typeText(symbol: ts.Symbol): string {
  const typed = symbol.declarations?.find((declaration) => "type" in declaration && declaration.type);
  // What a class sets at once has a value for a type.
  const node = typed
    ? (typed as ts.PropertyDeclaration).type
    : (symbol.valueDeclaration as ts.PropertyDeclaration).initializer;
  return oneLine(node?.getText() ?? "");
}

const WIDEST = 76;

/** The signatures of a function or method, one below the other. */
function callsOf(symbol: ts.Symbol, made?: string): string {
  const calls = (symbol.declarations ?? []).flatMap((declaration) => {
    const call = ts.isFunctionLike(declaration) ? declaration : (declaration as ts.PropertySignature).type;
    if (!call || !ts.isFunctionLike(call)) return [];
    const parameters = call.parameters.map((parameter) => oneLine(parameter.getText()));
    const start = `${made ? `new ${made}` : symbol.name}${generics(call)}`;
    const end = made ? "" : `: ${oneLine(call.type?.getText() ?? "void")}`;
    const line = `${start}(${parameters.join(", ")})${end}`;
    return line.length <= WIDEST ? line : `${start}(\n${parameters.map((text) => `  ${text},\n`).join("")})${end}`;
  });
  return calls.join("\n");
}

function generics({
  typeParameters,
}: {
  readonly typeParameters?: ts.NodeArray<ts.TypeParameterDeclaration> | undefined;
}) {
  const names = typeParameters?.map((parameter) => oneLine(parameter.getText())) ?? [];
  return names.length > 0 ? `<${names.join(", ")}>` : "";
}

/** What a name stands for; kinds of objects one a line. */
function aliased(type: ts.TypeNode): string {
  if (!ts.isUnionTypeNode(type)) return type.getText();
  const kinds = type.types.map((kind) => oneLine(kind.getText()));
  return type.types.some(ts.isTypeLiteralNode) ? kinds.map((kind) => `\n  | ${kind}`).join("") : kinds.join(" | ");
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ");
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
