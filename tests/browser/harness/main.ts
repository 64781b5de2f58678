import * as attnscope from "attnscope";
import * as views from "attnscope/views";
import { runAll } from "../../cases/all.ts";

export { attnscope, runAll, views };

// Tests reach the package as a page's own script would.
Object.assign(globalThis, { attnscope, runAll, views });
