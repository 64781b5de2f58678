/** What every consumer computes; tests/packaging/numbers.mjs knows the answer. */
export async function answer({ mask }, engine) {
  const x = [
    [1, 0],
    [0, 1],
  ];
  const { weights } = await engine.scaledDotProductAttention(x, x, x, { mask: mask.causal() });
  const drawn = await engine.torchGenerator(42).rand([2]);
  const [read] = Object.values(await engine.readTensors("[[1, 2], [3, 4]]", { format: "json" }));
  const entropy = await engine.analysis.entropy(weights);
  const mha = engine.multiHeadAttention({ dModel: 2, nHeads: 1, bias: false });
  await mha.loadStateDict({ in_proj_weight: [...x, [5, 6], [7, 8], ...x], "out_proj.weight": x });
  const loaded = (await mha.stateDict())["key.weight"];
  const results = { weights, drawn, read, entropy, loaded };
  return Object.fromEntries(Object.entries(results).map(([name, { data }]) => [name, [...data]]));
}

/** What it computes on a graphics processor. */
export async function answerOnGpu(attnscope) {
  const engine = await attnscope.createEngine({ backend: "webgpu" });
  return { ...(await answer(attnscope, engine)), backend: engine.info.backend };
}

/** How many of two threads share a pass that is large enough, and whether they give the bits that one gives. */
export async function answerWithThreads(attnscope) {
  const give = async (threads) => {
    const engine = await attnscope.createEngine({ backend: "cpu", threads });
    const mha = engine.multiHeadAttention({ dModel: 256, nHeads: 4, seed: 1 });
    const { output } = await mha.forward(await engine.torchGenerator(2).randn([200, 256]));
    const given = { threads: engine.info.threads, numbers: output.data.join() };
    engine.destroy();
    return given;
  };
  const [two, one] = [await give(2), await give(1)];
  return { threads: two.threads, same: two.numbers === one.numbers };
}
