import { store, stored } from "./storage.ts";
import { en, LANGUAGES, type Language, type Text } from "./text.ts";

const KEY = "attnscope.language";

/** The language that was chosen before, else the browser's where the page speaks it. */
export function preferredLanguage(): Language {
  const known = LANGUAGES.find(({ value }) => value === stored(KEY));
  return known?.value ?? (navigator.language.startsWith("zh") ? "zh" : "en");
}

export function storeLanguage(language: Language): void {
  store(KEY, language);
}

/** The page's words; those of other languages come when they are asked for. */
export async function textOf(language: Language): Promise<Text> {
  return language === "en" ? en : (await import("./text-zh.ts")).zh;
}
