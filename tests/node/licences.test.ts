// What the page, the page as one file and the documentation contain of others is named beside them, each with its licence.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");

/** Licences that ask for no more than to be told. */
const FREE = ["MIT", "ISC", "OFL-1.1"];

/** The packages that a list of licences names, with what each is licensed under. */
const named = (text: string) =>
  new Map([...text.matchAll(/^-+\n(\S+) [\d.]+, (.+)\n\n/gm)].map(([, name = "", licence = ""]) => [name, licence]));

const TYPEFACE = "@fontsource/ibm-plex-sans";

test.each([
  ["dist-site/licences.txt", ["svelte", "d3-format", TYPEFACE]],
  ["dist-site/attnscope.html", ["svelte", "d3-format", TYPEFACE]],
  ["dist-site/docs/licences.txt", ["minisearch", "d3-format", TYPEFACE]],
])("%s holds the licences of what lies there", (file, expected) => {
  const text = read(file);
  expect(text).toContain(read("NOTICE"));
  const packages = named(text);
  expect([...packages.keys()]).toEqual(expect.arrayContaining(expected));
  for (const licence of packages.values()) expect(FREE).toContain(licence);
  expect(text).toContain(read(`node_modules/${TYPEFACE}/LICENSE`).trim());
});
