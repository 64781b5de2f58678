import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      { test: { name: "node", include: ["tests/node/**/*.test.ts"], testTimeout: 60_000 } },
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
