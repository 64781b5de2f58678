import { AttnError, type Engine, type StateDict, type Tensor } from "attnscope";
import { type InputName, type Kind, type Layer, type Matrix, typedInput, typedLayers } from "./matrices.ts";
import { makeModel } from "./model.ts";
import { LIMITS, type Numbers } from "./state.ts";

/** Why nothing was taken from a file. */
export interface FileProblem {
  /**
   * An engine's code, or one of the page's own: `no_numbers`, `too_many_numbers`, `no_matrix`, `wrong_rows`,
   * `no_stage`, `too_wide`, `heads`.
   */
  readonly code: string;
  /** Where it is in the file, what is there, and what would have been taken. */
  readonly details: Readonly<Record<string, unknown>>;
  readonly message: string;
}

class FileRefusal extends Error {
  constructor(
    readonly code: string,
    readonly details: FileProblem["details"],
  ) {
    super(code);
  }
}

export function toFileProblem(error: unknown): FileProblem {
  const { code, details } =
    error instanceof AttnError || error instanceof FileRefusal ? error : { code: "unexpected", details: {} };
  return { code, details, message: error instanceof Error ? error.message : String(error) };
}

/** What a file is to fit. */
export interface Fitting {
  /** The input that a matrix becomes, and how many rows it has. */
  readonly input: InputName;
  readonly rows: number;
  readonly kind: Kind;
  readonly nHeads: number;
  readonly isSplitEvenly: boolean;
}

/** What a file fills: some of the matrices, and the sizes that come with them. */
interface Filled {
  readonly inputs: Partial<Record<InputName, Matrix>>;
  /** Null where the file is an input's. */
  readonly layers: readonly Layer[] | null;
  readonly sizes: Partial<Numbers>;
}

// What is taken is saved with the state, which is not read again beyond its own limit.
const MOST_NUMBERS = 5_000_000;

/** Of a pass, as the page saves it, the stage that an input was; of other files everything. */
function entriesToTake(tensors: StateDict, input: InputName): [string, Tensor][] {
  const entries = Object.entries(tensors);
  const stage = (...names: readonly string[]) =>
    entries.filter(([name]) => names.some((stage) => name === stage || name === `layer1.${stage}`));
  if (stage("scores").length === 0 || stage("weights").length === 0) return entries;
  const taken = input === "x" ? stage("input") : stage("key_input", "memory");
  if (taken.length !== 1) throw new FileRefusal("no_stage", { expected: input === "x" ? "input" : "key_input" });
  return taken;
}

/** A matrix becomes an input, and so does that of a pass; more are the parameters, under any names that the engine knows. */
export async function fill(engine: Engine, tensors: StateDict, fitting: Fitting): Promise<Filled> {
  const entries = entriesToTake(tensors, fitting.input);
  const count = entries.reduce((sum, [, { data }]) => sum + data.length, 0);
  if (count === 0) throw new FileRefusal("no_numbers", {});
  if (count > MOST_NUMBERS) throw new FileRefusal("too_many_numbers", { found: count, expected: MOST_NUMBERS });
  const [only] = entries;
  return entries.length === 1 && only ? fillInput(...only, fitting) : fillParameters(engine, tensors, fitting);
}

function fillInput(entry: string, { data, shape }: Tensor, fitting: Fitting): Filled {
  const [found = 0, dModel = 0] = shape.slice(-2);
  if (shape.length < 2 || found * dModel !== data.length) throw new FileRefusal("no_matrix", { entry, found: shape });
  const { input, rows, nHeads, isSplitEvenly } = fitting;
  if (found !== rows) throw new FileRefusal("wrong_rows", { found, expected: rows });
  checkSize(dModel);
  if (isSplitEvenly) perHead(dModel, nHeads);
  const inputs = { [input]: typedInput({ data, shape: [found, dModel] }) };
  return { inputs, layers: null, sizes: { dModel: String(dModel) } };
}

function checkSize(size: number): void {
  if (size > LIMITS.dModel) throw new FileRefusal("too_wide", { found: size, expected: LIMITS.dModel });
}

