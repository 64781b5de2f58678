import * as attnscope from "attnscope";
import { readSafetensors, runGolden } from "../../golden-cases.ts";

export { attnscope, readSafetensors, runGolden };

// Tests reach the package as a page's own script would.
Object.assign(globalThis, { attnscope, readSafetensors, runGolden });
