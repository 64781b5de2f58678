// Declarations of the package's types as text.
import { fileURLToPath } from "node:url";
import ts from "typescript";

/** Where the published types lie. */
export const DIST = fileURLToPath(new URL("../../dist/", import.meta.url)).replaceAll("\\", "/");

const HIDDEN =
  /^(#|observedAttributes$|prototype$|(dis)?connectedCallback$|attributeChangedCallback$|(add|remove)EventListener$)/;

/** Of what the package declares, what is there for its users. */
export function isTold(symbol: ts.Symbol): boolean {
  const declaration = symbol.declarations?.[0];
  if (!declaration || HIDDEN.test(symbol.name) || !declaration.getSourceFile().fileName.startsWith(DIST)) return false;
  return (ts.getCombinedModifierFlags(declaration) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) === 0;
}

/** The type of a property. */
export function typeText(symbol: ts.Symbol): string {
  const typed = symbol.declarations?.find((declaration) => "type" in declaration && declaration.type);
  // What a class sets at once has a value for a type.
  const node = typed
    ? (typed as ts.PropertyDeclaration).type
    : (symbol.valueDeclaration as ts.PropertyDeclaration).initializer;
  // That an option may be undefined goes without saying.
  return oneLine(node?.getText() ?? "").replace(/ \| undefined$/, "");
}

const WIDEST = 76;

/** The signatures of a function or method, one below the other. */
export function callsOf(symbol: ts.Symbol, made?: string): string {
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

function generics({ typeParameters }: ts.SignatureDeclaration | ts.TypeAliasDeclaration): string {
  const names = typeParameters?.map((parameter) => oneLine(parameter.getText())) ?? [];
  return names.length > 0 ? `<${names.join(", ")}>` : "";
}

/** What a name stands for; kinds of objects one a line. */
export function aliasText(node: ts.TypeAliasDeclaration): string {
  return `type ${node.name.text}${generics(node)} = ${meant(node.type)};`;
}

function meant(type: ts.TypeNode): string {
  if (!ts.isUnionTypeNode(type)) return type.getText();
  const kinds = type.types.map((kind) => oneLine(kind.getText()));
  return type.types.some(ts.isTypeLiteralNode) ? kinds.map((kind) => `\n  | ${kind}`).join("") : kinds.join(" | ");
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}
