import { keepOffline } from "./offline.ts";
import { site } from "./site.ts";
import { start } from "./start.ts";

await start(site);
// Without it the page works all the same.
keepOffline().catch(() => {});
