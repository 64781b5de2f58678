// Compiles to WebAssembly with whichever Rust toolchain can: one that has the target, else one that has the
// standard library's sources, else Debian's rustc-web (which comes with them).
//   WASM_TOOLCHAIN=rustup|debian   allows only that one
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";

export const TARGET = "wasm32-unknown-unknown";
// Where the standard library is compiled too, it can be small: a panic is then a trap, and the messages that say why are left out.
const BUILD_STD = {
  args: ["-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"],
  flags: ["-Cpanic=immediate-abort", "-Zunstable-options"],
};
const DEBIAN = { cargo: "/usr/bin/cargo", rustc: "/usr/bin/rustc" };

// Memory that threads share is made outside; each of these is needed, or the memory is silently not shared.
const SHARED = ["--shared-memory", "--import-memory", "--max-memory=4294967296"].concat(
  ["__wasm_init_tls", "__tls_size", "__tls_align", "__tls_base"].map((name) => `--export=${name}`),
);

/**
 * The features that a build needs of the runtime, and what the linker is told. The engine is built with SIMD128, and with relaxed SIMD
 * for memory that threads may share; `relaxed` alone is for the benchmark's crates, and in place of the engine's where the standard
 * library cannot be compiled for threads.
 */
export const VARIANTS = {
  simd128: { features: "+simd128", link: [] },
  relaxed: { features: "+simd128,+relaxed-simd", link: [] },
  threads: { features: "+simd128,+relaxed-simd,+atomics", link: SHARED },
};

/** What a program prints, or "" where it is missing or fails. */
export function ask(command, ...args) {
  try {
    return execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return "";
  }
}

/** Runs a program with its output shown; a failure ends this process with the same status. */
export function run(command, args, env = {}) {
  const { status, error } = spawnSync(command, args, { stdio: "inherit", env: { ...process.env, ...env } });
  if (error) console.error(`${command}: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

function hasTarget(rustc) {
  const libraries = ask(rustc, "--print", "target-libdir", "--target", TARGET);
  return libraries !== "" && existsSync(libraries);
}

function hasSources(rustc) {
  const root = ask(rustc, "--print", "sysroot");
  return root !== "" && existsSync(path.join(root, "lib/rustlib/src/rust/library/std/Cargo.toml"));
}

/** The toolchain that compiles to WebAssembly here, or null. Threads need the standard library compiled for them. */
export function toolchain(variant = "simd128", only = process.env.WASM_TOOLCHAIN ?? "auto") {
  if (only !== "debian") {
    const name = ask("rustc", "--version");
    if (hasTarget("rustc") && variant !== "threads") return { name, cargo: "cargo", args: [], flags: [], env: {} };
    if (hasSources("rustc")) return { name, cargo: "cargo", ...BUILD_STD, env: { RUSTC_BOOTSTRAP: "1" } };
  }
  if (only !== "rustup" && existsSync(DEBIAN.cargo) && hasSources(DEBIAN.rustc)) {
    const name = `${ask(DEBIAN.rustc, "--version")} of Debian`;
    return {
      name,
      cargo: DEBIAN.cargo,
      ...BUILD_STD,
      env: { RUSTC: DEBIAN.rustc, RUSTC_BOOTSTRAP: "1" },
    };
  }
  return null;
}

/** Compiles a cdylib of the workspace and returns the path of its .wasm. */
export function compile(crate, variant = "simd128") {
  const targetDir = `target/${variant}`;
  // Without the second flag LLVM's loop strength reduction may split the constant offsets of the kernels' loads.
  const { features, link } = VARIANTS[variant];
  const kernels = `-Ctarget-feature=${features} -Cllvm-args=-disable-lsr`;
  // The binary names its sources in messages of panics: not where they lie on this machine.
  const crates = `${process.env.CARGO_HOME ?? path.join(homedir(), ".cargo")}/registry/src`;
  const { cargo, args, flags, env } =
    toolchain(variant) ?? fail(`no Rust toolchain compiles to ${TARGET}: run node scripts/setup.mjs`);
  const library = `${ask(env.RUSTC ?? "rustc", "--print", "sysroot")}/lib/rustlib/src/rust/library`;
  const places = { [crates]: "crates", [library]: "rust", [process.cwd()]: "attnscope" };
  const remap = Object.entries(places).map(([from, to]) => `--remap-path-prefix=${from}=${to}`);
  const RUSTFLAGS = [kernels, ...flags, ...link.map((flag) => `-Clink-arg=${flag}`), ...remap].join(" ");
  const build = ["build", "--release", "-p", crate, "--target", TARGET, "--target-dir", targetDir, ...args];
  run(cargo, build, { ...env, RUSTFLAGS });
  return `${targetDir}/${TARGET}/release/${crate.replaceAll("-", "_")}.wasm`;
}

export function fail(message) {
  console.error(message);
  process.exit(1);
}
