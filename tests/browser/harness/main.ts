import * as attnscope from "attnscope";
import * as elements from "attnscope/elements";
import * as views from "attnscope/views";
import { runAll } from "../../cases/all.ts";

export { attnscope, elements, runAll, views };

// Tests reach the package as a page's own script would.
Object.assign(globalThis, { attnscope, elements, runAll, views });
