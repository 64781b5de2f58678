import * as attnscope from "attnscope";

// Tests reach the package as a page's own script would.
Object.assign(globalThis, { attnscope });
