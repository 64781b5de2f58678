/** What every consumer computes; tests/packaging/numbers.mjs knows the answer. */
export async function answer({ mask }, engine) {
  const x = [
    [1, 0],
    [0, 1],
  ];
  const { weights } = await engine.scaledDotProductAttention(x, x, x, { mask: mask.causal() });
  const drawn = await engine.torchGenerator(42).rand([2]);
  const [read] = Object.values(await engine.readTensors("[[1, 2], [3, 4]]", { format: "json" }));
  return { weights: [...weights.data], drawn: [...drawn.data], read: [...read.data] };
}

/** What it computes on a graphics processor. */
export async function answerOnGpu(attnscope) {
  const engine = await attnscope.createEngine({ backend: "webgpu" });
  return { ...(await answer(attnscope, engine)), backend: engine.info.backend };
}
