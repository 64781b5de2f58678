// Files through the built package.
import { readFileSync } from "node:fs";
import { runInNewContext } from "node:vm";
import { AttnError, createEngine, type Engine, type FileFormat, type Tensor } from "attnscope";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

let engine: Engine;
beforeAll(async () => {
  engine = await createEngine();
});
afterAll(() => engine.destroy());

const sample = (name: string) => readFileSync(new URL(`../golden/samples/${name}`, import.meta.url));
const untyped = (value: unknown) => value as never;

async function caught(run: Promise<unknown>): Promise<AttnError> {
  const error = await run.then(() => undefined).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(AttnError);
  return error as AttnError;
}

describe("readTensors", () => {
  test.each([
    ["seedA_state_dict.pt", ""],
    ["seedA_state_dict_legacy.pth", ""],
    ["seedA_checkpoint.pt", "model_state_dict."],
    ["seedA.npz", ""],
    ["seedA_compressed.npz", ""],
  ])("%s holds what the safetensors file holds", async (file, prefix) => {
    const reference = await engine.readTensors(sample("seedA_state_dict.safetensors"));
    const read = await engine.readTensors(sample(file));
    expect(Object.keys(read)).toHaveLength(8);
    for (const [name, tensor] of Object.entries(reference)) expect(read[prefix + name]).toEqual(tensor);
  });

  test("a state dict of another's making is loaded as it is", async () => {
    const mha = engine.multiHeadAttention({ dModel: 8, nHeads: 2 });
    await mha.loadStateDict(await engine.readTensors(sample("seedA_state_dict.pt")));
  });

  test("bytes, a buffer of them and text are the same", async () => {
    const bytes = new Uint8Array(sample("attn.json"));
    const expected = await engine.readTensors(bytes);
    expect(expected.tensor?.shape).toEqual([2, 4, 6, 6]);
    expect(await engine.readTensors(bytes.buffer)).toEqual(expected);
    expect(await engine.readTensors(new TextDecoder().decode(bytes), { format: "json" })).toEqual(expected);
  });

  test("a blob, a file, and bytes of another realm are the same", async () => {
    const bytes = new Uint8Array(sample("attn.json"));
    const expected = await engine.readTensors(bytes);
    const others: [Uint8Array, ArrayBuffer] = runInNewContext(
      "const view = new Uint8Array([0, 0, ...bytes]); [view.subarray(2), view.buffer.slice(2)]",
      { bytes: [...bytes] },
    );
    expect(others.map((other) => other instanceof Uint8Array || other instanceof ArrayBuffer)).toEqual([false, false]);
    for (const file of [new Blob([bytes]), new File([bytes], "attn.json"), ...others]) {
      expect(await engine.readTensors(file)).toEqual(expected);
    }
  });

  test("a file that is not there any more is refused", async () => {
    const file = new Blob(["[[1]]"]);
    file.arrayBuffer = () => Promise.reject(new DOMException("it was moved", "NotReadableError"));
    const details = { found: "NotReadableError: it was moved" };
    expect(await caught(engine.readTensors(file))).toMatchObject({ code: "bad_file", details });
  });

  test("the bytes of the caller stay what they were", async () => {
    const bytes = new Uint8Array(sample("attn.npy"));
    await engine.readTensors(bytes);
    expect(bytes).toEqual(new Uint8Array(sample("attn.npy")));
  });

  test.each<[string, string | Uint8Array, string, object]>([
    ["a wrong cell", "a,b\n1,x", "bad_file", { format: "csv", line: 2, column: 2, found: '"x"', expected: "a number" }],
    ["a number left out", "tensor([1., ..., 2.])", "bad_file", { format: "text", line: 1, column: 13 }],
    ["bytes that end too soon", sample("attn.npy").subarray(0, 500), "bad_file", { format: "npy", offset: 128 }],
    ["no bytes", new Uint8Array(), "bad_file", { offset: 0 }],
  ])("%s is refused with its place", async (_, file, code, details) => {
    const error = await caught(engine.readTensors(file));
    expect(error.code).toBe(code);
    expect(error.details).toMatchObject(details);
    expect(Object.values(error.details)).not.toContain(undefined);
  });

  test("what needs more than maxBytes is too large", async () => {
    const small = await createEngine({ maxBytes: 1000 });
    expect((await caught(small.readTensors(sample("attn.npy")))).code).toBe("too_large");
    expect((await caught(small.readTensors(sample("attn_f16.npy")))).code).toBe("too_large");
    small.destroy();
  });

  test("options and values that are none", async () => {
    for (const options of [{ format: "zip" }, { format: 5 }, { kind: "npy" }, 5]) {
      expect((await caught(engine.readTensors("[1]", untyped(options)))).code).toBe("invalid_option");
    }
    expect((await caught(engine.readTensors(untyped(5)))).code).toBe("invalid_option");
    expect(await engine.readTensors("[1]", { format: undefined })).toHaveProperty("tensor");
  });
});

describe("writeTensors", () => {
  const numbers: Tensor = { data: new Float32Array([1.5, -0, Infinity, 1e-45, 3.4e38, -1 / 3]), shape: [2, 3] };

  test.each<FileFormat>(["safetensors", "npy", "npz", "csv", "json"])("%s is read back to the bit", async (format) => {
    const bytes = await engine.writeTensors({ tensor: numbers }, format);
    expect(bytes).toBeInstanceOf(Uint8Array);
    expect(await engine.readTensors(bytes, { format })).toEqual({ tensor: numbers });
  });

  test("nested arrays, and names as they are", async () => {
    const dict = { __proto__x: [[1, 2]], 'a "b" ä': [3] };
    const read = await engine.readTensors(await engine.writeTensors(dict, "npz"));
    expect(Object.keys(read)).toEqual(Object.keys(dict));
  });

  test("what a format does not hold is refused", async () => {
    const two = { a: [1], b: [2] };
    expect((await caught(engine.writeTensors(two, "npy"))).details).toMatchObject({ option: "format", found: "npy" });
    expect((await caught(engine.writeTensors({ a: [1] }, "csv"))).code).toBe("shape_mismatch");
    for (const format of ["pt", "zip", undefined, 5]) {
      expect((await caught(engine.writeTensors(two, untyped(format)))).code).toBe("invalid_option");
    }
    expect((await caught(engine.writeTensors({ a: untyped("x") }, "json"))).code).toBe("invalid_tensor");
  });
});
