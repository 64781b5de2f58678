import { toBase64 } from "./base64.ts";

/** Eight cells a byte. */
function pack(cells: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(cells.length / 8));
  for (let i = 0; i < cells.length; i++) {
    if (cells[i] !== 0) bytes[i >> 3] = (bytes[i >> 3] as number) | (1 << (i & 7));
  }
  return bytes;
}

/** For `JSON.stringify`: the cells of masks as bits and numbers as their bytes, in base64. */
export function packed(_name: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return toBase64(pack(value));
  if (value instanceof Float32Array) return toBase64(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  return value;
}
