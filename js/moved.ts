/** The same memory in another array; this one is empty then. */
export function moved(data: Float32Array): Float32Array {
  const buffer = data.buffer as ArrayBuffer & { transfer?(): ArrayBuffer };
  if (buffer.transfer) return new Float32Array(buffer.transfer());
  return structuredClone(data, { transfer: [buffer] });
}
