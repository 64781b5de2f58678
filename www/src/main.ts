import "@fontsource/ibm-plex-sans/latin-400.css";
import "@fontsource/ibm-plex-sans/latin-600.css";
import "./app.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { opened } from "./keeper.svelte.ts";
import { keepOffline } from "./offline.ts";

mount(App, { target: document.querySelector("#app") as HTMLElement, props: { opened: await opened() } });
// Without it the page works all the same.
keepOffline().catch(() => {});
