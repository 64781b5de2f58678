import { defineConfig } from "vitest/config";

// Node.js before 22 has relaxed SIMD, without which the engine has one thread, only where it is asked for.
const NODE_MAJOR = Number(process.versions.node.split(".")[0]);
const execArgv = NODE_MAJOR < 22 ? ["--experimental-wasm-relaxed-simd"] : [];

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "node",
          include: ["tests/node/**/*.test.ts"],
          exclude: ["tests/node/threads.test.ts"],
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: "threads",
          include: ["tests/node/threads.test.ts"],
          execArgv,
          provide: { execArgv },
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: "packaging",
          include: ["tests/packaging/*.test.mjs"],
          globalSetup: "tests/packaging/setup.mjs",
          testTimeout: 120_000,
        },
      },
    ],
  },
});
