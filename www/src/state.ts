import type { EmptyRow, Place, Stage, TorchConvention } from "attnscope";
import type { ScaleKind } from "attnscope/views";
import { type Matrices, MOST_LAYERS, readMatrices } from "./matrices.ts";
import { packed } from "./packed.ts";
import { type Painted, readPainted } from "./painted.ts";
import { flag, list, oneOf, orNull, type Reader, record, text, Unreadable, whole } from "./reader.ts";

export type Source = "readable" | "torch" | "own";
/** What computes: multi-head attention by itself, or a stack of transformer blocks. */
export type ModelKind = "attention" | "blocks";
export type NormPlace = "after" | "before";
export type Draw = "rand" | "randn";
export type Fill = "-1e9" | "-inf";
export type Comparing = "with" | "without" | "difference" | "all";

/** Three ways to look at a stage that leads from queries to keys. */
export type Look = "matrix" | "lines" | "bars";
export type Range = "shared" | "each";

export const RULES = ["causal", "padding", "window", "prefix", "documents", "global", "dilated", "painted"] as const;
export type RuleName = (typeof RULES)[number];

/** The non-linearities that the page offers. */
export const ACTIVATIONS = ["relu", "gelu", "gelu_tanh", "silu"] as const;
export type ActivationName = (typeof ACTIVATIONS)[number];

export const LESSONS = ["head", "several", "causal", "padding", "empty", "scale"] as const;
export type LessonName = (typeof LESSONS)[number];

/** Where the numbers come from. What is typed is kept as it is typed, so that what cannot be used can be mended. */
export interface Numbers {
  readonly source: Source;
  readonly draw: Draw;
  readonly seed: string;
  readonly nHeads: string;
  readonly dModel: string;
  /** Nothing for d_model / heads. */
  readonly dK: string;
  readonly dV: string;
  /** The factor of the scores; nothing for 1 / √d_k. */
  readonly scale: string;
  readonly model: ModelKind;
  readonly nLayers: string;
  /** Nothing for 4 d_model. */
  readonly dFf: string;
  readonly activation: ActivationName;
  /** Whether a block's norms stand behind what its branches give, or before what they read. */
  readonly normPlace: NormPlace;
  /** Numbers of one's own; null until they are first asked for. */
  readonly own: Matrices | null;
}

/** One rule of a mask and how it joins those before it. */
export interface Term {
  readonly rule: RuleName;
  readonly join: "and" | "or";
  readonly isNegated: boolean;
}

/** What each rule is told, as typed. */
export interface RuleNumbers {
  readonly padded: string;
  readonly before: string;
  readonly after: string;
  readonly prefix: string;
  readonly starts: string;
  readonly globals: string;
  readonly width: string;
  readonly stride: string;
}

/** A mask as it is put together on the page: terms from left to right, and what is added to the scores. */
export interface MaskState {
  readonly terms: readonly Term[];
  readonly hasAlibi: boolean;
  readonly numbers: RuleNumbers;
  readonly painted: Painted | null;
}

export interface HeadsState {
  /** Heads that are switched off. */
  readonly off: readonly number[];
  /** Those that were off before one was left alone. */
  readonly offBefore: readonly number[];
  readonly isAveraged: boolean;
  readonly isSorted: boolean;
}

/** How the middle shows a stage. */
export interface ViewState {
  readonly looking: Look;
  readonly scale: ScaleKind;
  /** What the colours reach over: all heads, or each head by itself. */
  readonly range: Range;
  /** The convention in which the mask's code is written. */
  readonly convention: TorchConvention;
}

/** How far a lesson has come. */
export interface LessonState {
  readonly name: LessonName;
  /** The step that is being done; the number of steps once all are. */
  readonly step: number;
}

/** What a person has chosen and made: all that undo takes back. */
export interface Work {
  readonly sentence: string;
  /** Where keys and values come from, for cross-attention; null where they come from the sentence itself. */
  readonly keySentence: string | null;
  readonly numbers: Numbers;
  /** One mask, or two that are compared. */
  readonly masks: readonly MaskState[];
  /** Which of the masks is being edited. */
  readonly edited: number;
  readonly fill: Fill;
  readonly emptyRow: EmptyRow;
  readonly comparing: Comparing;
  readonly heads: HeadsState;
  readonly view: ViewState;
  /** Null where the work is one's own. */
  readonly lesson: LessonState | null;
}

/** The bench as plain data: the work, and where one looks. */
export interface BenchState extends Work {
  readonly place: Place;
}

export const LIMITS = {
  sentence: 20_000,
  typed: 20_000,
  tokens: 4096,
  nHeads: 256,
  dModel: 4096,
  dK: 1024,
  scale: 1e6,
  nLayers: MOST_LAYERS,
  dFf: 16_384,
  steps: 8,
} as const;

export const NO_MASK: MaskState = {
  terms: [],
  hasAlibi: false,
  numbers: {
    padded: "1",
    before: "1",
    after: "1",
    prefix: "2",
    starts: "3",
    globals: "0",
    width: "2",
    stride: "2",
  },
  painted: null,
};

