import { type PictureView, png } from "./exported.ts";
import { colorsOf, FONT, node, text } from "./svg.ts";

/** Something whose picture can be saved. */
export type Pictured = Pick<PictureView<never>, "toSvg" | "toPng">;

/** A picture under a heading. */
export interface Headed {
  /** What stands above it. */
  readonly heading: string;
  /** A view, or anything with `toSvg` and `toPng`. */
  readonly picture: Pictured;
}

const HEADING = 26;

/** Several pictures as one, from left to right, each under its heading. */
export function sideBySide(pictures: readonly Headed[], dark: boolean): Pictured {
  function toSvg(): string {
    const { ink, paper } = colorsOf(dark);
    let width = 0;
    let height = 0;
    const children = pictures.flatMap(({ heading, picture }) => {
      const svg = picture.toSvg();
      const [, own = "0", tall = "0"] = / width="([\d.]+)" height="([\d.]+)"/.exec(svg) ?? [];
      const x = width;
      width += Number(own);
      height = Math.max(height, HEADING + Number(tall));
      const title = text(heading, { x: x + 12, y: 20, "font-size": 13, "font-weight": 600 });
      return [title, svg.replace("<svg", `<svg x="${x}" y="${HEADING}"`)];
    });
    return node(
      "svg",
      {
        xmlns: "http://www.w3.org/2000/svg",
        viewBox: `0 0 ${width} ${height}`,
        width,
        height,
        role: "img",
        fill: ink,
        "font-family": FONT,
      },
      [
        text(pictures.map(({ heading }) => heading).join(", "), {}, "title"),
        node("rect", { width, height, fill: paper }),
        ...children,
      ],
    );
  }
  return { toSvg, toPng: () => png(toSvg()) };
}
