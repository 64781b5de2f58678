import type { StateDict, Tensor } from "attnscope";
import { dictName, parametersOf } from "./matrices.ts";
import type { Sizes } from "./picture.ts";
import type { Build } from "./typed.ts";

/** What each of the readable heads looks at. */
type HeadRole = "previous" | "first" | "same" | "even";

const ROLES: readonly HeadRole[] = ["previous", "first", "same", "even"];

/** Embeddings and weights with which attention itself does what the roles say. */
export interface ReadableModel {
  /** `[n, dModel]`: which word it is, beside where it stands. */
  readonly x: Tensor;
  /** `[nK, dModel]`: the same of the line that keys and values come from. */
  readonly memory: Tensor;
  readonly sizes: Sizes;
  readonly weights: StateDict;
  /** A name for each column of the input and the output. */
  readonly features: readonly string[];
}

const ONE_HOT_LIMIT = 16;

function tensor(rows: number, columns: number): Tensor {
  return { data: new Float32Array(rows * columns), shape: [rows, columns] };
}

function put(matrix: Tensor, row: number, column: number, value: number): void {
  matrix.data[row * (matrix.shape[1] ?? 1) + column] = value;
}

/** Angles per step of the waves that tell `count` places apart: half a turn, a quarter, an eighth, ... */
function waves(count: number): number[] {
  return Array.from({ length: Math.ceil(Math.log2(Math.max(2, count))) + 1 }, (_, k) => Math.PI / 2 ** k);
}

// cos(90°) is 0, not 6e-17: these numbers are there to be read.
const tidy = (value: number) => Math.round(value * 1e9) / 1e9;

/** Place `i` as a cosine and a sine of each wave. Two places are alike only where all their waves agree. */
function place(i: number, angles: readonly number[]): number[] {
  return angles.flatMap((angle) => [tidy(Math.cos(angle * i)), tidy(Math.sin(angle * i))]);
}

/** The two columns of wave `k`, by its length in steps: cos₂ and sin₂ are the fastest. */
function waveNames(prefix: string, k: number): string[] {
  const length = String(2 ** (k + 1)).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[Number(digit)] ?? digit);
  return [`${prefix}cos${length}`, `${prefix}sin${length}`];
}

function oneHot(i: number, size: number): number[] {
  return Array.from({ length: size }, (_, k) => (k === i ? 1 : 0));
}

/**
 * Four heads a person can read: the previous token, the first token, the same word, and all tokens evenly.
 *
 * An embedding is `[word | position]`. "Previous" turns each wave of the query back by one step, so that it meets the
 * key one place earlier; "first" asks for position 0 whatever the token, through the bias; "same" compares the words;
 * "even" asks for nothing, so every score is 0. Values carry the word, and the output is the mean over heads.
 *
 * Blocks have such heads in every layer. In their feed-forward network a hidden unit stands for each number of a word: it
 * is lit where that stands out, and adds it once more.
 */
