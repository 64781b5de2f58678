import type { Tensor } from "attnscope";
import { atOnce, SLICE } from "./in-slices.ts";

// Tensors here are [heads, rows, columns]; cells of a mask are that long, or one matrix that holds for all heads.

/** All heads as they are numbered, or the most focused first. */
export function orderOf(nHeads: number, entropy: readonly number[] | null): number[] {
  const heads = Array.from({ length: nHeads }, (_, head) => head);
  return entropy ? heads.sort((a, b) => (entropy[a] ?? 0) - (entropy[b] ?? 0)) : heads;
}

function matrixSize({ shape: [, rows = 1, columns = 1] }: Tensor): number {
  return rows * columns;
}

export function inOrder(values: Tensor, order: readonly number[]): Tensor {
  const size = matrixSize(values);
  const data = new Float32Array(order.length * size);
  order.forEach((head, place) => {
    data.set(values.data.subarray(head * size, (head + 1) * size), place * size);
  });
  return { data, shape: [order.length, ...values.shape.slice(1)] };
}

export function cellsInOrder(cells: Uint8Array, size: number, order: readonly number[]): Uint8Array {
  if (cells.length === size) return cells;
  const ordered = new Uint8Array(order.length * size);
  order.forEach((head, place) => {
    ordered.set(cells.subarray(head * size, (head + 1) * size), place * size);
  });
  return ordered;
}

const means = new WeakMap<Float32Array, { readonly of: string; readonly made: Tensor }>();

/** Makes the {@link meanOf} some heads in slices. */
export function* averaging(values: Tensor, heads: readonly number[]): Generator<void> {
  const size = matrixSize(values);
  const data = new Float32Array(size);
  for (const head of heads) {
    const from = values.data.subarray(head * size, (head + 1) * size);
    for (let start = 0; start < size; start += SLICE) {
      const end = Math.min(size, start + SLICE);
      for (let i = start; i < end; i++) data[i] = (data[i] as number) + (from[i] as number) / heads.length;
      yield;
    }
  }
  means.set(values.data, { of: String(heads), made: { data, shape: [1, ...values.shape.slice(1)] } });
}

/** Whether {@link meanOf} takes no longer than the page can wait. */
export function isMeanAtHand(values: Tensor, heads: readonly number[]): boolean {
  return values.data.length <= SLICE || means.get(values.data)?.of === String(heads);
}

/** The mean of some heads, as one matrix; made once for a pass. */
export function meanOf(values: Tensor, heads: readonly number[]): Tensor {
  if (means.get(values.data)?.of !== String(heads)) atOnce(averaging(values, heads));
  return means.get(values.data)?.made as Tensor;
}

/** Nonzero where a cell is so in every one of some heads. */
export function cellsOfAll(cells: Uint8Array, size: number, heads: readonly number[]): Uint8Array {
  if (cells.length === size) return cells;
  return Uint8Array.from({ length: size }, (_, i) => (heads.every((head) => cells[head * size + i] !== 0) ? 1 : 0));
}
