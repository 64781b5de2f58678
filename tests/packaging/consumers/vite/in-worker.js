import * as attnscope from "attnscope";
import { answer } from "../answer.js";

const engine = await attnscope.createEngine();
postMessage(await answer(attnscope, engine));