export function readableHeads(
  tokens: readonly string[],
  keyTokens: readonly string[],
  { kind, nLayers }: Build,
): ReadableModel {
  const spelled = (line: readonly string[]) => line.map((token) => token.toLowerCase());
  const vocabulary = [...new Set([...spelled(tokens), ...spelled(keyTokens)])];
  const angles = waves(Math.max(tokens.length, keyTokens.length));
  const wordAngles = waves(vocabulary.length);
  const isOneHot = vocabulary.length <= ONE_HOT_LIMIT;
  const identity = (word: number) => (isOneHot ? oneHot(word, vocabulary.length) : place(word, wordAngles));

  const wordSize = isOneHot ? vocabulary.length : 2 * wordAngles.length;
  const positionSize = 2 * angles.length;
  const dModel = wordSize + positionSize;
  const nHeads = ROLES.length;
  const dK = Math.max(wordSize, positionSize);
  // A block's heads have values as wide as their keys: the rest is 0.
  const dV = kind === "attention" ? wordSize : dK;

  const embed = (line: readonly string[]) => {
    const rows = tensor(line.length, dModel);
    spelled(line).forEach((word, i) => {
      rows.data.set([...identity(vocabulary.indexOf(word)), ...place(i, angles)], i * dModel);
    });
    return rows;
  };

  // How far the wanted score stands above the others once it was divided by sqrt(d_k): enough for a weight near 0.9.
  const margin = (2 + Math.log(keyTokens.length)) * Math.sqrt(dK);
  const byPlace = margin / 3;
  const byWord = isOneHot ? margin : margin / 3;

  const queryWeight = tensor(nHeads * dK, dModel);
  const keyWeight = tensor(nHeads * dK, dModel);
  const valueWeight = tensor(nHeads * dV, dModel);
  const outWeight = tensor(dModel, nHeads * dV);
  const queryBias = new Float32Array(nHeads * dK);
  const rowsOf = (role: HeadRole) => ROLES.indexOf(role) * dK;

  angles.forEach((angle, k) => {
    const [cosine, sine] = [wordSize + 2 * k, wordSize + 2 * k + 1];
    const row = rowsOf("previous") + 2 * k;
    const [back, aside] = [byPlace * tidy(Math.cos(angle)), byPlace * tidy(Math.sin(angle))];
    put(queryWeight, row, cosine, back);
    put(queryWeight, row, sine, aside);
    put(queryWeight, row + 1, cosine, -aside);
    put(queryWeight, row + 1, sine, back);
  });
  queryBias.set(
    place(0, angles).map((value) => byPlace * value),
    rowsOf("first"),
  );
  for (let d = 0; d < positionSize; d++) {
    put(keyWeight, rowsOf("previous") + d, wordSize + d, 1);
    put(keyWeight, rowsOf("first") + d, wordSize + d, 1);
  }
  for (let d = 0; d < wordSize; d++) {
    put(queryWeight, rowsOf("same") + d, d, byWord);
    put(keyWeight, rowsOf("same") + d, d, 1);
    for (let head = 0; head < nHeads; head++) {
      put(valueWeight, head * dV + d, d, 1);
      put(outWeight, d, head * dV + d, 1 / nHeads);
    }
  }

  const firstWeight = tensor(wordSize, dModel);
  const lastWeight = tensor(dModel, wordSize);
  for (let d = 0; d < wordSize; d++) {
    put(firstWeight, d, d, 1);
    put(lastWeight, d, d, 1);
  }

  const filled = (size: number, value: number): Tensor => ({ data: new Float32Array(size).fill(value), shape: [size] });
  const attention = {
    query: [queryWeight, { data: queryBias, shape: [nHeads * dK] }],
    key: [keyWeight, filled(nHeads * dK, 0)],
    value: [valueWeight, filled(nHeads * dV, 0)],
    out: [outWeight, filled(dModel, 0)],
  } as const;
  const norm = [filled(dModel, 1), filled(dModel, 0)] as const;
  const parameters = {
    ...attention,
    cross_query: attention.query,
    cross_key: attention.key,
    cross_value: attention.value,
    cross_out: attention.out,
    linear1: [firstWeight, filled(wordSize, -1)],
    linear2: [lastWeight, filled(dModel, 0)],
    norm1: norm,
    norm2: norm,
    norm3: norm,
  } as const;
  const weights: StateDict = {};
  for (let layer = 0; layer < nLayers; layer++) {
    for (const name of parametersOf(kind)) {
      const at = dictName(name, layer, kind);
      [weights[`${at}.weight`], weights[`${at}.bias`]] = parameters[name];
    }
  }

  return {
    x: embed(tokens),
    memory: embed(keyTokens),
    sizes: { dModel, nHeads, dK, dV, dFf: wordSize },
    weights,
    features: [
      ...(isOneHot ? vocabulary : wordAngles.flatMap((_, k) => waveNames("word", k))),
      ...angles.flatMap((_, k) => waveNames("", k)),
    ],
  };
}
