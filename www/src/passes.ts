import type { EmptyRow, Engine, Mask, Tensor, Trace } from "attnscope";
import { ALL_SEEDED, INPUTS, inputOf, type Kind, type Matrices, type Matrix, weightsOf } from "./matrices.ts";
import { type Model, makeModel } from "./model.ts";
import type { Base, Side } from "./picture.ts";
import { readableHeads } from "./readable-heads.ts";
import { Refusal } from "./refusal.ts";
import type { Fill } from "./state.ts";
import { buildOf, problemsIn, type Typed, typedNumbers } from "./typed.ts";

/** What passes are asked for. */
export interface Asked extends Typed {
  /** Heads that are switched off. */
  readonly off: readonly number[];
}

type Listener = (part: number) => void;

/** A model and its input: all that a pass needs. */
export interface Prepared {
  readonly asked: Asked;
  readonly model: Model;
  readonly base: Omit<Base, "plain">;
}

/**
 * `before` is what the same engine was prepared with: a model that would be the same is that one, whose passes take over from each
 * other what they have in common.
 *
 * @throws Refusal for what was typed and cannot be used
 */
export async function prepare(engine: Engine, asked: Asked, before: Prepared | null): Promise<Prepared> {
  const [refused, ...others] = problemsIn(asked);
  if (refused) throw new Refusal(refused, others);
  if (asked.numbers.source === "readable") return readable(engine, asked);
  return drawn(engine, asked, before && hasSameModel(before.asked, asked) ? before : null);
}

/** Whether the weights are the same: those that are drawn come behind the inputs that are. */
function hasSameModel(one: Asked, other: Asked): boolean {
  const lengths = ({ tokens, otherTokens }: Asked) => `${tokens.length} ${otherTokens?.length}`;
  const { own, ...sizes } = one.numbers;
  const { own: otherOwn, ...otherSizes } = other.numbers;
  const isDrawn = (matrices: Matrices | null) =>
    INPUTS.map((name) => (matrices ?? ALL_SEEDED)[name].origin === "seed").join();
  return (
    lengths(one) === lengths(other) &&
    Object.entries(sizes).every(([name, value]) => otherSizes[name as keyof typeof sizes] === value) &&
    own?.layers === otherOwn?.layers &&
    isDrawn(own) === isDrawn(otherOwn)
  );
}

/** What every source of numbers has the same of. */
function common({ tokens, otherTokens, numbers, off }: Asked, kind: Kind, nHeads: number) {
  const lines =
    kind === "decoder"
      ? { tokens, keyTokens: tokens, memoryTokens: otherTokens }
      : { tokens, keyTokens: otherTokens ?? tokens, memoryTokens: null };
  return { ...lines, kind, numbers, nHeads, off: off.filter((head) => head < nHeads) };
}

async function readable(engine: Engine, asked: Asked): Promise<Prepared> {
  const { tokens, otherTokens, numbers } = asked;
  const { kind, nLayers } = buildOf(numbers, otherTokens !== null);
  const { x, memory, sizes, weights, features } = readableHeads(tokens, otherTokens ?? tokens, { kind, nLayers });
  const { dFf, ...options } = sizes;
  const blocks = { nLayers, dFf, activation: numbers.activation, normFirst: numbers.normPlace === "before" };
  const model = makeModel(engine, kind, { ...options, scale: undefined, blocks });
  await model.loadStateDict(weights);
  const made = { features, nLayers, sizes, x, memory: otherTokens && memory, weights };
  return { asked, model, base: { ...common(asked, kind, sizes.nHeads), ...made } };
}

/** The inputs and the weights as PyTorch draws them, or in their place those that have another origin. */
async function drawn(engine: Engine, asked: Asked, before: Prepared | null): Promise<Prepared> {
  const { tokens, otherTokens, numbers } = asked;
  const { kind, nLayers } = buildOf(numbers, otherTokens !== null);
  const own = numbers.source === "own" ? numbers.own : null;
  const { seed, dModel, nHeads, dK, dV, dFf, scale } = typedNumbers(asked);
  const sizes = { dModel, nHeads, dK: dK ?? dModel / nHeads, dV: dV ?? dModel / nHeads, dFf };
  const generator = engine.torchGenerator(seed);
  const allTokens = [...tokens, ...(otherTokens ?? [])];
  const input = (matrix: Matrix, line: readonly string[]): Tensor | Promise<Tensor> => {
    if (matrix.origin === "seed") return generator[numbers.draw]([line.length, dModel]);
    return inputOf(matrix, line, allTokens, dModel) ?? engine.ops.sinusoidal(line.length, dModel);
  };
  // Drawn in the order of the program on the page: X, the memory, then the weights.
  const { x: ownX, memory: ownMemory } = own ?? ALL_SEEDED;
  const inputs = [input(ownX, tokens), otherTokens && input(ownMemory, otherTokens)] as const;
  const blocks = { nLayers, dFf, activation: numbers.activation, normFirst: numbers.normPlace === "before" };
  const model = before?.model ?? makeModel(engine, kind, { dModel, nHeads, dK, dV, scale, generator, blocks });
  const [x, memory] = await Promise.all(inputs);
  const weights = before ? before.base.weights : own && weightsOf(own, await model.stateDict(), kind, nLayers);
  if (weights && !before) await model.loadStateDict(weights);
  return { asked, model, base: { ...common(asked, kind, nHeads), features: [], nLayers, sizes, x, memory, weights } };
}

/** The pass without a mask. */
export async function pass({ model, base }: Prepared, onProgress: Listener): Promise<Base> {
  const { nHeads, off, x, memory } = base;
  const headMask =
    off.length === 0 ? undefined : Array.from({ length: nHeads }, (_, head) => (off.includes(head) ? 0 : 1));
  return { ...base, plain: await model.pass(x, memory, { headMask, onProgress }) };
}

/** The same pass under a mask; `from` is one of its passes, the nearer its mask the less is to be made again. */
export async function remask(
  engine: Engine,
  { tokens, keyTokens, nHeads, plain }: Base,
  from: Trace,
  mask: Mask | null,
  { fill, emptyRow }: { readonly fill: Fill; readonly emptyRow: EmptyRow },
  onProgress: Listener,
): Promise<Side> {
  const [nQ, nK] = [tokens.length, keyTokens.length];
  if (mask === null) return { trace: plain, mask, allowed: new Uint8Array(nQ * nK).fill(1), hidden: null };
  const { trace } = await from.remask(mask, { maskFill: fill === "-inf" ? -Infinity : -1e9, emptyRow, onProgress });
  const { allowed } = await engine.materialize(mask, { nQ, nK, nHeads });
  return { trace, mask, allowed, hidden: opposite(allowed) };
}

// Millions of cells, for which calling a function each would hold up the page.
function opposite(cells: Uint8Array): Uint8Array {
  const other = new Uint8Array(cells.length);
  for (let i = 0; i < cells.length; i++) other[i] = 1 - (cells[i] as number);
  return other;
}
