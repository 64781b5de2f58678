import { mainPath } from "../browser/main-path.ts";
import { test } from "./webkit.ts";

mainPath(test);
