// The page's typeface in two files each weight: a small one of what the page itself says, which every view needs, and the whole
// one, which a browser fetches for a letter beyond it.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import subsetFont from "subset-font";
import type { Plugin } from "vite";

const at = (file: string) => fileURLToPath(new URL(file, import.meta.url));
// The small one is without hints, which were a third of it: they are for screens coarser than most.
/** The words, and what the views write. */
const SPOKEN = [at("src/text.ts"), ...readdirSync(at("../js/views")).map((file) => at(`../js/views/${file}`))];
// Its types do not know noHinting yet.
const SMALL: { targetFormat: "woff2" } = Object.assign({ targetFormat: "woff2" as const }, { noHinting: true });
const CACHE = at("../node_modules/.cache/attnscope-fonts");
const ASCII = String.fromCodePoint(...Array.from({ length: 95 }, (_, i) => 0x20 + i));

/** What the page itself says: ASCII, and the signs in its words. */
function spoken(): string {
  const words = SPOKEN.map((file) => readFileSync(file, "utf8").replaceAll(/\s/g, " "));
  return [...new Set(ASCII + words.join(""))].sort().join("");
}

/** ASCII as a range, the signs one by one. */
function rangeOf(characters: string): string {
  const signs = [...characters].filter((character) => !ASCII.includes(character));
  return ["U+20-7e", ...signs.map((sign) => `U+${sign.codePointAt(0)?.toString(16)}`)].join(", ");
}

/** Whether a small file is of the face that the first view is set in. */
const isFirst = (file: string) => /attnscope-fonts\/ibm-plex-sans-[^/]*woff2$/.test(file);

export function fonts(): Plugin {
  return {
    name: "fonts",
    enforce: "pre",
    transform: {
      filter: { id: /@fontsource[\\/].*\.css$/ },
      async handler(code, id) {
        const [, file] = /url\((\.\/files\/[^)]+\.woff2)\)/.exec(code) ?? this.error(`${id} names no .woff2`);
        const whole = path.resolve(path.dirname(id), file as string);
        const characters = spoken();
        const small = path.join(CACHE, path.basename(whole));
        mkdirSync(CACHE, { recursive: true });
        writeFileSync(small, await subsetFont(readFileSync(whole), characters, SMALL));
        const face = (source: string, range = "") =>
          code.replace(/src:[^;]+;/, `src: url("${source}") format("woff2");${range}`);
        // A browser asks the last face first.
        // What the whole one holds is said, lest it is fetched for a letter of another script.
        const { latin } = JSON.parse(readFileSync(path.join(path.dirname(id), "unicode.json"), "utf8"));
        return [face(whole, ` unicode-range: ${latin};`), face(small, ` unicode-range: ${rangeOf(characters)};`)].join(
          "\n",
        );
      },
    },
    // The page's own letters are on their way before the script that writes them, so that no line is set in others first.
    transformIndexHtml: {
      order: "post",
      handler: (_, { bundle = {} }) =>
        Object.values(bundle)
          .filter((part) => part.type === "asset" && part.originalFileNames.some((name) => isFirst(name)))
          .map(({ fileName }) => ({
            tag: "link",
            attrs: { rel: "preload", href: `./${fileName}`, as: "font", type: "font/woff2", crossorigin: true },
            injectTo: "head",
          })),
    },
  };
}
