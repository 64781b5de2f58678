import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";

const first = (places) => places.find((place) => existsSync(place));

/** The Chromium to drive: the one that CHROMIUM names, else the first found; undefined where there is none. */
export const chromium = () =>
  process.env.CHROMIUM ??
  first([
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
  ]);

/** The Firefox to drive, as `chromium` finds its own. */
export const firefox = () =>
  process.env.FIREFOX ??
  first([
    "/usr/bin/firefox-esr",
    "/usr/bin/firefox",
    "/Applications/Firefox.app/Contents/MacOS/firefox",
    "C:/Program Files/Mozilla Firefox/firefox.exe",
  ]);

/** WebKitGTK's driver and the browser that it drives, on a screen that xvfb-run makes. */
export function webkit() {
  const driver = first(["/usr/bin/WebKitWebDriver"]);
  const browser = first(
    ["lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "libexec"].map((at) => `/usr/${at}/webkit2gtk-4.1/MiniBrowser`),
  );
  return driver && browser && first(["/usr/bin/xvfb-run"]) && { driver, browser };
}

/** What the tests drive, and Debian's packages of it. */
const BROWSERS = [
  { name: "Chromium", find: chromium, packages: ["chromium"] },
  { name: "Firefox", find: firefox, packages: ["firefox-esr"] },
  { name: "WebKit", find: webkit, packages: ["webkit2gtk-driver", "xvfb", "xauth"] },
];

export const missingBrowsers = () => BROWSERS.filter(({ find }) => !find());

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

/** With these Chromium has WebGPU where there is no graphics processor: SwiftShader, a program, plays one, and its canvases too. */
export const CHROMIUM_GPU_ARGS = [
  ...CHROMIUM_ARGS.filter((argument) => argument !== "--disable-gpu"),
  "--enable-unsafe-webgpu",
  "--ignore-gpu-blocklist",
  "--enable-features=Vulkan",
  "--use-vulkan=swiftshader",
  "--use-angle=swiftshader",
];

const VULKAN = "/usr/lib/chromium/libvulkan.so.1";
const SWIFTSHADER = "/usr/lib/chromium/vk_swiftshader_icd.json";

/** With these Firefox has WebGPU; on Linux it is played by the SwiftShader that Debian's Chromium brings, where that is there. */
export function firefoxGpu() {
  const firefoxUserPrefs = { "dom.webgpu.enabled": true, "gfx.webgpu.ignore-blocklist": true };
  if (![VULKAN, SWIFTSHADER].every(existsSync)) return { firefoxUserPrefs };
  // A folder with the loader alone: beside it lie libraries that Firefox has of its own.
  const folder = fileURLToPath(new URL("../target/vulkan", import.meta.url));
  mkdirSync(folder, { recursive: true });
  const link = `${folder}/libvulkan.so.1`;
  if (!existsSync(link)) symlinkSync(VULKAN, link);
  return { firefoxUserPrefs, env: { ...process.env, VK_ICD_FILENAMES: SWIFTSHADER, LD_LIBRARY_PATH: folder } };
}
