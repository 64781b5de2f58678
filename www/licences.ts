// What a bundle contains of others, with their licences: the file `licences.txt` beside it.
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin, Rolldown } from "vite";

const repository = fileURLToPath(new URL("..", import.meta.url));
const RULE = `\n${"-".repeat(116)}\n`;

/** The package that a module or an asset is of. */
function packageOf(file: string): string[] {
  // What bundlers add of their own.
  const [, helper] = /^\0(vite|rolldown)\//.exec(file) ?? [];
  const [, found] = /.*\bnode_modules\/((?:@[^/]+\/)?[^@./][^/]*)\//.exec(file.replaceAll("\\", "/")) ?? [];
  return helper ? [helper] : found ? [found] : [];
}

function licenceOf(name: string): string {
  const folder = path.join(repository, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  if (!file) throw new Error(`${name} comes without the text of its licence`);
  // A bundler's file also holds the licences of what it is itself made of.
  const [text = ""] = readFileSync(path.join(folder, file), "utf8").split("# Licenses of bundled dependencies");
  return `${name} ${version}, ${license}\n\n${text.trim()}\n`;
}

/** The licences of all that some files contain, after those of the package. */
export function licencesOf(files: readonly (Rolldown.OutputAsset | Rolldown.OutputChunk)[]): string {
  const parts = files.flatMap((file) => (file.type === "chunk" ? file.moduleIds : file.originalFileNames));
  const packages = [...new Set(parts.flatMap(packageOf))].sort();
  const notice = readFileSync(path.join(repository, "NOTICE"), "utf8");
  return [notice, ...packages.map(licenceOf)].join(RULE);
}

export function licences(): Plugin {
  return {
    name: "licences",
    apply: "build",
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        this.emitFile({ type: "asset", fileName: "licences.txt", source: licencesOf(Object.values(bundle)) });
      },
    },
  };
}
