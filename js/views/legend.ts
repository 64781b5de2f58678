import { format } from "d3-format";
import type { Outside } from "../device.ts";
import { checked } from "./checked.ts";
import { css, type PaletteName, palette, STEPS } from "./palette.ts";
import { type ColorScale, DECADES, outsideColors, type ScaleKind } from "./scale.ts";
import { adoptStyles } from "./styles.ts";
import { hatch, themeOf } from "./theme.ts";
import type { View } from "./view.ts";

/** Options of {@link legend}. */
export interface LegendOptions {
  /** The colours that it explains. */
  readonly palette: PaletteName;
  /** The values at the two ends of the palette. */
  readonly domain: readonly [number, number];
  /** How numbers become colours; linear by default. */
  readonly kind?: ScaleKind;
  /** What there is beside finite numbers, so that its colours are named. */
  readonly outside?: Outside | null;
  /** What the hatching means; null where nothing is hidden. */
  readonly hidden: string | null;
  /** The end of a scale by rows; "row maximum" by default. */
  readonly rowMaximum?: string;
}

const short = format(".2~f");
const power = (value: number) => format(".0~e")(value).replace("e+", "e");

const WIDTH = 100;
const HEIGHT = 9;

export const OUTSIDE = [
  ["minus", "−∞"],
  ["plus", "+∞"],
  ["nan", "NaN"],
] as const;

/** A value at an end of a legend or between them. */
function endText(value: number): string {
  const size = Math.abs(value);
  if (size === 0 || (size >= 0.01 && size < 1e5)) return short(value);
  return power(value);
}

/** The magnitude at which a logarithmic scale begins. */
const floorOf = ({ domain: [, high] }: ColorScale) => high / 10 ** DECADES;

/** The texts at a legend's two ends, and one more beside a logarithmic scale with two sides. */
export function endsOf(scale: ColorScale, rowMaximum: string): readonly [string, string, string?] {
  const [low, high] = scale.domain;
  if (scale.kind === "row") return [low < 0 ? `−${rowMaximum}` : "0", rowMaximum];
  if (scale.kind === "linear") return [endText(low), endText(high)];
  // What is smaller than a logarithmic scale reaches looks like 0, and the legend says from where on.
  if (scale.palette === "sequential") return [`≤ ${endText(floorOf(scale))}`, endText(high)];
  return [endText(low), endText(high), `(±${endText(floorOf(scale))} = 0)`];
}

function canvas(width: number): [HTMLCanvasElement, CanvasRenderingContext2D] {
  const ratio = window.devicePixelRatio || 1;
  const element = document.createElement("canvas");
  element.width = Math.round(width * ratio);
  element.height = Math.round(HEIGHT * ratio);
  element.style.inlineSize = `${width}px`;
  element.style.blockSize = `${HEIGHT}px`;
  element.setAttribute("aria-hidden", "true");
  const context = element.getContext("2d") as CanvasRenderingContext2D;
  context.scale(ratio, ratio);
  return [element, context];
}

const read = (options: LegendOptions) => checked(options, ["palette", "domain"]);

/**
 * What the colours of a heat map mean.
 *
 * @throws AttnError `invalid_option`
 */
export function legend(element: HTMLElement, start: LegendOptions): View<LegendOptions> {
  let options = read(start);
  adoptStyles(element);
  const root = document.createElement("div");
  root.className = "attn-legend";
  element.append(root);

  function swatch(name: string, draw: (context: CanvasRenderingContext2D) => void): HTMLSpanElement {
    const [made, context] = canvas(18);
    draw(context);
    context.fillRect(0, 0, 18, HEIGHT);
    const named = document.createElement("span");
    named.className = "attn-legend-swatch";
    named.append(made, name);
    return named;
  }

  let shown = "";

  function show(): void {
    const theme = themeOf(element);
    const now = JSON.stringify([options, theme]);
    if (now === shown) return;
    shown = now;
    const { kind = "linear", outside, hidden, rowMaximum = "row maximum" } = options;
    const [ramp, colors] = canvas(WIDTH);
    palette(options.palette, theme.dark).css.forEach((color, i) => {
      colors.fillStyle = color;
      colors.fillRect((i * WIDTH) / STEPS, 0, WIDTH / STEPS + 0.5, HEIGHT);
    });
    const scale = { palette: options.palette, domain: options.domain, kind };
    const [low, high, aside] = endsOf(scale, rowMaximum);
    const parts: (Node | string)[] = [low, ramp, high];
    if (aside) parts.push(aside);
    for (const [key, name] of OUTSIDE) {
      if (!outside?.[key]) continue;
      const color = css(outsideColors(theme.dark)[key]);
      parts.push(
        swatch(name, (context) => {
          context.fillStyle = color;
        }),
      );
    }
    if (hidden !== null) {
      parts.push(
        swatch(hidden, (context) => {
          context.fillStyle = hatch(context, theme, window.devicePixelRatio || 1) ?? theme.ink;
        }),
      );
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
      options = read({ ...options, ...change });
      show();
    },
    destroy() {
      root.remove();
    },
  };
}
