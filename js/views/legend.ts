import { format } from "d3-format";
import { type PaletteName, palette } from "./palette.ts";
import { adoptStyles } from "./styles.ts";
import { hatch, themeOf } from "./theme.ts";
import type { View } from "./view.ts";

export interface LegendOptions {
  readonly palette: PaletteName;
  readonly domain: readonly [number, number];
  /** What the hatching means; null where nothing is hidden. */
  readonly hidden: string | null;
}

const ends = format(".2~f");

const WIDTH = 100;
const HEIGHT = 9;

function canvas(width: number): [HTMLCanvasElement, CanvasRenderingContext2D] {
  const ratio = window.devicePixelRatio || 1;
  const element = document.createElement("canvas");
  element.width = width * ratio;
  element.height = HEIGHT * ratio;
  element.style.inlineSize = `${width}px`;
  element.style.blockSize = `${HEIGHT}px`;
  element.setAttribute("aria-hidden", "true");
  const context = element.getContext("2d") as CanvasRenderingContext2D;
  context.scale(ratio, ratio);
  return [element, context];
}

/** What the colours of a heat map mean. */
export function legend(element: HTMLElement, start: LegendOptions): View<LegendOptions> {
  adoptStyles(element);
  let options = start;
  const root = document.createElement("div");
  root.className = "attn-legend";
  element.append(root);

  function show(): void {
    const theme = themeOf(element);
    const [ramp, colors] = canvas(WIDTH);
    const { css } = palette(options.palette, theme.dark);
    css.forEach((color, i) => {
      colors.fillStyle = color;
      colors.fillRect((i * WIDTH) / css.length, 0, WIDTH / css.length + 0.5, HEIGHT);
    });
    const [low, high] = options.domain;
    const parts: (Node | string)[] = [ends(low), ramp, ends(high)];
    if (options.hidden !== null) {
      const [swatch, lines] = canvas(18);
      lines.fillStyle = hatch(lines, theme, window.devicePixelRatio || 1) ?? theme.ink;
      lines.fillRect(0, 0, 18, HEIGHT);
      swatch.className = "attn-legend-hidden";
      parts.push(swatch, options.hidden);
    }
    root.replaceChildren(
      ...parts.map((part) => {
        if (typeof part !== "string") return part;
        const text = document.createElement("span");
        text.textContent = part;
        return text;
      }),
    );
  }

  show();
  return {
    update(change) {
      options = { ...options, ...change };
      show();
    },
    destroy() {
      root.remove();
    },
  };
}
