import { defineConfig } from "@playwright/test";
import { CHROMIUM_ARGS, chromium } from "./scripts/chromium.mjs";

const PAGE = "http://localhost:5320";
const HARNESS = "http://localhost:5321";
const executablePath = chromium();

export default defineConfig({
  testDir: "tests/browser",
  testMatch: "**/*.spec.ts",
  forbidOnly: Boolean(process.env.CI),
  workers: 1,
  reporter: "list",
  timeout: 60_000,
  use: {
    baseURL: PAGE,
    browserName: "chromium",
    launchOptions: { args: CHROMIUM_ARGS, ...(executablePath && { executablePath }) },
  },
  webServer: [
    { command: "npx --no-install vite preview www --port 5320 --strictPort", url: PAGE },
    { command: "npx --no-install vite tests/browser/harness --port 5321 --strictPort", url: HARNESS },
  ],
});
