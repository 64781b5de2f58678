import { defineConfig } from "@playwright/test";
import {
  CHROMIUM_ARGS,
  CHROMIUM_GPU_ARGS,
  chromium,
  firefox,
  firefoxGpu,
  missingBrowsers,
} from "./scripts/browsers.mjs";
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

/** What runs on a graphics processor, or on a program that plays one. */
const ON_GPU = /\/webgpu[\w-]*\.spec\.ts$/;

const projects = [
  {
    name: "Chromium",
    browser: "Chromium",
    testIgnore: ON_GPU,
    use: { browserName: "chromium", launchOptions: { args: CHROMIUM_ARGS, ...launch(chromium()) } },
  },
  {
    name: "Chromium with WebGPU",
    browser: "Chromium",
    testMatch: ON_GPU,
    use: { browserName: "chromium", launchOptions: { args: CHROMIUM_GPU_ARGS, ...launch(chromium()) } },
  },
  {
    name: "Firefox",
    browser: "Firefox",
    testMatch: /(loading|main-path|golden|threads|page|state|numbers|cross)\.spec\.ts/,
    // Axe finds the same in Chromium, and of a download or of what a made-up event pastes Playwright tells nothing here.
    grepInvert: /axe finds|too large for a link|no number is told|numbers are pasted/,
    use: {
      browserName: "firefox",
      channel: "moz-firefox",
      launchOptions: { downloadsPath: FIREFOX_DOWNLOADS, ...launch(firefox()) },
    },
  },
  {
    name: "Firefox with WebGPU",
    browser: "Firefox",
    testMatch: ON_GPU,
    use: {
      browserName: "firefox",
      channel: "moz-firefox",
      launchOptions: { ...firefoxGpu(), ...launch(firefox()) },
    },
  },
  { name: "WebKit", browser: "WebKit", testDir: "tests/webkit" },
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
  projects: projects.filter(({ browser }) => !missing.includes(browser)).map(({ browser: _, ...project }) => project),
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
