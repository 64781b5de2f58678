// Values as errors tell of them: short, and of which kind they are.

const LONGEST = 100;

/** What kind of object it is, of whichever realm: "Float32Array", "Blob". */
export function kindOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

/** The text, or what it begins with where it is long. */
export function short(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

/** Such as `"abc"`, `a bigint 1n`, `an array of 500` or `a Float32Array of 8`. */
export function shown(value: unknown): string {
  if (typeof value === "string") return `"${short(value)}"`;
  if (typeof value === "bigint") return short(`a bigint ${value}n`);
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null) return short(String(value));
  const kind = kindOf(value);
  const name = kind === "Array" || kind === "Object" ? kind.toLowerCase() : kind;
  const { length } = value as { length?: unknown };
  return `${/^[aeio]/i.test(name) ? "an" : "a"} ${name}${kind.endsWith("Array") ? ` of ${length}` : ""}`;
}
