import { type Engine, mask, type Tensor } from "attnscope";

const N = 45;

/**
 * NaN in each key in turn makes NaN of every weight of the queries that see it and of no other, whatever instructions compute them: of
 * some that are quicker a runtime may choose what NaN gives. Says where that does not hold.
 */
export async function nanKeys(engine: Engine): Promise<string[]> {
  const generator = engine.torchGenerator(5);
  const [query, key, value] = await Promise.all([0, 1, 2].map(() => generator.randn([1, N, 8])));
  const wrong: string[] = [];
  for (const [name, rule, sees] of RULES) {
    for (let at = 0; at < N; at++) {
      const poisoned = { data: Float32Array.from((key as Tensor).data), shape: [1, N, 8] };
      poisoned.data[8 * at] = Number.NaN;
      const pass = engine.scaledDotProductAttention(query as Tensor, poisoned, value as Tensor, { mask: rule });
      const { weights } = await pass;
      for (let row = 0; row < N; row++) {
        const shares = weights.data.subarray(row * N, (row + 1) * N);
        if (!shares.every((share) => Number.isNaN(share) === sees(row, at))) wrong.push(`${name}: ${at} in row ${row}`);
      }
    }
  }
  return wrong;
}

const RULES = [
  ["all", null, () => true],
  ["causal", mask.causal(), (row: number, at: number) => at <= row],
  ["window", mask.slidingWindow(3), (row: number, at: number) => Math.abs(row - at) < 3],
] as const;
