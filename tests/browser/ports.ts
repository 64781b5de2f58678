import { fileURLToPath } from "node:url";

// Where the tests' pages and WebKit's driver are served; TEST_PORT moves them, for two checkouts on one machine.
const port = Number(process.env.TEST_PORT ?? 5320);

export const PAGE = `http://localhost:${port}`;
export const HARNESS = `http://localhost:${port + 1}`;
/** The harness with the headers that let threads share memory. */
export const ISOLATED = `http://localhost:${port + 3}`;
export const WEBDRIVER = `http://127.0.0.1:${port + 2}`;

/** Playwright does not tell of Firefox's downloads. */
export const FIREFOX_DOWNLOADS = fileURLToPath(new URL("../../test-results/downloads", import.meta.url));
