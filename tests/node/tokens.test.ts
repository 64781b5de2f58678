import { describe, expect, test } from "vitest";
import { inOrder, moved, rearranged, SPECIAL_TOKENS, shortened, tokenize } from "../../www/src/tokens.ts";

describe("special tokens", () => {
  test.each([...SPECIAL_TOKENS, "<pad>", "<bos>", "<eos>", "<|endoftext|>", "<|im_start|>"])(
    "%s is one token",
    (token) => {
      expect(tokenize(`${token} the cat${token}.`)).toEqual([token, "the", "cat", token, "."]);
    },
  );

  test.each(["</script>", "<b>", "[x]", "< s >"])("%s is none", (text) => {
    expect(tokenize(text).length).toBeGreaterThan(2);
  });
});

const LINES = [
  "the cat sat on the mat",
  "The cat, the mat. It isn't!",
  "我爱猫，猫不爱我。",
  "a 猫 b",
  "a עברית b العربية",
  "a 👩‍👩‍👧 e\u0301 b",
  "a   b\nc",
  "[CLS] a b [SEP]",
  "don't stop 3.14 x_y",
];

describe("a line in another order", () => {
  test.each(LINES)("%s: every token moved to every place is that line's tokens in that order", (line) => {
    const tokens = tokenize(line);
    for (const from of inOrder(tokens.length)) {
      for (const to of inOrder(tokens.length)) {
        const order = moved(tokens.length, from, to);
        const after = rearranged(line, order);
        if (after === null) continue;
        expect(tokenize(after)).toEqual(order.map((i) => tokens[i]));
      }
    }
  });

  test("only what cannot be told apart is refused", () => {
    expect(rearranged("a   b   c", [1, 3, 0, 2, 4])).toBeNull();
    const refused = LINES.filter((line) => !/\s{2}|\n/.test(line)).flatMap((line) => {
      const count = tokenize(line).length;
      return inOrder(count).filter((i) => rearranged(line, moved(count, i, 0)) === null);
    });
    expect(refused).toEqual([]);
  });

  test("stays as it was written where nothing moved", () => {
    for (const line of ["the cat sat on the mat", "The cat, the mat. It isn't!", "我爱猫，猫不爱我。"]) {
      expect(rearranged(line, inOrder(tokenize(line).length))).toBe(line);
    }
  });

  test("takes new tokens, repeats and leaves out", () => {
    expect(rearranged("the cat sat", ["[CLS]", 0, 1, 2, "[SEP]"])).toBe("[CLS] the cat sat [SEP]");
    expect(rearranged("the cat sat", [0, 1, 2, 0, 1, 2])).toBe("the cat sat the cat sat");
    expect(rearranged("the cat sat", [0, 2])).toBe("the sat");
    expect(rearranged("我爱猫", [2, 1, 0])).toBe("猫爱我");
  });
});

test("a line is cut where a token ends", () => {
  expect(shortened("the cat sat", 11)).toBe("the cat sat");
  expect(shortened("the cat sat", 10)).toBe("the cat");
  expect(shortened("the cat sat", 7)).toBe("the cat");
  expect(shortened("我爱猫", 2)).toBe("我爱");
  expect(shortened("a 👩‍👩‍👧 b", 5)).toBe("a");
  expect(shortened("a\n\nb", 2)).toBe("a\n");
  for (const line of LINES) {
    const tokens = tokenize(line);
    for (let most = 8; most < line.length; most++) {
      const kept = tokenize(shortened(line, most));
      expect(kept).toEqual(tokens.slice(0, kept.length));
    }
  }
});

test("where not even one token fits, a part of it does, and of no character half", () => {
  expect(shortened("w".repeat(30), 20)).toBe("w".repeat(20));
  expect(shortened("\u{20000}\u{20001}".repeat(9), 1)).toBe("");
});
