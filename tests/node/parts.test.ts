// The WebAssembly beside the engine's: what is said where it is not given or not what it should be, and that calls keep their order.
import { readFile } from "node:fs/promises";
import { AttnError, mask, type TorchConvention } from "attnscope";
import { createEngine, type Engine } from "attnscope/slim";
import { expect, test } from "vitest";

const bytesOf = (name: string) => readFile(new URL(`../../dist/wasm/attnscope_${name}.wasm`, import.meta.url));
const identity = [
  [1, 0],
  [0, 1],
];
const x = [[5, 6]];
/** Of PyTorch's names and fused, so that it is translated. */
const torchs = { in_proj_weight: [...identity, ...identity, ...identity], "out_proj.weight": identity };

async function withEngine<T>(parts: Record<string, unknown>, run: (engine: Engine) => Promise<T>): Promise<T> {
  const engine = await createEngine({ wasm: await bytesOf("simd128"), backend: "cpu", ...parts });
  return run(engine).finally(() => engine.destroy());
}

async function caught(run: Promise<unknown>): Promise<AttnError> {
  const error = await run.then(() => undefined).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(AttnError);
  return error as AttnError;
}

const calls: [string, string, (engine: Engine) => Promise<unknown>][] = [
  ["analysisWasm", "no_engine", (engine) => engine.analysis.entropy(identity)],
  ["analysisWasm", "no_engine", (engine) => engine.ops.softmax(identity)],
  ["filesWasm", "no_engine", (engine) => engine.readTensors("1,2", { format: "csv" })],
  [
    "filesWasm",
    "no_engine",
    (engine) => engine.multiHeadAttention({ dModel: 2, nHeads: 1, bias: false }).loadStateDict(torchs),
  ],
];

test("what the engine writes of a mask needs one", async () => {
  const write = (convention: TorchConvention) => caught((async () => mask.causal().toTorch(convention))());
  expect(await write("sdpa")).toMatchObject({ code: "no_engine" });
  expect(await write("x" as never)).toMatchObject({ code: "invalid_option", details: { option: "convention" } });
});

test.each(calls)("a call that needs %s says so where it was not given", async (option, _, call) => {
  const error = await withEngine({}, (engine) => caught(call(engine)));
  expect(error).toMatchObject({ code: "invalid_option", details: { option } });
});

test.each(["wasm", "analysisWasm", "filesWasm"])(
  "%s that is no address, bytes or module is refused",
  async (option) => {
    for (const source of [5, "a.wasm", "http://[", Promise.resolve(new Uint8Array()), {}]) {
      const error = await caught(withEngine({ [option]: source }, async () => {}));
      expect(error).toMatchObject({ code: "invalid_option", details: { option } });
    }
  },
);

test("an address where nothing lies is told of", async () => {
  const from = new URL("nothing.wasm", import.meta.url).href;
  const error = await withEngine({ filesWasm: from }, (engine) => caught(engine.readTensors("[[1]]")));
  expect(error).toMatchObject({ code: "no_engine", details: { part: "the reader of files", from } });
});

// Each is loaded once.
test.each([0, 2].map((first) => calls[first]))(
  "%s that is another's is %s, and the right one then does",
  async (option, code, call) => {
    const error = await withEngine({ [option]: await bytesOf("simd128") }, (engine) => caught(call(engine)));
    expect(error.code).toBe(code);
    expect(error.message).toContain("could not be loaded");
    const right = await bytesOf(option === "filesWasm" ? "files" : "analysis");
    await withEngine({ [option]: right }, call);
  },
);

test("a module's own names need no other part", async () => {
  await withEngine({}, async (engine) => {
    const mha = engine.multiHeadAttention({ dModel: 2, nHeads: 1, bias: false });
    const names = ["query", "key", "value", "out"].map((name) => [`${name}.weight`, identity]);
    await mha.loadStateDict(Object.fromEntries(names));
    expect([...(await mha.forward(x)).output.data]).toEqual(x[0]);
    const { "out.weight": _, ...missing } = Object.fromEntries(names);
    const error = await caught(mha.loadStateDict(missing));
    expect(error).toMatchObject({ code: "bad_state_dict", details: { entry: "out.weight", found: "nothing" } });
  });
});

test("of a file with several models the one is loaded whose names begin as is said", async () => {
  await withEngine({ filesWasm: await bytesOf("files") }, async (engine) => {
    const mha = engine.multiHeadAttention({ dModel: 2, nHeads: 1, bias: false });
    const other = Object.entries(torchs).map(([name, rows]) => [name, rows.map((row) => row.map((x) => -x))]);
    const named = (prefix: string, entries: [string, unknown][]) =>
      Object.fromEntries(entries.map(([name, rows]) => [`${prefix}.${name}`, rows]));
    const both = { ...named("vision", other as [string, unknown][]), ...named("text", Object.entries(torchs)) };
    await mha.loadStateDict(both as typeof torchs, { prefix: "text." });
    expect([...(await mha.forward(x)).output.data]).toEqual(x[0]);
    const error = await caught(mha.loadStateDict(both as typeof torchs, { prefix: "audio." }));
    const found = `names such as "${Object.keys(both)[0]}"`;
    expect(error).toMatchObject({ code: "bad_state_dict", details: { found } });
    expect(error.message).toContain('"audio."');
    const wrong = await caught(mha.loadStateDict(both as typeof torchs, { prefix: 1 as never }));
    expect(wrong).toMatchObject({ code: "invalid_option", details: { option: "prefix" } });
  });
});

test("what was asked first is done first, even where a part is loaded for it", async () => {
  const parts = { analysisWasm: await bytesOf("analysis"), filesWasm: await bytesOf("files") };
  await withEngine(parts, async (engine) => {
    const mha = engine.multiHeadAttention({ dModel: 2, nHeads: 1, bias: false, seed: 1 });
    const loaded = mha.loadStateDict(torchs);
    const after = mha.forward(x);
    const order: string[] = [];
    await Promise.all([
      loaded.then(() => order.push("loaded")),
      engine.analysis.entropy(identity).then(() => order.push("entropy")),
      after.then(() => order.push("forward")),
    ]);
    expect(order).toEqual(["loaded", "forward", "entropy"]);
    expect([...(await after).output.data]).toEqual(x[0]);
  });
});
