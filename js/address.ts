// Addresses of the package's parts, as callers give them.
import { kindOf } from "./shown.ts";

export function isAddress(value: unknown): value is string | URL {
  return typeof value === "string" || kindOf(value) === "URL";
}

/** An address said in full, for a worker's own is another; null for what is none. */
export function inFull(address: string | URL): string | null {
  const base = globalThis.document?.baseURI ?? globalThis.location?.href;
  return URL.canParse(address, base) ? new URL(address, base).href : null;
}
