import { defineConfig } from "@playwright/test";
import { CHROMIUM_ARGS, chromium, firefox, missingBrowsers } from "./scripts/browsers.mjs";
import { FIREFOX_DOWNLOADS, HARNESS, ISOLATED, PAGE } from "./tests/browser/ports.ts";

const missing = missingBrowsers().map(({ name }) => name);
if (missing.length > 0) {
  const names = missing.join(" and ");
  if (process.env.CI) throw new Error(`${names} not found`);
  // Each worker reads this file as well.
  if (!process.env.TEST_WORKER_INDEX) {
    process.once("exit", () =>
      console.warn(`\n${names} not found: THE TESTS IN ${names.toUpperCase()} WERE SKIPPED\n`),
    );
  }
}

const launch = (executablePath: string | undefined) => executablePath && { executablePath };

const projects = [
  {
    name: "Chromium",
    use: { browserName: "chromium", launchOptions: { args: CHROMIUM_ARGS, ...launch(chromium()) } },
  },
  {
    name: "Firefox",
    testMatch: /(main-path|golden|threads|page|state|numbers|cross)\.spec\.ts/,
    // Axe finds the same in Chromium, and of a download or of what a made-up event pastes Playwright tells nothing here.
    grepInvert: /axe finds|too large for a link|no number is told/,
    use: {
      browserName: "firefox",
      channel: "moz-firefox",
      launchOptions: { downloadsPath: FIREFOX_DOWNLOADS, ...launch(firefox()) },
    },
  },
  { name: "WebKit", testDir: "tests/webkit" },
] as const;

export default defineConfig({
  testDir: "tests/browser",
  testMatch: "**/*.spec.ts",
  forbidOnly: Boolean(process.env.CI),
  workers: 1,
  reporter: "list",
  timeout: 60_000,
  // A busy machine may be late once; what fails twice has failed.
  retries: 1,
  use: { baseURL: PAGE },
  projects: projects.filter(({ name }) => !missing.includes(name)),
  webServer: [
    { command: `npx --no-install vite preview www --port ${new URL(PAGE).port} --strictPort`, url: PAGE },
    {
      command: `npx --no-install vite tests/browser/harness --port ${new URL(HARNESS).port} --strictPort`,
      url: HARNESS,
    },
    {
      command: `npx --no-install vite tests/browser/harness --mode isolated --port ${new URL(ISOLATED).port} --strictPort`,
      url: ISOLATED,
    },
  ],
});
