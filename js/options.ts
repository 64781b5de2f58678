import { invalidOption, refusedOption } from "./errors.ts";
import { kindOf } from "./shown.ts";

/** Options that may be left out, or be undefined, which is the same. */
export type Given<T> = { [Name in keyof T]?: T[Name] | undefined };

/**
 * The options that a caller gave. An entry that is undefined means the default, as one that is missing does.
 *
 * @throws AttnError `invalid_option` for what is no object, and for a name that is not known where the engine does not look
 */
export function given<T extends object>(options: T, known?: readonly (keyof T)[]): T {
  if (kindOf(options) !== "Object") throw invalidOption("options", options, "an object");
  const chosen = { ...options };
  for (const name of Object.keys(chosen) as (keyof T & string)[]) {
    if (chosen[name] === undefined) delete chosen[name];
    else if (known && !known.includes(name)) {
      throw refusedOption(name, "an unknown option", `one of ${known.join(", ")}`);
    }
  }
  return chosen;
}
