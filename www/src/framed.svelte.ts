// The page in the frame of an <attn-scope>: it hears what the element asks for, and tells what happens.
import type { FrameMessage } from "attnscope/elements";
import { untrack } from "svelte";
import type { Bench } from "./bench.svelte.ts";
import { preferredLanguage } from "./language.ts";
import { fromLink } from "./link.ts";
import { placeOf } from "./place.svelte.ts";
import { Unreadable } from "./reader.ts";
import { readState, writeState } from "./state.ts";
import { LANGUAGES, type Language } from "./text.ts";
import { THEMES, type Theme } from "./theme.ts";

const PAUSE = 300;

/** What the element may ask for beside a state. */
interface Page {
  speak(language: Language): unknown;
  dress(theme: Theme): void;
}

export function listenInFrame(bench: Bench, { speak, dress }: Page): void {
  const tell = (told: FrameMessage) => parent.postMessage(told, "*");

  const open = async (state: string) => {
    try {
      bench.open(state.trimStart().startsWith("{") ? readState(state) : await fromLink(state));
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      tell({ attnscope: "error", detail: { code: "bad_file", message: `state: ${error.message}` } });
    }
  };

  addEventListener("message", ({ source, data }) => {
    if (source !== parent || !data?.attnscope || typeof data.attnscope !== "object") return;
    const { state, language, theme } = data.attnscope;
    if (typeof state === "string") void open(state);
    const spoken = language === null ? preferredLanguage() : LANGUAGES.find(({ value }) => value === language)?.value;
    if (spoken) void speak(spoken);
    const dressed = theme === null ? "system" : theme;
    if (THEMES.includes(dressed)) dress(dressed);
  });

  // What the page opens with is no news, nor is its first picture.
  const changes = <T>(read: () => T, hear: (value: T, before: NonNullable<T> | null) => void) => {
    let last = untrack(read);
    $effect(() => {
      const [value, before] = [read(), last];
      last = value;
      if (value !== before && before !== undefined) untrack(() => hear(value, before));
    });
  };

  changes(
    () => placeOf(bench.selection),
    (detail) => tell({ attnscope: "select", detail }),
  );
  let timer = 0;
  changes(
    () => bench.snapshot,
    (snapshot) => {
      clearTimeout(timer);
      timer = window.setTimeout(() => tell({ attnscope: "state", detail: writeState(snapshot) }), PAUSE);
    },
  );
  changes(
    () => bench.picture?.after.allowed,
    (allowed, before) => {
      if (!allowed || !bench.picture || isSame(allowed, before)) return;
      const [rows, columns] = [bench.picture.tokens.length, bench.picture.keyTokens.length];
      const heads = allowed.length / (rows * columns);
      const shape = heads === 1 ? [rows, columns] : [heads, rows, columns];
      tell({ attnscope: "maskchange", detail: { allowed, shape } });
    },
  );
  changes(
    () => bench.problems[0] ?? null,
    (problem, before) => {
      if (!problem || problem.message === before?.message) return;
      const { message, field } = problem;
      tell({ attnscope: "error", detail: { code: "invalid_option", message, field } });
    },
  );
  tell({ attnscope: "ready" });
}

function isSame(one: Uint8Array, other: Uint8Array | null): boolean {
  return one.length === other?.length && one.every((cell, i) => cell === other[i]);
}
