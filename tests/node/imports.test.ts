// Imports go one way, as ARCHITECTURE.md says: the engine's side knows nothing of pictures, and pictures nothing of the engine.
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const JS = new URL("../../js/", import.meta.url);
/** What puts the two together. */
const ELEMENTS = ["elements.ts", "anywidget.ts", "global.ts"];
/** What pictures are made of beside their own files: data, their types, and errors. */
const SHARED = ["device.ts", "errors.ts", "generated.ts", "options.ts", "selection.ts", "tensor.ts"];

const files = readdirSync(JS, { recursive: true, encoding: "utf8" })
  .map((file) => file.replaceAll("\\", "/"))
  .filter((file) => file.endsWith(".ts") && !file.startsWith("wasm/"));

const imports = files.flatMap((file) =>
  [...readFileSync(new URL(file, JS), "utf8").matchAll(/(?:from|import\() ?"(\..+?)"/g)].map(([, to = ""]) => ({
    file,
    to: path.posix.join(path.posix.dirname(file), to),
  })),
);
const isView = (file: string) => file.startsWith("views/");

test("only elements import views", () => {
  const wrong = imports.filter(({ file, to }) => isView(to) && !isView(file) && !ELEMENTS.includes(file));
  expect(wrong).toEqual([]);
});

test("views import no engine", () => {
  const wrong = imports.filter(({ file, to }) => isView(file) && !isView(to) && !SHARED.includes(to));
  expect(wrong).toEqual([]);
});
