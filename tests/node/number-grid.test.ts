import { expect, test } from "vitest";
import { edited } from "../../www/src/matrix-edit.ts";
import { atSize, gridOf, isTooLarge, parseNumber, writeNumber } from "../../www/src/number-grid.ts";
import { pastedCells } from "../../www/src/pasted.ts";

test("a number is written as the shortest decimal that means it", () => {
  const numbers = [0, 1, -1, 0.1, 1 / 3, 1e-8, 16777216, 3.4028235e38, 1e-45, Number.NaN, Infinity, -Infinity];
  for (const number of numbers) {
    const float = Math.fround(number);
    expect(parseNumber(writeNumber(float))).toBe(float);
  }
  expect(writeNumber(Math.fround(0.1))).toBe("0.1");
  expect(writeNumber(Math.fround(-2.5))).toBe("-2.5");
});

test("what is no number is none", () => {
  for (const typed of ["", " ", "abc", "1,5", "0x10", "1e", "--1", "1 2", "constructor"]) {
    expect(parseNumber(typed), typed).toBeNull();
  }
  expect(parseNumber(" −1.5 ")).toBe(-1.5);
  expect(parseNumber(".5")).toBe(0.5);
});

test("cells are pasted from spreadsheets and files", () => {
  expect(pastedCells("1\t2\r\n3\t4\r\n")).toEqual([
    ["1", "2"],
    ["3", "4"],
  ]);
  expect(pastedCells("1,2\n3,4")).toEqual([
    ["1", "2"],
    ["3", "4"],
  ]);
  expect(pastedCells(" 1  2 ")).toEqual([["1", "2"]]);
  expect(pastedCells("1\t\t3")).toEqual([["1", "", "3"]]);
});

test.each([
  ["semicolons and decimal commas", "0,5;0,25\r\n-1,5e-3;,5\r\n", ["0.5", "0.25"], ["-1.5e-3", ".5"]],
  ["tabs and decimal commas", "0,5\t0,25\n1\t−2,\n", ["0.5", "0.25"], ["1", "−2."]],
  ["semicolons and decimal points", "0.5;0.25\n1;2", ["0.5", "0.25"], ["1", "2"]],
  ["JSON", "[[0.5, 0.25], [1, -2e3]]", ["0.5", " 0.25"], ["1", " -2e3"]],
  ["NumPy", "[[0.5  0.25]\n [1.   0.  ]]\n", ["0.5", "0.25"], ["1.", "0."]],
  ["PyTorch", "tensor([[0.5, 0.25],\n        [1, 0]], device='cuda:0')", ["0.5", " 0.25"], ["1", " 0"]],
  ["an assignment", "W_Q = torch.tensor([[0.5, 0.25],\n    [1, 0]])", ["0.5", " 0.25"], ["1", " 0"]],
  ["a name", "权重 = [[0.5, 0.25], [1, 0]]", ["0.5", " 0.25"], ["1", " 0"]],
  ["a notebook's number", "Out[3]: \narray([[0.5, 0.25],\n       [1, 0]])", ["0.5", " 0.25"], ["1", " 0"]],
  ["what was printed with it", "layers[0].weight: [[0.5  0.25]\n [1.   0.  ]]", ["0.5", "0.25"], ["1.", "0."]],
  ["a parameter", "Parameter containing:\ntensor([[0.5, 0.25]], requires_grad=True)", ["0.5", " 0.25"]],
])("cells are pasted with %s", (_, pasted, ...rows) => {
  expect(pastedCells(pasted as string)).toEqual(rows);
  expect(rows.flat().map((cell) => parseNumber(cell as string))).not.toContain(null);
});

test("what only looks like a list, or like a number with a comma, stays as it is", () => {
  expect(pastedCells("1\t[a]\t3")).toEqual([["1", "[a]", "3"]]);
  expect(pastedCells("[1, 2]\t3")).toEqual([["[1, 2]", "3"]]);
  expect(pastedCells("[1] [2]")).toEqual([["1"], ["2"]]);
  expect(pastedCells(`a${" ".repeat(100_000)}`)).toHaveLength(1);
  expect(pastedCells("1,000,000\ta,b")).toEqual([["1,000,000", "a,b"]]);
});

test("digits that no float32 can hold are no number, and are told from what is none", () => {
  for (const typed of ["1e400", "-3.5e38", "1".repeat(400)]) {
    expect(parseNumber(typed), typed).toBeNull();
    expect(isTooLarge(typed), typed).toBe(true);
  }
  for (const typed of ["inf", "-∞", "abc", "3.4028235e38", "1e-400"]) expect(isTooLarge(typed), typed).toBe(false);
  expect(parseNumber("inf")).toBe(Infinity);
  const grid = edited(
    gridOf(1, 1, () => 7),
    [{ row: 0, column: 0, typed: "1e400" }],
  );
  expect(grid.values[0]).toBe(7);
  expect(grid.wrong).toEqual([{ row: 0, column: 0, typed: "1e400" }]);
});

test("an edit changes its cells only, and a wrong one keeps the number", () => {
  const grid = gridOf(2, 2, (row, column) => 2 * row + column);
  const next = edited(grid, [
    { row: 0, column: 1, typed: "7" },
    { row: 1, column: 0, typed: "abc" },
  ]);
  expect([...next.values]).toEqual([0, 7, 2, 3]);
  expect(next.wrong).toEqual([{ row: 1, column: 0, typed: "abc" }]);
  expect(edited(next, [{ row: 1, column: 0, typed: "5" }]).wrong).toEqual([]);
  expect([...grid.values]).toEqual([0, 1, 2, 3]);
});

test("numbers keep their place at another size", () => {
  const grid = gridOf(2, 2, (row, column) => 2 * row + column + 1);
  expect([...atSize(grid, 3, 3).values]).toEqual([1, 2, 0, 3, 4, 0, 0, 0, 0]);
  expect([...edited(grid, [{ row: 2, column: 0, typed: "9" }]).values]).toEqual([1, 2, 3, 4, 9, 0]);
});
