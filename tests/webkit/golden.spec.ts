import { expectConformance } from "../browser/conformance.ts";
import { HARNESS } from "../browser/ports.ts";
import { see } from "../browser/user.ts";
import { test } from "./webkit.ts";

test("every golden case in WebKit, which takes the simd128 engine by itself", async ({ session }) => {
  await session.goto(HARNESS);
  await see(() => session.evaluate(() => "attnscope" in globalThis, null)).toBe(true);
  await expectConformance((run, argument) => session.evaluate(run, argument), "simd128");
});
