// ColorBrewer's maps (https://colorbrewer2.org), between whose colours each channel follows a uniform cubic B-spline: those of
// d3-scale-chromatic, to the number, without the libraries that it stands on. A test holds them to it.

/** A colour for each part of a map, from 0 to 1. */
export type ColorMap = (t: number) => string;

const YELLOW_GREEN_BLUE = "ffffd9edf8b1c7e9b47fcdbb41b6c41d91c0225ea8253494081d58";
const RED_BLUE = "67001fb2182bd6604df4a582fddbc7f7f7f7d1e5f092c5de4393c32166ac053061";

const RED_GREEN_BLUE = [0, 1, 2] as const;

/** The spline's value at `u`, from 0 to 1, between the second and the third of four numbers. */
function between(u: number, before: number, from: number, to: number, after: number): number {
  const [u2, u3] = [u * u, u * u * u];
  return (
    ((1 - 3 * u + 3 * u2 - u3) * before +
      (4 - 6 * u2 + 3 * u3) * from +
      (1 + 3 * u + 3 * u2 - 3 * u3) * to +
      u3 * after) /
    6
  );
}

/** `hex` is six digits a colour. */
function colorMap(hex: string): ColorMap {
  const last = hex.length / 6 - 1;
  const channel = (color: number, of: number) =>
    Number.parseInt(hex.slice(6 * color + 2 * of, 6 * color + 2 * of + 2), 16);
  return (t) => {
    const at = Math.max(0, Math.min(1, t)) * last;
    const i = Math.min(last - 1, Math.floor(at));
    const parts = RED_GREEN_BLUE.map((of) => {
      const [from, to] = [channel(i, of), channel(i + 1, of)];
      // Beyond its ends the map goes on as straight as it came.
      const before = i > 0 ? channel(i - 1, of) : 2 * from - to;
      const after = i < last - 1 ? channel(i + 2, of) : 2 * to - from;
      return Math.round(between(at - i, before, from, to, after));
    });
    return `rgb(${parts.join(", ")})`;
  };
}

export const yellowGreenBlue = colorMap(YELLOW_GREEN_BLUE);
export const redBlue = colorMap(RED_BLUE);
