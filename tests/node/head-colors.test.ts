import { describe, expect, test } from "vitest";
import { headColor } from "../../js/views/head-colors.ts";

type Vector = readonly [number, number, number];
type Matrix = readonly [Vector, Vector, Vector];

// How eyes that lack one kind of cone see linear RGB (Machado et al. 2009, severity 1).
const EYES: Record<string, Matrix> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protan: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deutan: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritan: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

const apply = (matrix: Matrix, [a, b, c]: Vector) =>
  matrix.map(([x, y, z]) => x * a + y * b + z * c) as unknown as Vector;

function linear(hex: string): Vector {
  return [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as unknown as Vector;
}

function oklab(rgb: Vector): Vector {
  const cones = apply(
    [
      [0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566],
      [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    rgb.map((part) => Math.min(1, Math.max(0, part))) as unknown as Vector,
  );
  return apply(
    [
      [0.2104542553, 0.793617785, -0.0040720468],
      [1.9779984951, -2.428592205, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.808675766],
    ],
    cones.map(Math.cbrt) as unknown as Vector,
  );
}

const luminance = ([red, green, blue]: Vector) => 0.2126 * red + 0.7152 * green + 0.0722 * blue;

describe.each([
  { theme: "light", dark: false, paper: "#fdfcfa" },
  { theme: "dark", dark: true, paper: "#14171c" },
])("sixteen heads on a $theme page", ({ dark, paper }) => {
  const colors = Array.from({ length: 16 }, (_, head) => headColor(head, dark));

  test.each(Object.entries(EYES))("stay apart for %s eyes", (_, eyes) => {
    const seen = colors.map((color) => oklab(apply(eyes, linear(color))));
    for (const [i, one] of seen.entries()) {
      for (const other of seen.slice(0, i)) {
        // A difference of 0.02 is just noticed.
        expect(Math.hypot(one[0] - other[0], one[1] - other[1], one[2] - other[2])).toBeGreaterThan(0.07);
      }
    }
  });

  test("stand out from the page", () => {
    for (const color of colors) {
      const [low = 0, high = 0] = [luminance(linear(color)), luminance(linear(paper))].sort((a, b) => a - b);
      expect((high + 0.05) / (low + 0.05)).toBeGreaterThanOrEqual(3);
    }
  });
});
