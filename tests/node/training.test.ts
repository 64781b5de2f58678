// Passes in training: the draws of dropout are PyTorch's, in PyTorch's order. Recorded by tests/golden/generate_training.py.
import { readFileSync } from "node:fs";
import { createEngine, type NestedArray, tensor } from "attnscope";
import { expect, test } from "vitest";

interface Recorded {
  seed: number;
  cases: Record<string, { inputs: NestedArray[]; params: Record<string, NestedArray>; output: NestedArray }>;
}

const { seed, cases } = JSON.parse(
  readFileSync(new URL("../golden/training.json", import.meta.url), "utf8"),
) as Recorded;
const engine = await createEngine();
const torch = { dModel: 8, nHeads: 2, dFf: 12, dropout: 0.2, attentionDropout: 0.2, init: "torch" } as const;

test.each([
  ["block", () => engine.transformerBlock({ dModel: 8, nHeads: 2, dropout: 0.1 })],
  ["encoder", () => engine.transformerBlock(torch)],
  ["decoder", () => engine.decoderBlock(torch)],
] as const)("%s", async (name, make) => {
  const { inputs, params, output } = cases[name] as Recorded["cases"][string];
  const module = make();
  await module.loadStateDict(params);
  const options = { training: true, generator: engine.torchGenerator(seed) };
  const [x, memory] = inputs as [NestedArray, NestedArray];
  const ours =
    memory === undefined
      ? await (module as ReturnType<typeof engine.transformerBlock>).forward(x, options)
      : await (module as ReturnType<typeof engine.decoderBlock>).forward(x, memory, options);
  const theirs = tensor(output);
  expect(ours.output.shape).toEqual(theirs.shape);
  for (const [i, number] of theirs.data.entries()) {
    expect(Math.abs((ours.output.data[i] as number) - number)).toBeLessThan(2e-6);
  }
});
