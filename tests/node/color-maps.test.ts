import { interpolateRdBu, interpolateYlGnBu } from "d3-scale-chromatic";
import { expect, test } from "vitest";
import { redBlue, yellowGreenBlue } from "../../js/views/color-maps.ts";

test.each([
  ["yellow, green, blue", yellowGreenBlue, interpolateYlGnBu],
  ["red, blue", redBlue, interpolateRdBu],
])("%s is the map of d3-scale-chromatic", (_, ours, theirs) => {
  for (let i = -10; i <= 4106; i++) expect(ours(i / 4096), String(i)).toBe(theirs(i / 4096));
});
