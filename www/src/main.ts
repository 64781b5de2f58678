import "@fontsource/ibm-plex-sans/latin-400.css";
import "@fontsource/ibm-plex-sans/latin-600.css";
import "./app.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { opened } from "./keeper.svelte.ts";
import { preferredLanguage, textOf } from "./language.ts";
import { keepOffline } from "./offline.ts";

const language = preferredLanguage();
const [state, text] = await Promise.all([opened(), textOf(language)]);
mount(App, { target: document.querySelector("#app") as HTMLElement, props: { opened: state, language, text } });
// Without it the page works all the same.
keepOffline().catch(() => {});
