// The looks that are not there at first, loaded when one is chosen.
export { headLines, rowBars } from "attnscope/views";
