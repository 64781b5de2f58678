// What a user writes, and what the compiler knows of it.
import {
  AttnError,
  createEngine,
  type ForwardOptions,
  type ForwardResult,
  type LazyResult,
  type Mask,
  mask,
  type Tensor,
  Trace,
  tensor,
} from "attnscope";
import analysisWasm from "attnscope/analysis.wasm";
import widget from "attnscope/anywidget";
import wasm from "attnscope/engine.wasm";
import relaxed from "attnscope/engine-relaxed.wasm";
import filesWasm from "attnscope/files.wasm";
import type { Gpu } from "attnscope/gpu";
import { createEngine as createSlim, type SlimEngineOptions } from "attnscope/slim";
import * as views from "attnscope/views";
import "attnscope/elements";
import "attnscope/global";
import "attnscope/worker";

/** Fails to compile where the two are not the same type. */
const same = <A, B>(..._: (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? [] : [never]) => {};

const engine = await createEngine({ backend: "cpu", worker: () => new Worker("worker.js") });
const causal: Mask = mask.causal().and(mask.padding(2));
const x: Tensor = tensor([
  [1, 0],
  [0, 1],
]);
const mha = engine.multiHeadAttention({ dModel: 2, nHeads: 1, seed: 0 });

// What was asked for is there, what was not is null.
const plain = await mha.forward(x, { mask: causal });
same<typeof plain.weights, Tensor>();
same<typeof plain.trace, null>();
const traced = await mha.forward(x, { trace: true, needWeights: false });
same<typeof traced.weights, null>();
same<typeof traced.trace, Trace>();
const later: ForwardOptions = { trace: Math.random() < 0.5 };
const perhaps = await engine.transformerBlock({ dModel: 2, nHeads: 1 }).forward(x, later);
same<typeof perhaps.weights, Tensor | null>();
same<typeof perhaps.trace, Trace | null>();
const stack = await engine.transformer({ nLayers: 2, dModel: 2, nHeads: 1 }).forward(x, { trace: true });
same<typeof stack.weights, Tensor[]>();
const decoded = await engine.decoder({ nLayers: 2, dModel: 2, nHeads: 1 }).forward(x, x, { needWeights: false });
same<typeof decoded.crossWeights, null>();
const scaled = await engine.scaledDotProductAttention(x, x, x, { isCausal: true, trace: true });
same<typeof scaled.trace, Trace>();
traced.trace.stage("weights");

// What is decided as the program runs may be either, and what is undefined is left out.
const isLater = Math.random() < 0.5;
const either = await mha.forward(x, { lazy: isLater });
same<typeof either, LazyResult | ForwardResult<true, false>>();
const lazy = await mha.forward(x, { lazy: true, trace: true });
same<typeof lazy, LazyResult>();
const asked: { trace: boolean | undefined } = { trace: isLater ? true : undefined };
trace(await engine.scaledDotProductAttention(x, x, x, asked));
for (const module of [mha, engine.transformerBlock({ dModel: 2, nHeads: 1, seed: undefined })]) {
  const { trace } = await module.forward(x, { ...asked, maskFill: undefined, mask: undefined, reuse: undefined });
  same<typeof trace, Trace | null>();
}
trace(await engine.decoder({ nLayers: 1, dModel: 2, nHeads: 1 }).forward(x, x, { ...asked, memoryMask: undefined }));
function trace({ trace }: { trace: Trace | null }) {
  trace?.remask(null, { signal: undefined, isCausal: undefined });
  trace?.stage("weights", { layer: undefined });
}
await engine.ops.softmax(x, { axis: undefined });
await engine.readTensors(new Blob([]), { format: undefined });
await createEngine({ wasm, analysisWasm, filesWasm, gpu: undefined, threads: undefined, worker: undefined });
await createSlim({ wasm: relaxed, worker: undefined });

// The other entries.
widget.render;
same<ReturnType<typeof attnscope.mask.causal>, Mask>();
attnscope.views.number(0);
same<Gpu["isFallback"], boolean>();

same<typeof engine.info.kernel, "scalar" | "simd128" | "relaxed-simd">();
const slim: SlimEngineOptions = { wasm: new Uint8Array(), worker: false };
await createSlim(slim);
try {
  tensor([[1], [1, 2]]);
} catch (error) {
  if (error instanceof AttnError && error.code === "invalid_tensor") views.number(0);
}
const heads = document.createElement("attn-heads");
heads.weights = plain.weights;
// Properties take what attributes hold, and nothing; events are known with what they tell.
heads.tokens = "the cat";
heads.weights = "[[1, 0], [0.5, 0.5]]";
heads.weights = heads.selection = undefined;
same<typeof heads.tokens, readonly string[]>();
heads.addEventListener("select", ({ detail }) => same<typeof detail.query, number>());
heads.addEventListener("error", ({ detail }) => same<typeof detail, AttnError>());
heads.addEventListener("click", ({ clientX }) => same<typeof clientX, number>());
const scope = document.createElement("attn-scope");
const keep = ({ detail }: CustomEvent<{ state: string }>) => views.visible(detail.state);
scope.addEventListener("statechange", keep, { once: true });
scope.removeEventListener("statechange", keep);
scope.addEventListener("select", ({ detail }) => same<typeof detail.stage, string>());
document
  .querySelector("attn-mask")
  ?.addEventListener("maskchange", ({ detail }) => same<typeof detail.allowed, Uint8Array>());

// @ts-expect-error: nothing of the sort is told
scope.addEventListener("statechange", ({ detail }) => detail.place);
// @ts-expect-error: an option that does not exist
engine.multiHeadAttention({ dModel: 2, heads: 1 });
// @ts-expect-error: an option that does not exist
mha.forward(x, { trace: true, maskfill: 0 });
// @ts-expect-error: a value that is none of the names
engine.transformerBlock({ dModel: 2, nHeads: 1, activation: "gelu_fast" });
// @ts-expect-error: a stage that does not exist
traced.trace.stage("weight");
// @ts-expect-error: a code that does not exist
new AttnError("bad", "");
// @ts-expect-error: a trace is what a pass gives
new Trace();
// @ts-expect-error: nothing was kept
plain.trace.stages;
// @ts-expect-error: without the WebAssembly
createSlim({});
// @ts-expect-error: attnscope/slim has no worker of its own
createSlim({ wasm: "engine.wasm", worker: true });
