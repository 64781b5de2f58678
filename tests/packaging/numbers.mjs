import { expect } from "vitest";

/** Checks what consumers/answer.js gave: softmax of [0, 1] / √2 and its entropy, torch.manual_seed(42); torch.rand(2),
 * and what was read and loaded. */
export function expectTheNumbers(given) {
  const second = 1 / (1 + Math.exp(-Math.SQRT1_2));
  const entropy = -(1 - second) * Math.log(1 - second) - second * Math.log(second);
  const expected = {
    weights: [1, 0, 1 - second, second],
    drawn: [0.8822692633, 0.9150039554],
    read: [1, 2, 3, 4],
    entropy: [0, entropy],
    loaded: [5, 6, 7, 8],
  };
  for (const [name, numbers] of Object.entries(expected)) {
    expect(
      given[name]?.map((x, i) => Math.abs(x - numbers[i]) < 1e-6),
      name,
    ).toEqual(numbers.map(() => true));
  }
}
