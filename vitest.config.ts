import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/node/**/*.test.ts", "tests/packaging/**/*.test.mjs"],
    testTimeout: 60_000,
  },
});
