import { isDark } from "./palette.ts";

/** The page's own colours and typeface, read from the element a view stands in. */
export interface Theme {
  readonly dark: boolean;
  readonly ink: string;
  readonly paper: string;
  readonly font: string;
}

export function themeOf(element: HTMLElement): Theme {
  const style = getComputedStyle(element);
  const dark = isDark(style.color);
  return { dark, ink: style.color, paper: dark ? "#14171c" : "#ffffff", font: style.fontFamily };
}

/** The sign of a hidden cell: fine diagonal lines, no colour. */
export function hatch(context: CanvasRenderingContext2D, theme: Theme, scale: number): CanvasPattern | null {
  const size = Math.round(5 * scale);
  const tile = document.createElement("canvas");
  tile.width = size;
  tile.height = size;
  const lines = tile.getContext("2d");
  if (!lines) return null;
  lines.strokeStyle = theme.ink;
  lines.globalAlpha = theme.dark ? 0.34 : 0.3;
  lines.lineWidth = Math.max(0.8, 0.9 * scale);
  lines.beginPath();
  for (const shift of [-size, 0, size]) {
    lines.moveTo(shift, size);
    lines.lineTo(shift + size, 0);
  }
  lines.stroke();
  const pattern = context.createPattern(tile, "repeat");
  pattern?.setTransform(new DOMMatrix().scale(1 / scale));
  return pattern;
}
