import { existsSync } from "node:fs";

const PLACES = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "C:/Program Files/Google/Chrome/Application/chrome.exe",
];

/** The Chromium to drive: the one that CHROMIUM names, else the first found; undefined where there is none. */
export function chromium() {
  return process.env.CHROMIUM ?? PLACES.find((place) => existsSync(place));
}

/** Headless and silent: none of the requests a browser makes on its own account. */
export const CHROMIUM_ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
