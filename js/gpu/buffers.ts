// Buffers of a device: what they are for, and copying out of them.

/** `GPUBufferUsage` and `GPUMapMode`, which TypeScript's library does not declare. */
export const [MAP_READ, COPY_SRC, COPY_DST, UNIFORM, STORAGE] = [0x1, 0x4, 0x8, 0x40, 0x80] as const;

/** A piece of a buffer. */
export interface Piece {
  readonly buffer: GPUBuffer;
  /** In bytes. */
  readonly from: number;
  readonly bytes: number;
}

/** Submits what is encoded, and copies pieces of buffers out, one behind the other. */
export async function copiedOut(
  device: GPUDevice,
  encoder: GPUCommandEncoder,
  pieces: readonly Piece[],
): Promise<ArrayBuffer> {
  const size = pieces.reduce((sum, { bytes }) => sum + bytes, 0);
  const staging = device.createBuffer({ size: Math.max(size, 4), usage: MAP_READ | COPY_DST });
  let at = 0;
  for (const { buffer, from, bytes } of pieces) {
    encoder.copyBufferToBuffer(buffer, from, staging, at, bytes);
    at += bytes;
  }
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(MAP_READ);
  const copied = staging.getMappedRange().slice(0, size);
  staging.destroy();
  return copied;
}
