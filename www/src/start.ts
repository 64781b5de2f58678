import "@fontsource/ibm-plex-sans/latin-400.css";
import "@fontsource/ibm-plex-sans/latin-600.css";
import "./app.css";
import { mount } from "svelte";
import App from "./App.svelte";
import type { Home } from "./home.ts";
import { opened } from "./keeper.svelte.ts";
import { preferredLanguage, textOf } from "./language.ts";

export async function start(home: Home): Promise<void> {
  const target = document.querySelector("#app") as HTMLElement;
  const language = preferredLanguage();
  const [state, text] = await Promise.all([opened(home), textOf(language)]);
  mount(App, { target, props: { home, opened: state, language, text } });
}
