import { expect, test } from "vitest";
import { type ColorScale, scaleTo, stepOf, thresholds } from "../../js/views/scale.ts";

const word = new DataView(new ArrayBuffer(4));

/** As src/shaders/picture.wgsl orders numbers. */
function ordered(value: number): number {
  word.setFloat32(0, value);
  const bits = word.getUint32(0);
  return bits >>> 31 === 1 ? ~bits >>> 0 : bits + 2 ** 31;
}

const scales: [string, ColorScale][] = [
  ["weights", scaleTo(1, "sequential", "linear")],
  ["small weights", scaleTo(3e-7, "sequential", "linear")],
  ["scores", scaleTo(17.3, "diverging", "linear")],
  ["powers of ten", scaleTo(0.7, "sequential", "log")],
  ["powers of ten of both signs", scaleTo(250, "diverging", "log")],
  ["shares of a row", scaleTo(5, "diverging", "row")],
  ["cut off", { palette: "sequential", kind: "linear", domain: [-0.3, 0.125] }],
  ["a single value", { palette: "sequential", kind: "linear", domain: [2, 2] }],
];

test.each(scales)("%s: comparing with thresholds gives every number's step", (_, scale) => {
  const from = thresholds(scale);
  expect(from).toEqual(Uint32Array.from(from).sort());
  const numbers = [0, -0, 1, -1, 3.4028234663852886e38, -3.4028234663852886e38, 1e-45, -1e-45];
  // About each step's start, and in between.
  const [low, high] = scale.domain;
  for (let i = -20; i <= 2 * 256 + 20; i++) numbers.push(low + ((high - low) * i) / 512);
  for (let i = 0; i < 2000; i++) numbers.push(10 ** (((i * 7919) % 90) - 50) * Math.cos(i));
  for (const number of from) {
    for (const place of [number - 1, number, number + 1]) {
      word.setUint32(0, place >= 2 ** 31 ? place - 2 ** 31 : ~place >>> 0);
      const value = word.getFloat32(0);
      if (Number.isFinite(value)) numbers.push(value);
    }
  }
  // What is not finite has colours of its own.
  for (const value of numbers.map(Math.fround).filter(Number.isFinite)) {
    expect(from.filter((start) => start <= ordered(value)).length, String(value)).toBe(stepOf(value, scale));
  }
});
