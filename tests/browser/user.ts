import { readdir, readFile, rm } from "node:fs/promises";
import path from "node:path";
import { expect } from "@playwright/test";

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** What a person does in a browser, whoever drives it. Keys are named as the DOM does, together with a + between. */
export interface User {
  /** Opens an address, from the site's root. */
  open(address: string): Promise<void>;
  /** Clicks what a selector finds, the first with this text. */
  click(css: string, text?: string): Promise<void>;
  press(...keys: string[]): Promise<void>;
  drag(path: readonly Point[]): Promise<void>;
  resize(width: number, height: number): Promise<void>;
  /** Runs in the page. */
  evaluate<Argument, Result>(run: (argument: Argument) => Result, argument: Argument): Promise<Awaited<Result>>;
  /** The file that a click on this gives. */
  saved(css: string): Promise<{ name: string; text: string }>;
}

/** Types in place of what a field holds. */
export async function fill(user: User, css: string, text: string): Promise<void> {
  await user.click(css);
  await user.press("Control+a", ...text);
}

export const textOf = (user: User, css: string) =>
  user.evaluate((css) => document.querySelector(css)?.textContent.replace(/\s+/g, " ").trim(), css);

export const textsOf = (user: User, css: string) =>
  user.evaluate((css) => [...document.querySelectorAll(css)].map(({ textContent }) => textContent.trim()), css);

export const contentOf = (user: User, css: string) =>
  user.evaluate((css) => document.querySelector<HTMLInputElement>(css)?.value, css);

export const attributeOf = (user: User, css: string, name: string) =>
  user.evaluate(([css, name]) => document.querySelector(css)?.getAttribute(name) ?? null, [css, name] as const);

export const countOf = (user: User, css: string) => user.evaluate((css) => document.querySelectorAll(css).length, css);

/** What the page comes to say. */
export const see = <Value>(read: () => Promise<Value>) => expect.poll(read, { intervals: [50, 100, 200] });

/** Where cells of a grid are in the window, once it is drawn in that size. */
export async function centres(user: User, css: string, size: number, cells: readonly (readonly [number, number])[]) {
  const drawn = (css: string) => {
    const [grid, cell] = [css, `${css} [role=gridcell]`].map((css) => document.querySelector(css));
    return grid && cell && Math.round(grid.clientHeight / cell.clientHeight);
  };
  await see(() => user.evaluate(drawn, css)).toBe(size);
  return user.evaluate(
    ([css, size, cells]) => {
      const grid = document.querySelector(css) as HTMLElement;
      grid.scrollIntoView({ block: "center", behavior: "instant" });
      const { x, y, width, height } = grid.getBoundingClientRect();
      return cells.map(([row, column]) => ({
        x: x + ((column + 0.5) * width) / size,
        y: y + ((row + 0.5) * height) / size,
      }));
    },
    [css, size, cells] as const,
  );
}

/** The file that comes to lie in a folder, which is empty again then. */
export async function savedIn(folder: string): Promise<{ name: string; text: string }> {
  const find = async () => (await readdir(folder)).find((name) => name.endsWith(".csv"));
  await expect.poll(find).toBeDefined();
  const name = (await find()) as string;
  const text = await readFile(path.join(folder, name), "utf8");
  await rm(path.join(folder, name));
  return { name, text };
}
