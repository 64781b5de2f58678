// The examples in the comments of the package, and what any program of the documentation says that it prints.
import { readdirSync, readFileSync } from "node:fs";
import { blocksOf } from "./blocks.ts";

export interface Example {
  readonly file: string;
  readonly line: number;
  readonly language: string;
  readonly code: string;
}

const source = new URL("../../js/", import.meta.url);

/** Whether an example draws, and so needs a page. */
export const isDrawn = ({ file }: Example) => /^(views\/|elements)/.test(file);

export const examples: readonly Example[] = readdirSync(source, { recursive: true, encoding: "utf8" })
  .map((file) => file.replaceAll("\\", "/"))
  .filter((file) => file.endsWith(".ts") && file !== "generated.ts" && file !== "gpu/shaders.ts")
  .sort()
  .flatMap((file) => {
    const text = readFileSync(new URL(file, source), "utf8");
    return [...text.matchAll(/\/\*\*\n(.*?)\*\//gs)].flatMap(({ 1: comment = "", index }) => {
      const before = text.slice(0, index).split("\n").length;
      const blocks = blocksOf(comment.replaceAll(/^ *\* ?/gm, ""));
      return blocks.map(({ language, code, line }) => ({ file, line: before + line, language, code }));
    });
  });

/** The comments that say what is printed. */
export function expected(code: string, comment: string): string[] {
  let follows = false;
  return code.split("\n").flatMap((line) => {
    const [, before = line, said] = new RegExp(`^(|.*?\\s)${comment} (.*)$`).exec(line) ?? [];
    const prints = /(console\.log|print)\(/.test(before);
    follows = prints || (follows && said !== undefined && before.trim() === "");
    return follows && said !== undefined ? [said] : [];
  });
}
