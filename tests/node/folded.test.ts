import { expect, test } from "vitest";
import { folded, unfolded } from "../../www/src/folded.ts";

const row = (length: number) => `[${Array.from({ length }, (_, i) => i / 8 - 1).join(", ")}]`;
const rest = "\nlayers[0].x = t[:, None]\n".padEnd(2000, "#");
const name = (numbers: number) => `<${numbers}>`;
const shownOf = (code: string) =>
  folded(code, name)
    .map(({ shown }) => shown)
    .join("");

test("a short program is shown as it is", () => {
  const code = `x = torch.tensor(${row(40)})`;
  expect(shownOf(code)).toBe(code);
});

test("of a long program only the long lists are folded", () => {
  const matrix = `[${[row(10), row(10)].join(",\n    ")}]`;
  const code = `x = torch.tensor(${matrix}).float()\nb = ${row(16)}\nm = [float("-inf"), ${row(17).slice(1)}${rest}`;
  const shown = `x = torch.tensor([[-1, -0.875, -0.75<20>]]).float()\nb = ${row(16)}\nm = [float("-inf"), -1, -0.875<18>]${rest}`;
  expect(shownOf(code).replaceAll(", <", "<")).toBe(shown);
});

test("what is selected is unfolded, and nothing else", () => {
  const list = row(20);
  const code = `a = ${list}\nb = 1${rest}`;
  const stretches = folded(code, name);
  const shown = shownOf(code);
  expect(unfolded(stretches, 0, shown.length)).toBe(code);
  expect(unfolded(stretches, 2, shown.indexOf("\n"))).toBe(`= ${list}`);
  expect(unfolded(stretches, shown.indexOf("b = 1"), shown.indexOf("b = 1") + 5)).toBe("b = 1");
  const [hidden] = /(?<=-0.75).*(?=])/.exec(list) ?? [];
  expect(unfolded(stretches, shown.indexOf("<") + 1, shown.indexOf("<") + 2)).toBe(hidden);
});
