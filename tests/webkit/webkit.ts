import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { test as base, expect } from "@playwright/test";
import { type WebKit, webkit } from "../../scripts/browsers.mjs";
import { PAGE } from "../browser/ports.ts";
import { savedIn, see, textOf, type User } from "../browser/user.ts";
import { Session, startDriver } from "./webdriver.ts";

/** Runs in the page before anything of its own: the driver tells nothing of the console. */
function listen() {
  const complaints: string[] = [];
  Object.assign(globalThis, { complaints });
  addEventListener("error", ({ message }) => complaints.push(message));
  addEventListener("unhandledrejection", ({ reason }) => complaints.push(String(reason)));
  addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => {
    complaints.push(`${violatedDirective}: ${blockedURI}`);
  });
  for (const kind of ["error", "warn"] as const) console[kind] = (...said) => complaints.push(said.join(" "));
}

/** The page as it is served elsewhere, with that in front. */
function listening() {
  return createServer(async ({ url = "" }, response) => {
    if (url === "/listen.js") {
      response.setHeader("content-type", "text/javascript").end(`(${listen})();`);
      return;
    }
    const answer = await fetch(PAGE + url);
    const type = answer.headers.get("content-type") ?? "";
    const body = Buffer.from(await answer.arrayBuffer());
    const isPage = type.startsWith("text/html");
    response.writeHead(answer.status, { "content-type": type });
    response.end(isPage ? String(body).replace("<title>", '<script src="/listen.js"></script>$&') : body);
  });
}

interface Started {
  readonly browser: WebKit;
  readonly address: string;
  readonly downloads: string;
}

export const test = base.extend<{ session: Session; user: User }, { started: Started }>({
  started: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright reads in the pattern what a fixture needs.
    async ({}, use) => {
      const browser = webkit();
      if (!browser) throw new Error("no WebKit found");
      const home = await mkdtemp(path.join(tmpdir(), "attnscope-"));
      const stopDriver = await startDriver(browser, home);
      const site = listening();
      await new Promise<void>((resolve) => site.listen(0, "localhost", resolve));
      const address = `http://localhost:${(site.address() as AddressInfo).port}`;
      await use({ browser, address, downloads: home });
      site.closeAllConnections();
      site.close();
      await stopDriver();
      await rm(home, { recursive: true, force: true });
    },
    { scope: "worker" },
  ],

  session: async ({ started }, use) => {
    const session = await Session.open(started.browser);
    await use(session);
    await session.close();
  },

  user: async ({ session, started: { address, downloads } }, use) => {
    const complaints: string[] = [];
    const leave = async () => {
      const heard = () => (globalThis as unknown as { complaints?: string[] }).complaints ?? [];
      complaints.push(...(await session.evaluate(heard, null)));
      await session.goto("about:blank");
    };
    const user: User = {
      async open(to) {
        await leave();
        await session.goto(address + to);
        // The labels of heads come last; from then on nothing moves by itself.
        await see(() => textOf(user, "[data-testid=head-grid] figcaption")).toMatch(/\d$/);
        await session.evaluate(() => document.fonts.ready.then(() => null), null);
      },
      click: (css, text) => session.click(css, text),
      press: (...keys) => session.press(...keys),
      drag: (points) => session.drag(points),
      resize: (width, height) => session.resize(width, height),
      evaluate: (run, argument) => session.evaluate(run, argument),
      async saved(css) {
        await session.click(css);
        return savedIn(downloads);
      },
    };
    await user.open("/");
    await use(user);
    await leave();
    expect(complaints).toEqual([]);
  },
});
