import type { Shown } from "./heat-picture.ts";
import { textWidth } from "./labels.ts";
import { endsOf, OUTSIDE } from "./legend.ts";
import { css, palette, STEPS } from "./palette.ts";
import { outsideColors } from "./scale.ts";
import { type Colors, HATCH, node, type Part, text } from "./svg.ts";

const RAMP = 128;
const HEIGHT = 10;
const GAP = 6;

/** The legend of a picture's colours; `hidden` says what the hatching means, null where there is none. */
export function legendSvg(shown: Shown, hidden: string | null, rowMaximum: string, { dark, ink }: Colors): Part {
  const content: string[] = [];
  let x = 0;
  const write = (words: string) => {
    content.push(text(words, { x, y: HEIGHT }));
    x += textWidth(words) + GAP;
  };
  const swatch = (fill: string) => {
    content.push(
      node("rect", { x: x + GAP, y: 1, width: 18, height: HEIGHT, fill, stroke: ink, "stroke-opacity": 0.25 }),
    );
    x += 18 + 2 * GAP;
  };
  const [low, high, aside] = endsOf(shown, rowMaximum);
  write(low);
  const colors = palette(shown.palette, dark).css;
  for (let i = 0; i < RAMP; i++) {
    const fill = colors[Math.round((i * (STEPS - 1)) / (RAMP - 1))] ?? ink;
    // A little wider than its step, so that no gap shows between two.
    content.push(node("rect", { x: x + i, y: 1, width: i < RAMP - 1 ? 1.5 : 1, height: HEIGHT, fill }));
  }
  x += RAMP + GAP;
  write(high);
  if (aside) write(aside);
  for (const [key, name] of OUTSIDE) {
    if (!shown.outside[key]) continue;
    swatch(css(outsideColors(dark)[key]));
    write(name);
  }
  if (hidden !== null) {
    swatch(HATCH);
    write(hidden);
  }
  return { width: x, height: HEIGHT + 4, content };
}
