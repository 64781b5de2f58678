import { defineConfig } from "@playwright/test";
import { CHROMIUM_ARGS, chromium } from "./scripts/chromium.mjs";
import { HARNESS, PAGE } from "./tests/browser/ports.ts";

const executablePath = chromium();

export default defineConfig({
  testDir: "tests/browser",
  testMatch: "**/*.spec.ts",
  forbidOnly: Boolean(process.env.CI),
  workers: 1,
  reporter: "list",
  timeout: 60_000,
  // A busy machine may be late once; what fails twice has failed.
  retries: 1,
  use: {
    baseURL: PAGE,
    browserName: "chromium",
    launchOptions: { args: CHROMIUM_ARGS, ...(executablePath && { executablePath }) },
  },
  webServer: [
    { command: `npx --no-install vite preview www --port ${new URL(PAGE).port} --strictPort`, url: PAGE },
    {
      command: `npx --no-install vite tests/browser/harness --port ${new URL(HARNESS).port} --strictPort`,
      url: HARNESS,
    },
  ],
});
