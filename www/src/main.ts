import { keepOffline } from "./offline.ts";
import { site } from "./site.ts";
import { start } from "./start.ts";

// Not awaited: what it loads later imports this chunk, and would wait for it.
void start(site);
// Without it the page works all the same.
keepOffline().catch(() => {});
