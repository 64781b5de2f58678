// What a classic script gives as `attnscope`: bundled/attnscope.global.js is made of this.
export * from "./index.ts";
export * as views from "./views/index.ts";

import "./elements.ts";
