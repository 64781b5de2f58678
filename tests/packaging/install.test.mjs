// The package as a user gets it: packed, installed into an empty folder, run in Node.js and type-checked.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, inject, test } from "vitest";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const folder = inject("folder");

function node(script) {
  const run = ["--input-type=module", "--eval", script];
  return JSON.parse(execFileSync(process.execPath, run, { cwd: folder, encoding: "utf8" }));
}

test("attends in Node.js", () => {
  const answer = node(`
    import { createEngine, mask, tensor } from "attnscope";
    const engine = await createEngine({ backend: "auto" });
    const x = tensor([[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]]);
    const plain = await engine.scaledDotProductAttention(x, x, x, { isCausal: true });
    const mha = engine.multiHeadAttention({ dModel: 4, nHeads: 2, seed: 42 });
    const heads = await mha.forward(x, { mask: mask.causal(), trace: true });
    const cell = await heads.trace.explain("weights", [0, 2, 1]);
    const block = engine.transformerBlock({ dModel: 4, nHeads: 2, seed: 42 });
    const layer = await block.forward(x);
    console.log(JSON.stringify({
      kernel: engine.info.kernel,
      plain: [plain.output.shape, [...plain.weights.data].slice(0, 3)],
      heads: [heads.output.shape, heads.weights.shape, heads.trace.stages[0]],
      cell: [Math.fround(cell.value), heads.weights.data[7]],
      block: layer.output.shape,
    }));
    engine.destroy();
  `);
  expect(answer.kernel).toBe("simd128");
  expect(answer.plain).toEqual([
    [3, 4],
    [1, 0, 0],
  ]);
  expect(answer.heads).toEqual([[3, 4], [2, 3, 3], "input"]);
  expect(answer.cell[0]).toBeCloseTo(answer.cell[1], 6);
  expect(answer.block).toEqual([3, 4]);
});

test("refuses with typed errors in Node.js", () => {
  const codes = node(`
    import { AttnError, createEngine, tensor } from "attnscope";
    const codeOf = async (call) => {
      try { await call(); } catch (error) { return error instanceof AttnError ? error.code : String(error); }
    };
    const engine = await createEngine();
    console.log(JSON.stringify([
      await codeOf(() => tensor([[1, 2], [3]])),
      await codeOf(() => engine.multiHeadAttention({ dModel: 6, nHeads: 4 })),
      await codeOf(() => engine.multiHeadAttention({ dModel: 4, nHeads: 2, heads: 2 })),
    ]));
    engine.destroy();
  `);
  expect(codes).toEqual(["invalid_tensor", "not_divisible", "invalid_option"]);
});

test.each([
  ["bundler", "preserve"],
  ["node16", "node16"],
  ["nodenext", "nodenext"],
  ["nodenext", "nodenext", "--exactOptionalPropertyTypes"],
])("type-checks with moduleResolution %s", (moduleResolution, module, ...strict) => {
  cpSync(new URL("consumer.ts", import.meta.url), path.join(folder, "consumer.ts"));
  const tsc = path.join(repository, "node_modules/typescript/bin/tsc");
  const options = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom"];
  const resolution = ["--module", module, "--moduleResolution", moduleResolution];
  const { stdout } = spawnSync(process.execPath, [tsc, ...options, ...resolution, ...strict, "consumer.ts"], {
    cwd: folder,
    encoding: "utf8",
  });
  expect(stdout).toBe("");
});
