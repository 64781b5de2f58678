import { createEngine } from "attnscope";
import { expect, test } from "vitest";
import { nanKeys } from "../cases/nan-keys.ts";

test("NaN of a key is that of the queries that see it", async () => {
  const engine = await createEngine();
  expect(await nanKeys(engine)).toEqual([]);
  engine.destroy();
});
