import { AttnError, createEngine, type Mask, mask, type Tensor, tensor } from "attnscope";
import * as views from "attnscope/views";

const engine = await createEngine({ backend: "cpu" });
const causal: Mask = mask.causal().and(mask.padding(2));
const x: Tensor = tensor([
  [1, 0],
  [0, 1],
]);
const mha = engine.multiHeadAttention({ dModel: 2, nHeads: 1, seed: 0 });
const { output, weights, trace } = await mha.forward(x, { mask: causal, trace: true });
const first: number | undefined = output.data[0];
const shape: readonly number[] | undefined = weights?.shape;
const stages = trace?.stages;

// @ts-expect-error: an option that does not exist
engine.multiHeadAttention({ dModel: 2, heads: 1 });

export { AttnError, first, shape, stages, views };