export const START: BenchState = {
  sentence: "the cat sat on the mat",
  keySentence: null,
  numbers: {
    source: "readable",
    draw: "rand",
    seed: "42",
    nHeads: "4",
    dModel: "16",
    dK: "",
    dV: "",
    scale: "",
    model: "attention",
    nLayers: "2",
    dFf: "",
    activation: "relu",
    normPlace: "after",
    own: null,
  },
  masks: [NO_MASK],
  edited: 0,
  fill: "-1e9",
  emptyRow: "nan",
  comparing: "with",
  heads: { off: [], offBefore: [], isAveraged: false, isSorted: false },
  view: { looking: "matrix", scale: "linear", range: "shared", convention: "sdpa" },
  lesson: null,
  place: { stage: "weights", layer: 0, head: 0, query: 2, key: 1, feature: 0 },
};

/** The stages of the bench's passes. */
const STAGES = [
  "input",
  "memory",
  "key_input",
  "norm",
  "query",
  "key",
  "value",
  "scores",
  "scaled",
  "masked",
  "weights",
  "context",
  "concat",
  "output",
  "residual",
  "cross_query",
  "cross_key",
  "cross_value",
  "cross_scores",
  "cross_scaled",
  "cross_masked",
  "cross_weights",
  "cross_context",
  "cross_concat",
  "cross_output",
  "residual2",
  "norm2",
  "hidden",
  "activation",
  "feed_forward",
  "residual3",
  "norm3",
] as const satisfies readonly Stage[];
export type BenchStage = (typeof STAGES)[number];

const position = whole(0, LIMITS.sentence);
// Right or wrong: what cannot be used is refused beside its field, where it still stands after a reload.
const typed = text(LIMITS.typed);

const readHeads = list(whole(0, LIMITS.nHeads - 1), 0, LIMITS.nHeads);

const readTerm = record<Term>(
  { rule: oneOf(...RULES), join: oneOf("and", "or"), isNegated: flag },
  { rule: "causal", join: "and", isNegated: false },
);

const readMask = record<MaskState>(
  {
    terms: list(readTerm, 0, RULES.length),
    hasAlibi: flag,
    numbers: record<RuleNumbers>(
      {
        padded: typed,
        before: typed,
        after: typed,
        prefix: typed,
        starts: typed,
        globals: typed,
        width: typed,
        stride: typed,
      },
      NO_MASK.numbers,
    ),
    painted: orNull(readPainted),
  },
  NO_MASK,
);

const readFields: Reader<BenchState> = record<BenchState>(
  {
    sentence: text(LIMITS.sentence),
    keySentence: orNull(text(LIMITS.sentence)),
    numbers: record<Numbers>(
      {
        source: oneOf("readable", "torch", "own"),
        draw: oneOf("rand", "randn"),
        seed: typed,
        nHeads: typed,
        dModel: typed,
        dK: typed,
        dV: typed,
        scale: typed,
        model: oneOf("attention", "blocks"),
        nLayers: typed,
        dFf: typed,
        activation: oneOf(...ACTIVATIONS),
        normPlace: oneOf("after", "before"),
        own: orNull(readMatrices),
      },
      START.numbers,
    ),
    masks: list(readMask, 1, 2),
    edited: whole(0, 1),
    fill: oneOf("-1e9", "-inf"),
    emptyRow: oneOf("nan", "zero"),
    comparing: oneOf("with", "without", "difference", "all"),
    heads: record<HeadsState>({ off: readHeads, offBefore: readHeads, isAveraged: flag, isSorted: flag }, START.heads),
    view: record<ViewState>(
      {
        looking: oneOf("matrix", "lines", "bars"),
        scale: oneOf("linear", "log", "row"),
        range: oneOf("shared", "each"),
        convention: oneOf("sdpa", "mha", "additive"),
      },
      START.view,
    ),
    lesson: orNull(
      record<LessonState>({ name: oneOf(...LESSONS), step: whole(0, LIMITS.steps) }, { name: "head", step: 0 }),
    ),
    place: record<Place>(
      {
        stage: oneOf<string>(...STAGES),
        layer: whole(0, LIMITS.nLayers - 1),
        head: position,
        query: position,
        key: position,
        feature: position,
      },
      START.place,
    ),
  },
  START,
);

const VERSION = 1;

/** The state as JSON; only what differs from the start, so that links stay short. */
export function writeState(state: BenchState): string {
  const fields = (Object.keys(START) as (keyof BenchState)[])
    .map((name) => [name, JSON.stringify(state[name], packed)] as const)
    .filter(([name, json]) => json !== JSON.stringify(START[name]));
  return `{"attnscope":${VERSION}${fields.map(([name, json]) => `,"${name}":${json}`).join("")}}`;
}

/** @throws Unreadable for what is no state, and for a state that holds anything out of range */
export function readState(json: string): BenchState {
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch {
    throw new Unreadable("damaged");
  }
  if (typeof parsed !== "object" || parsed === null || !("attnscope" in parsed)) throw new Unreadable("damaged");
  const { attnscope: version, ...fields } = parsed;
  if (typeof version === "number" && version > VERSION) throw new Unreadable("newer");
  if (version !== VERSION) throw new Unreadable("wrong_value", "attnscope");
  const state = readFields(fields, "");
  if (state.edited >= state.masks.length) throw new Unreadable("wrong_value", "edited");
  return state;
}