function perHead(size: number, nHeads: number): number {
  checkSize(size);
  if (size % nHeads !== 0) throw new FileRefusal("heads", { found: size, expected: nHeads });
  return size / nHeads;
}

interface Sizes {
  readonly dModel: number;
  readonly dK: number;
  readonly dV: number;
}

interface Found extends Sizes {
  readonly dFf: number;
  readonly nLayers: number;
}

/** Sizes that a dict may be of, the likeliest first: the page's own names tell them, else each size that is in it. */
function likelySizes(tensors: StateDict, nHeads: number): readonly Sizes[] {
  const { "query.weight": query, "value.weight": value } = tensors;
  if (query && value) {
    const [keys = 0, dModel = 0] = query.shape;
    checkSize(dModel);
    return [{ dModel, dK: perHead(keys, nHeads), dV: perHead(value.shape[0] ?? 0, nHeads) }];
  }
  const counts = new Map<number, number>();
  for (const { shape } of Object.values(tensors)) {
    if (shape.length === 2) for (const size of shape) counts.set(size, (counts.get(size) ?? 0) + 1);
  }
  const [likeliest = 0, ...others] = [...counts].sort(([, one], [, other]) => other - one).map(([size]) => size);
  const each = perHead(likeliest, nHeads);
  const rest = others
    .filter((size) => size <= LIMITS.dModel && size % nHeads === 0)
    .map((size) => [size, size / nHeads] as const);
  return [[likeliest, each] as const, ...rest].map(([dModel, d]) => ({ dModel, dK: d, dV: d }));
}

/** How many layers the names of a dict count. */
function layersIn(names: readonly string[]): number {
  const counted = names.map((name) => Number(/(?:^|\.)(?:layers?|h|blocks?|blk)\.(\d+)\./.exec(name)?.[1] ?? 0));
  return Math.min(LIMITS.nLayers, Math.max(...counted) + 1);
}

/** Widths that a feed-forward network may have in a dict, which leads there from d_model and back; the widest first. */
function feedForwardSizes(tensors: StateDict, dModel: number): readonly number[] {
  const shapes = new Set(Object.values(tensors).map(({ shape }) => shape.join()));
  const sizes = Object.values(tensors)
    .map(({ shape: [size = 0] }) => size)
    .filter((size) => size <= LIMITS.dFf && shapes.has(`${size},${dModel}`) && shapes.has(`${dModel},${size}`));
  return sizes.length > 0 ? [...new Set(sizes)].sort((one, other) => other - one) : [dModel];
}

async function fillParameters(engine: Engine, tensors: StateDict, { kind, nHeads }: Fitting): Promise<Filled> {
  const refusals: unknown[] = [];
  const nLayers = kind === "attention" ? 1 : layersIn(Object.keys(tensors));
  for (const { dModel, dK, dV } of likelySizes(tensors, nHeads)) {
    for (const dFf of kind === "attention" ? [0] : feedForwardSizes(tensors, dModel)) {
      // Without biases a block's norms are another model's: RMSNorm has none.
      for (const bias of kind === "attention" ? [true, false] : [true]) {
        try {
          const model = makeModel(engine, kind, {
            dModel,
            nHeads,
            dK,
            dV,
            bias,
            scale: undefined,
            blocks: { nLayers, dFf },
          });
          await model.loadStateDict(tensors);
          const layers = typedLayers(await model.stateDict(), kind, nLayers);
          return { inputs: {}, layers, sizes: typedSizes({ dModel, dK, dV, dFf, nLayers }, nHeads, kind) };
        } catch (error) {
          refusals.push(error);
        }
      }
    }
  }
  throw refusals[0];
}

function typedSizes({ dModel, dK, dV, dFf, nLayers }: Found, nHeads: number, kind: Kind): Partial<Numbers> {
  const isEven = dK * nHeads === dModel && dV === dK;
  const [k, v] = isEven ? ["", ""] : [String(dK), String(dV)];
  const sizes = { dModel: String(dModel), nHeads: String(nHeads), dK: k, dV: v };
  return kind === "attention" ? sizes : { ...sizes, dFf: String(dFf), nLayers: String(nLayers) };
}
