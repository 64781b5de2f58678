/** Why something that was to be opened was not, and where in it. */
export class Unreadable extends Error {
  constructor(
    readonly code: "damaged" | "too_large" | "newer" | "wrong_value",
    /** The field that is wrong, such as `masks[0].terms[2].rule`. */
    readonly path = "",
  ) {
    super(path === "" ? code : `${code}: ${path}`);
  }
}

/** Takes what came from outside and gives it typed, or throws {@link Unreadable}. */
export type Reader<T> = (value: unknown, path: string) => T;

function wrong(path: string): never {
  throw new Unreadable("wrong_value", path);
}

export function oneOf<const T>(...values: readonly T[]): Reader<T> {
  return (value, path) => values.find((known) => known === value) ?? wrong(path);
}

export const flag: Reader<boolean> = (value, path) => (typeof value === "boolean" ? value : wrong(path));

export function text(longest: number): Reader<string> {
  return (value, path) => (typeof value === "string" && value.length <= longest ? value : wrong(path));
}

export function whole(least: number, most: number): Reader<number> {
  return (value, path) =>
    typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most ? value : wrong(path);
}

export function list<T>(item: Reader<T>, least: number, most: number): Reader<readonly T[]> {
  return (value, path) =>
    Array.isArray(value) && value.length >= least && value.length <= most
      ? value.map((entry, i) => item(entry, `${path}[${i}]`))
      : wrong(path);
}

export function orNull<T>(reader: Reader<T>): Reader<T | null> {
  return (value, path) => (value === null ? null : reader(value, path));
}

/** An object of known fields. One that is missing is as in `defaults`; one that is not known is refused. */
export function record<T extends object>(fields: { readonly [K in keyof T]: Reader<T[K]> }, defaults: T): Reader<T> {
  return (value, path) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return wrong(path);
    const at = (name: string) => (path === "" ? name : `${path}.${name}`);
    const given = value as Readonly<Record<string, unknown>>;
    for (const name of Object.keys(given)) if (!Object.hasOwn(fields, name)) wrong(at(name));
    const names = Object.keys(fields) as (keyof T & string)[];
    return Object.fromEntries(
      names.map((name) => [name, Object.hasOwn(given, name) ? fields[name](given[name], at(name)) : defaults[name]]),
    ) as T;
  };
}
