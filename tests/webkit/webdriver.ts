// WebKit, driven by W3C WebDriver: Playwright drives only a WebKit of its own.
import { spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import type { WebKit } from "../../scripts/browsers.mjs";
import { WEBDRIVER } from "../browser/ports.ts";
import type { Point } from "../browser/user.ts";

const KEYS: Record<string, string> = {
  Shift: "\ue008",
  Control: "\ue009",
  Enter: "\ue007",
  End: "\ue010",
  Home: "\ue011",
  ArrowLeft: "\ue012",
  ArrowUp: "\ue013",
  ArrowRight: "\ue014",
  ArrowDown: "\ue015",
};

/** W3C's name for what refers to an element. */
const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";
type Reference = { readonly [ELEMENT]: string };

const PATIENCE = 10_000;

async function request<Value>(method: string, path: string, body?: object): Promise<Value> {
  const response = await fetch(WEBDRIVER + path, { method, ...(body && { body: JSON.stringify(body) }) });
  const { value } = (await response.json()) as { value: Value };
  if (!response.ok) throw new Error(`${method} ${path}: ${(value as { message: string }).message}`);
  return value;
}

/** Starts a driver on a screen of its own; what comes back stops both. */
export async function startDriver({ driver }: WebKit, home: string): Promise<() => Promise<void>> {
  // They end with the pipe to them, however this process does.
  const script = '"$0" "$@" & cat; kill $!';
  const command = [
    "-a",
    "-s",
    "-screen 0 1400x1100x24",
    "sh",
    "-c",
    script,
    driver,
    `--port=${new URL(WEBDRIVER).port}`,
  ];
  const running = spawn("xvfb-run", command, {
    stdio: ["pipe", "inherit", "inherit"],
    env: { ...process.env, HOME: home },
  });
  const ended = new Promise<void>((resolve) => running.once("exit", () => resolve()));
  const end = Date.now() + PATIENCE;
  while (!(await request("GET", "/status").catch(() => null))) {
    if (Date.now() > end) throw new Error("WebKit's driver does not answer");
    await pause(100);
  }
  return () => {
    running.stdin?.end();
    return ended;
  };
}

/** One window, with a storage of its own. */
export class Session {
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  static async open({ browser }: WebKit): Promise<Session> {
    const capabilities = {
      alwaysMatch: { "webkitgtk:browserOptions": { binary: browser, args: ["--automation"] } },
    };
    const { sessionId } = await request<{ sessionId: string }>("POST", "/session", { capabilities });
    return new Session(`/session/${sessionId}`);
  }

  #post<Value = null>(path: string, body: object): Promise<Value> {
    return request("POST", this.#path + path, body);
  }

  async close(): Promise<void> {
    await request("DELETE", this.#path);
  }

  async goto(url: string): Promise<void> {
    await this.#post("/url", { url });
  }

  async resize(width: number, height: number): Promise<void> {
    await this.#post("/window/rect", { width, height });
  }

  async evaluate<Argument, Result>(run: (argument: Argument) => Result, argument: Argument): Promise<Awaited<Result>> {
    const script = `const [argument, done] = arguments;
      new Promise((resolve) => resolve((${run})(argument))).then(
        (value) => done({ value }),
        (error) => done({ error: String(error) }),
      );`;
    const { value, error } = await this.#post<{ value: Awaited<Result>; error?: string }>("/execute/async", {
      script,
      args: [argument ?? null],
    });
    if (error !== undefined) throw new Error(error);
    return value;
  }

  /** Clicks what a selector finds, the first with this text, once it is there and stands still. */
  async click(css: string, text?: string): Promise<void> {
    const script = `const [css, text, done] = arguments;
      const found = [...document.querySelectorAll(css)].find(
        (element) => text === null || element.textContent.trim() === text,
      );
      found?.scrollIntoView({ block: "center", behavior: "instant" });
      const place = () => JSON.stringify(found?.getBoundingClientRect());
      const before = place();
      requestAnimationFrame(() => requestAnimationFrame(() => done(place() === before ? found : null)));`;
    for (const end = Date.now() + PATIENCE; Date.now() < end; await pause(20)) {
      const element = await this.#post<Reference | null>("/execute/async", { script, args: [css, text ?? null] });
      if (element) return this.#post(`/element/${element[ELEMENT]}/click`, {});
    }
    throw new Error(`nothing stands still to be clicked: ${css} ${text ?? ""}`);
  }

  /** Presses keys one after the other, those joined by + together. */
  async press(...strokes: string[]): Promise<void> {
    const actions = strokes.flatMap((stroke) => {
      const keys = stroke.length === 1 ? [stroke] : stroke.split("+").map((key) => KEYS[key] ?? key);
      return [
        ...keys.map((value) => ({ type: "keyDown", value })),
        ...[...keys].reverse().map((value) => ({ type: "keyUp", value })),
      ];
    });
    await this.#post("/actions", { actions: [{ type: "key", id: "keyboard", actions }] });
  }

  async drag(path: readonly Point[]): Promise<void> {
    const [from, ...rest] = path.map(({ x, y }) => ({ type: "pointerMove", x: Math.round(x), y: Math.round(y) }));
    const actions = [from, { type: "pointerDown", button: 0 }, ...rest, { type: "pointerUp", button: 0 }];
    await this.#post("/actions", { actions: [{ type: "pointer", id: "mouse", actions }] });
  }
}
