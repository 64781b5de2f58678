// What is published: the files, their size, their licences, and the sources that the WebAssembly was compiled from.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, inject, test } from "vitest";
import { toolchain } from "../../scripts/cargo.mjs";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const folder = inject("folder");
const { files, size, tarball } = inject("packed");
const consumers = inject("consumers");
const installed = path.join(folder, "node_modules/attnscope");
const LARGEST = 1_500_000;
const LARGEST_ENGINE = 200_000;

test("holds what users need and nothing else", () => {
  const paths = files.map((file) => file.path);
  const { exports } = JSON.parse(readFileSync(path.join(installed, "package.json"), "utf8"));
  const entries = Object.values(exports).flatMap((entry) => (typeof entry === "string" ? entry : Object.values(entry)));
  expect(paths).toEqual(expect.arrayContaining(entries.map((entry) => entry.slice(2))));
  const documents = ["LICENSE", "LICENSE-APACHE", "LICENSE-MIT", "NOTICE", "README.md", "package.json"];
  const bundled = ["anywidget", "global", "gpu"].map((name) => `bundled/attnscope.${name}.js`);
  const others = [...bundled, ...documents];
  expect(paths.filter((file) => !/^dist\/.+\.(js|d\.ts|wasm)$/.test(file)).sort()).toEqual(others.sort());
  // Nothing in dist/ is left from a source that is gone.
  for (const file of paths.filter((file) => /^dist\/(?!wasm\/).+\.d\.ts$/.test(file))) {
    expect(statSync(path.join(repository, file.replace(/^dist\/(.+)\.d\.ts$/, "js/$1.ts"))).isFile()).toBe(true);
  }
  const scripts = paths.filter((file) => /^dist\/(?!wasm\/|shared-).+\.js$/.test(file));
  expect(entries.map((entry) => entry.slice(2))).toEqual(expect.arrayContaining(scripts));
});

test("says which versions of Node.js have what it needs, everywhere the same", () => {
  const read = (file) => readFileSync(path.join(repository, file), "utf8");
  // What `require` takes modules from, and `process.getBuiltinModule`.
  const range = "^20.19.0 || >=22.12.0";
  expect(JSON.parse(read("package.json")).engines.node).toBe(range);
  expect(JSON.parse(read("package-lock.json")).packages[""].engines.node).toBe(range);
  for (const file of ["README.md", "CONTRIBUTING.md", "docs/site/index.md"]) {
    expect(read(file), file).toContain("`^20.19 || >=22.12`");
    expect(read(file), file).not.toMatch(/20\.(?!19)\d+/);
  }
});

test("is small", () => {
  expect(size).toBeLessThan(LARGEST);
});

// With a standard library that is not compiled along, panics and their messages are 25 kB more.
test.skipIf(toolchain()?.flags.length === 0)("its engines are small", () => {
  const sizes = ["simd128", "relaxed"].map((name) => [
    name,
    statSync(path.join(installed, `dist/wasm/attnscope_${name}.wasm`)).size,
  ]);
  console.log("bytes of the engines:", Object.fromEntries(sizes));
  for (const [name, bytes] of sizes) expect(bytes, name).toBeLessThan(LARGEST_ENGINE);
});

test("its notice names all that is compiled or bundled into it", () => {
  const notice = readFileSync(path.join(installed, "NOTICE"), "utf8");
  const bindings = ["attnscope-bindings", "attnscope-analysis", "attnscope-files-bindings", "attnscope-gpu"].flatMap(
    (crate) => ["-p", crate],
  );
  const target = ["--target", "wasm32-unknown-unknown", "--edges", "normal,no-proc-macro", "--prefix", "none"];
  const tree = execFileSync("cargo", ["tree", "--offline", ...bindings, ...target, "--format", "{p}"], {
    cwd: repository,
    encoding: "utf8",
  });
  const crates = [...tree.matchAll(/^(\S+) v[^(\n]*$/gm)].map(([, name]) => name);
  expect(crates).toContain("libm");
  const { dependencies } = JSON.parse(readFileSync(path.join(installed, "package.json"), "utf8"));
  for (const name of new Set([...crates, ...Object.keys(dependencies)])) expect(notice).toContain(name);
});

test("says which sources its WebAssembly was compiled from", () => {
  // As scripts/build.mjs makes it: whoever has the sources can tell whether these are they.
  const filesUnder = (at) =>
    statSync(path.join(repository, at)).isDirectory()
      ? readdirSync(path.join(repository, at))
          .sort()
          .flatMap((name) => filesUnder(`${at}/${name}`))
      : [at];
  const hash = createHash("sha256");
  for (const file of ["Cargo.toml", "Cargo.lock", "src", "files", "boundary", "bindings", "analysis", "gpu"].flatMap(
    filesUnder,
  )) {
    hash.update(`\0${file}\0`).update(readFileSync(path.join(repository, file)));
  }
  const script = `import { createEngine } from "attnscope";
    const { build, version } = (await createEngine()).info;
    console.log(JSON.stringify({ build, version }));`;
  const info = execFileSync(process.execPath, ["--input-type=module", "--eval", script], { cwd: folder });
  const { build, version } = JSON.parse(info);
  expect(build).toBe(`${version}+${hash.digest("hex").slice(0, 16)}`);
});

test.skipIf(!consumers)("publint finds nothing", async () => {
  const publintAt = createRequire(path.join(consumers, "package.json")).resolve("publint");
  const { publint } = await import(pathToFileURL(publintAt).href);
  expect((await publint({ pkgDir: installed, pack: false, strict: true })).messages).toEqual([]);
});

test.skipIf(!consumers)("Are The Types Wrong finds nothing", () => {
  const attw = path.join(consumers, "node_modules/@arethetypeswrong/cli/dist/index.js");
  const options = ["--profile", "esm-only", "--no-definitely-typed"];
  const { status, stdout } = spawnSync(process.execPath, [attw, tarball, ...options], { encoding: "utf8" });
  expect(status, stdout).toBe(0);
});
