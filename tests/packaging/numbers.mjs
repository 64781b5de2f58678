import { expect } from "vitest";

/** Checks what consumers/answer.js gave: softmax of [0, 1] / √2, and torch.manual_seed(42); torch.rand(2). */
export function expectTheNumbers({ weights, drawn, read }) {
  const second = 1 / (1 + Math.exp(-Math.SQRT1_2));
  const expected = { weights: [1, 0, 1 - second, second], drawn: [0.8822692633, 0.9150039554], read: [1, 2, 3, 4] };
  for (const [name, found] of Object.entries({ weights, drawn, read })) {
    expect(found.map((x, i) => Math.abs(x - expected[name][i]) < 1e-6)).toEqual(expected[name].map(() => true));
  }
}
