import { fromBase64, toBase64 } from "./base64.ts";
import { Unreadable } from "./reader.ts";
import { type BenchState, readState, writeState } from "./state.ts";

/** Longer links are cut by mail programs and chats. */
export const LONGEST_LINK = 8000;

/** No state that a person makes by hand is larger; what a few bytes unfold to beyond it is never read. */
export const LARGEST_STATE = 32_000_000;

async function through(
  bytes: Uint8Array<ArrayBuffer>,
  stream: CompressionStream | DecompressionStream,
): Promise<Uint8Array<ArrayBuffer>> {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    chunks.push(part.value);
    size += part.value.length;
    if (size > LARGEST_STATE) {
      await reader.cancel();
      throw new Unreadable("too_large");
    }
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

/** The bytes that were deflated and written as base64. @throws for what is no such text */
export function unpacked(text: string): Promise<Uint8Array<ArrayBuffer>> {
  return through(fromBase64(text), new DecompressionStream("deflate-raw"));
}

/** What stands behind the # of a link. */
export async function toLink(state: BenchState): Promise<string> {
  const json = writeState(state);
  const packed = await through(new TextEncoder().encode(json), new CompressionStream("deflate-raw"));
  return toBase64(packed);
}

/** @throws Unreadable */
export async function fromLink(link: string): Promise<BenchState> {
  if (link.length > LARGEST_STATE) throw new Unreadable("too_large");
  let json: string;
  try {
    json = new TextDecoder("utf-8", { fatal: true }).decode(await unpacked(link));
  } catch (error) {
    throw error instanceof Unreadable ? error : new Unreadable("damaged");
  }
  return readState(json);
}
