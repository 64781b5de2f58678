const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Text for XML; the two characters it may not hold become replacement marks. */
function escaped(text: string): string {
  return text.replace(/[\ufffe\uffff]/g, "\ufffd").replace(/[&<>"]/g, (character) => ESCAPES[character] ?? "");
}

const rounded = (value: number) => String(Math.round(value * 100) / 100);

/** Attributes by name; undefined ones are left out. */
type Attributes = Readonly<Record<string, string | number | undefined>>;

function opening(name: string, attributes: Attributes): string {
  const parts = Object.entries(attributes).map(([key, value]) => {
    if (value === undefined) return "";
    return ` ${key}="${typeof value === "number" ? rounded(value) : escaped(value)}"`;
  });
  return `<${name}${parts.join("")}`;
}

/** An SVG element of others. */
export function node(name: string, attributes: Attributes, children: readonly string[] = []): string {
  return children.length === 0
    ? `${opening(name, attributes)}/>`
    : `${opening(name, attributes)}>\n${children.join("\n")}\n</${name}>`;
}

/** An SVG element of text. */
export function text(content: string, attributes: Attributes, name = "text"): string {
  return `${opening(name, attributes)}>${escaped(content)}</${name}>`;
}

/** A part of a picture, drawn from its upper left corner. */
export interface Part {
  readonly width: number;
  readonly height: number;
  readonly content: readonly string[];
}

export interface Colors {
  readonly dark: boolean;
  readonly ink: string;
  readonly paper: string;
}

export const colorsOf = (dark: boolean): Colors =>
  dark ? { dark, ink: "#e9e7e2", paper: "#14171c" } : { dark, ink: "#171a21", paper: "#fdfcfa" };

export const placed = (x: number, y: number, { content }: Part): string =>
  node("g", { transform: `translate(${rounded(x)} ${rounded(y)})` }, content);

/** The fill of what a mask hides. */
export const HATCH = "url(#attn-hidden)";

/** The typeface, where it is there, and what stands for it. */
export const FONT = "'IBM Plex Sans', system-ui, 'Noto Sans CJK SC', sans-serif";

const MARGIN = 12;

/** A whole picture: its parts from top to bottom, under one name. */
export function pictureOf(name: string, parts: readonly Part[], { ink, paper }: Colors): string {
  const width = Math.max(...parts.map((part) => part.width)) + 2 * MARGIN;
  const height = parts.reduce((sum, part) => sum + part.height + MARGIN, MARGIN);
  let top = MARGIN;
  const content = parts.map((part) => {
    const y = top;
    top += part.height + MARGIN;
    return placed(MARGIN, y, part);
  });
  const hatch = { id: "attn-hidden", width: 5, height: 5, patternUnits: "userSpaceOnUse" };
  const stroke = { d: "M0 5L5 0M-1 1L1 -1M4 6L6 4", stroke: ink, "stroke-opacity": 0.32, "stroke-width": 0.9 };
  return node(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg",
      viewBox: `0 0 ${rounded(width)} ${rounded(height)}`,
      width,
      height,
      role: "img",
      fill: ink,
      "font-family": FONT,
      "font-size": 12,
    },
    [
      text(name, {}, "title"),
      node("defs", {}, [node("pattern", hatch, [node("path", stroke)])]),
      node("rect", { width, height, fill: paper }),
      ...content,
    ],
  );
}
