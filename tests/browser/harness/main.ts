import * as attnscope from "attnscope";
import { runAll } from "../../cases/all.ts";

export { attnscope, runAll };

// Tests reach the package as a page's own script would.
Object.assign(globalThis, { attnscope, runAll });
