import type { Home } from "./home.ts";
import { store, stored } from "./storage.ts";

/** The page on a site, which fetches what it needs when it needs it. */
export const site: Home = {
  isFile: false,
  state: null,
  isResumed: true,
  engineOptions: async () => ({}),
  async page() {
    const response = await fetch("./attnscope.html", { cache: "no-cache" });
    if (!response.ok) throw new Error(`${response.url}: ${response.status}`);
    return response.text();
  },
  stored,
  store,
};
