import type { EngineInfo, HeadLabel, Stage } from "attnscope";
import type { InspectorText } from "attnscope/views";
import type { Origin } from "./matrices.ts";
import type { Unreadable } from "./reader.ts";
import type { Problem } from "./refusal.ts";
import { plainStage } from "./stages.ts";
import type { BenchStage, Comparing, LessonName, RuleName, RuleNumbers } from "./state.ts";
import type { FileProblem } from "./tensor-files.ts";
import type { Unarranged } from "./tokens.ts";

/** The matrix that a stage is multiplied with. */
const MATRICES: Partial<Record<Stage, string>> = {
  query: "W_Q",
  key: "W_K",
  value: "W_V",
  output: "W_O",
  hidden: "W_1",
  feed_forward: "W_2",
};

/** What a mask took: from one query's row, and from all rows of its head. */
interface Freed {
  readonly head: number;
  readonly query: string;
  readonly row: string;
  readonly all: string;
  readonly rows: number;
}

interface Compared {
  readonly comparing: Record<Comparing, string>;
  readonly sideBySide: Record<Exclude<Comparing, "all">, string>;
  readonly freed: (freed: Freed) => string;
}

export const en = {
  tagline: "An attention microscope: paint a mask, read every number.",
  taglineOfFile: "One file, no network. Changes stay in this tab; Save as page keeps them.",
  language: "Language",
  theme: "Theme",
  themes: { system: "System", light: "Light", dark: "Dark" },

  notLoaded: "This part of the page could not be loaded. Try again when there is a network.",

  lessons: "Lessons",
  lessonTitles: {
    head: "What a head is",
    several: "Why several heads",
    causal: "The causal mask",
    padding: "Padding, and who still leaks",
    empty: "−1e9, −∞ and the empty row",
    scale: "Why √d_k",
  } satisfies Record<LessonName, string> as Record<LessonName, string>,
  lessonOf: (number: number, count: number) => `Lesson ${number} of ${count}`,
  stepDone: "done:",
  lessonDone: "The lesson is done.",
  nextLesson: "Next lesson",
  leaveLesson: "Leave",

  state: "State",
  undo: "Undo",
  redo: "Redo",
  copyLink: "Copy link",
  saveState: "Save",
  savePage: "Save as page",
  openState: "Open",
  dismiss: "Dismiss",
  unreadable: {
    damaged: () => "This cannot be read: it is damaged, or not a saved state of this page.",
    too_large: () => "This cannot be opened: it is too large.",
    newer: () => "This was made by a newer version of the page.",
    wrong_value: (path) => `This cannot be opened: ${path} is out of range or of the wrong kind.`,
  } as Record<Unreadable["code"], (path: string) => string>,
  workIsKept: "Your own work is as it was.",
  linkTooLong: (kilobytes: string) =>
    `This state is too large for a link (${kilobytes} kB). Save gives it as a file, which Open reads.`,
  pageMissing:
    "The page could not be fetched, so it is not saved: that needs the network the first time. All is as it was; Save gives the state alone.",
  notStored: "The browser keeps nothing for this page: what is here is lost with the tab. Save gives it as a file.",

  sentence: "Sentence",
  queries: "Queries",
  keysAndValues: "Keys and values",
  cross: "keys from another line",
  askKey: (token: string) => `key ${token}`,
  tokens: (query: string, head: number) => `What “${query}” attends to in head ${head}. Choose a token to ask another.`,
  askToken: (token: string) => `query ${token}`,

  tokenMenu: "Change the tokens",
  tokenHint: "Drag to move",
  moveLeft: "Move the chosen token left",
  moveRight: "Move it right",
  repeatToken: "Repeat it",
  removeToken: "Remove it",
  repeatLine: "Repeat the whole line",
  notArranged: {
    empty: "A line needs at least one token.",
    joined: "These tokens cannot stand side by side: together they would be read as other tokens.",
    too_long: "The line would be longer than 20,000 characters.",
  } satisfies Record<Unarranged, string> as Record<Unarranged, string>,
  lineCut: (kept: number, count: number | null) =>
    kept > 1
      ? `A line holds 20,000 characters: the first ${kept} ${count === null ? "" : `of ${count} `}tokens were taken.`
      : "A line holds 20,000 characters: only the first were taken.",
  addToken: (token: string) => `Add ${token}`,

  source: "Numbers from",
  sources: { readable: "Readable heads", torch: "PyTorch seed", own: "Own numbers" },
  draw: "X drawn by",
  seed: "Seed",
  nHeads: "Heads",
  dModel: "d_model",
  scoreScale: "scale",
  model: "Model",
  models: { attention: "attention", blocks: "transformer blocks" },
  nLayers: "Layers",
  activation: "Non-linearity",
  norms: "Norms",
  normPlaces: { after: "after", before: "before" },

  ownNumbers: "Own numbers",
  ownNumbersOf: (layer: number) => `Own numbers of layer ${layer}`,
  normWeight: "weight",
  matrix: "Matrix",
  origin: (matrix: string) => `Numbers of ${matrix}`,
  origins: {
    seed: "seed",
    one_hot: "one-hot",
    sinusoidal: "sinusoidal",
    zeros: "zeros",
    identity: "identity",
    one: "1 and 0",
    typed: "typed",
  } satisfies Record<Origin, string> as Record<Origin, string>,
  copyReadable: "Copy readable heads",
  headAndFeature: (head: number, feature: number) => `head ${head} · ${feature}`,
  numberGrid: (matrix: string, rows: number, columns: number) =>
    `${matrix}, ${rows} rows and ${columns} columns of numbers`,
  gridHint:
    "Type into a cell, paste a block from a spreadsheet, or drop a file: .npy, .npz, .csv, .safetensors, .pt. Enter opens a cell, Escape leaves it.",
  openNumbers: "Open a file",
  fileProblem: (file: string, { code, details, message }: FileProblem): string => {
    const { line, column, offset, entry, found, expected } = details;
    const said = `found ${found}, expected ${expected}.`;
    if (code === "bad_file" && line !== undefined) return `${file}, row ${line}, column ${column}: ${said}`;
    if (code === "bad_file" && offset !== undefined) return `${file}, byte ${offset}: ${said}`;
    if (code === "bad_state_dict") return `${file}, ${entry}: ${said}`;
    if (code === "no_numbers") return `${file} holds no numbers.`;
    if (code === "too_many_numbers") return `${file} holds ${found} numbers: more than ${expected}.`;
    if (code === "too_wide") return `${file}: a size of ${found} is more than ${expected}.`;
    if (code === "no_matrix") return `${file}, ${entry}: the shape [${found}] is not that of a matrix.`;
    if (code === "wrong_rows") return `${file} has ${found} rows, and there are ${expected} tokens.`;
    if (code === "no_stage") return `${file} holds a pass without the stage “${expected}”.`;
    if (code === "heads") return `${file}: ${expected} heads do not divide ${found}.`;
    return `${file}: ${message}`;
  },
  numbersAreKept: "The numbers are as they were.",
  notANumber: (row: number, column: number, typed: string, isTooLarge: boolean) =>
    `Row ${row}, column ${column}: “${typed}” is ${isTooLarge ? "too large for float32" : "not a number"}.`,
  numberStays: (number: string, others: number) =>
    others === 0
      ? `${number} stays in use.`
      : `${number} stays in use. ${others} more ${others === 1 ? "cell is" : "cells are"} marked.`,
  pasteTooLarge: (cells: number) =>
    `${cells} pasted ${cells === 1 ? "cell lies" : "cells lie"} outside the grid and ${cells === 1 ? "was" : "were"} left out.`,

  layer: "Layer",
  layerNumber: (layer: number) => `layer ${layer}`,
  stages: "Stages of the pass",
  stage: {
    input: "input",
    memory: "memory",
    key_input: "key input",
    norm: "norm",
    query: "query",
    key: "key",
    value: "value",
    scores: "scores",
    scaled: "scaled",
    masked: "masked",
    weights: "weights",
    context: "context",
    concat: "concat",
    output: "output",
    residual: "residual",
    cross_query: "query ×",
    cross_key: "key ×",
    cross_value: "value ×",
    cross_scores: "scores ×",
    cross_scaled: "scaled ×",
    cross_masked: "masked ×",
    cross_weights: "weights ×",
    cross_context: "context ×",
    cross_concat: "concat ×",
    cross_output: "output ×",
    residual2: "residual 2",
    norm2: "norm 2",
    hidden: "hidden",
    activation: "activation",
    feed_forward: "feed-forward",
    residual3: "residual 3",
    norm3: "norm 3",
  } satisfies Record<BenchStage, string> as Record<BenchStage, string>,
  stageNote: {
    input: "One row a token: which word it is, and where it stands.",
    memory: "What the second attention of each block looks at, one row a token.",
    key_input: "The line that keys and values come from, one row a token.",
    norm: "Each row brought to mean 0 and variance 1.",
    query: "What each token asks for.",
    key: "What each token answers to.",
    value: "What each token hands on.",
    scores: "How well each query meets each key: q · k.",
    scaled: "The scores, divided by √d_k.",
    masked: "The scaled scores; what the mask hides is out of reach.",
    weights: "How each query shares its attention among the keys.",
    context: "The values, mixed by the weights.",
    concat: "The heads' contexts, side by side.",
    output: "The heads put together by W_O.",
    residual: "What attention gave, added to what it read.",
    cross_query: "What each token asks of the other line.",
    cross_key: "What the other line’s tokens answer to.",
    cross_value: "What the other line’s tokens hand on.",
    cross_scores: "How well each query meets each key of the other line.",
    cross_scaled: "These scores, divided by √d_k.",
    cross_masked: "No mask lies on this attention.",
    cross_weights: "How each query shares its attention among the other line’s keys.",
    cross_context: "The other line’s values, mixed by the weights.",
    cross_concat: "The heads’ contexts, side by side.",
    cross_output: "The heads put together by the second W_O.",
    residual2: "What the second branch gave, added to what it read.",
    norm2: "Each row brought to mean 0 and variance 1.",
    hidden: "The feed-forward network’s middle: each token by itself, times W_1.",
    activation: "The non-linearity, number by number.",
    feed_forward: "What the feed-forward network gives: times W_2.",
    residual3: "What the third branch gave, added to what it read.",
    norm3: "Each row brought to mean 0 and variance 1.",
  } satisfies Record<BenchStage, string> as Record<BenchStage, string>,
  axis: { query: "query", key: "key", feature: "feature" },
  head: (head: number) => `head ${head}`,
  gridLabel: (title: string, stage: string, row: string, column: string) =>
    `${title}, ${stage}: rows are ${row}, columns are ${column}`,
  cell: (title: string, row: string, column: string, value: string) => `${title}, ${row}, ${column}, ${value}`,
  axisValue: {
    query: (t: string) => `query ${t}`,
    key: (t: string) => `key ${t}`,
    feature: (t: string) => `feature ${t}`,
  },

  compare: "Show",
  /** What is compared: with and without a mask, or two masks. */
  single: {
    comparing: { with: "with mask", without: "without", difference: "difference", all: "side by side" },
    sideBySide: { without: "without mask", with: "with mask", difference: "difference" },
    freed: ({ head, query, row, all, rows }: Freed) =>
      `Head ${head}: the mask freed ${row} of the attention of query “${query}”, and ${all} of ${rows} over all rows.`,
  } as Compared,
  pair: {
    comparing: { with: "mask B", without: "mask A", difference: "B − A", all: "side by side" },
    sideBySide: { without: "mask A", with: "mask B", difference: "B − A" },
    freed: ({ head, query, row, all, rows }: Freed) =>
      `Head ${head}: from A to B, ${row} of the attention of query “${query}” went to other keys, and ${all} of ${rows} over all rows.`,
  } as Compared,
  look: "Look",
  looks: { matrix: "matrix", lines: "lines", bars: "bars" },
  linesNote: "Faint lines of other queries are left out.",
  notAnalysed: "These are too many weights to say what each head does and what the mask did.",
  linesLabel: (stage: string) => `${stage} as lines from queries to keys: rows are queries, columns are keys`,
  barsLabel: (stage: string) => `${stage} of the selected query as bars: rows are keys, columns are heads`,
  scale: "Colours",
  scales: { linear: "linear", log: "logarithmic", row: "row maximum" },
  range: "Range of the colours",
  ranges: { shared: "shared", each: "per head" },
  hidden: "hidden",
  rowMaximum: "row maximum",
  zoom: {
    zoomIn: "zoom in",
    zoomOut: "zoom out",
    whole: "the whole matrix",
    goTo: (axis: string) => `${axis} number, from 0`,
  },
  effect: "What the mask did",
  effectOfPair: "What changes from A to B",
  freedByHead: (rows: number) => `Freed, of ${rows} a head`,
  gains: "Largest gains",
  gain: (head: string, query: string, key: string) => `${head}, ${query} → ${key}`,
  noGains: "none",
  moved: "How far each output moved",
  token: "token",
  distance: "distance",
  cosine: "cosine",

  saveStage: (stage: string) => `Save ${stage} as`,
  savePass: "the whole pass as",
  savePicture: "the picture as",

  headsPlayed: "Heads that take part",
  headsOn: "Heads",
  headSwitch: (head: number) => `head ${head} takes part`,
  solo: (head: number) => `only ${head}`,
  average: "average",
  byEntropy: "by entropy",
  off: "off",
  entropy: (nats: string) => `entropy ${nats}`,
  meanOf: (heads: readonly number[]) => `mean of heads ${heads.join(", ")}`,
  label: {
    previous_token: "previous token",
    next_token: "next token",
    first_token: "first token",
    diagonal: "itself",
    same_token: "same token",
    uniform: "even",
    mixed: "mixed",
  } satisfies Record<HeadLabel["label"], string> as Record<HeadLabel["label"], string>,

  emptyRow: (head: number, query: string, gives: string) =>
    `“${query}” may attend to nothing: with −1e9 its weights come out even, with −∞ they are ${gives} (head ${head}).`,

  mask: "Mask",
  pin: "compare two",
  unpin: (mask: string) => `keep only ${mask}`,
  inMask: (mask: string, told: string) => `Mask ${mask}: ${told}`,
  editedMask: "The mask being edited",
  maskHint: "Click or drag to hide and show. Hatched is hidden.",
  noMask: "none",
  rules: {
    causal: "causal",
    padding: "padding",
    window: "window",
    prefix: "prefix",
    documents: "documents",
    global: "global",
    dilated: "dilated",
    painted: "painted",
  } satisfies Record<RuleName, string> as Record<RuleName, string>,
  ruleNumbers: {
    padded: "tokens at the end",
    before: "before",
    after: "after",
    prefix: "keys",
    starts: "begin at",
    globals: "positions",
    width: "width",
    stride: "stride",
  } satisfies Record<keyof RuleNumbers, string> as Record<keyof RuleNumbers, string>,
  joins: { and: "AND", or: "OR" },
  joinButton: (join: string) => `${join}: change how the rules join`,
  not: "NOT",
  notButton: (rule: string) => `NOT ${rule}`,
  removeRule: (rule: string) => `Remove ${rule}`,
  paintFor: "Paint",
  allHeads: "all heads",
  maskGrid: (heads: string) => `Mask for ${heads}: rows are queries, columns are keys; the space bar toggles a cell`,
  maskCell: (query: string, key: string, allowed: boolean) =>
    `query ${query}, key ${key}, ${allowed ? "may attend" : "hidden"}`,
  fill: "Hidden scores become",
  fills: { "-1e9": "−1e9", "-inf": "−∞" },
  emptyRowGives: "An empty row gives",
  emptyRows: { nan: "NaN", zero: "0" },
  convention: "In PyTorch",
  conventions: { sdpa: "True = keep", mha: "True = hide", additive: "added" },
  onlyAdded: "ALiBi is a number for each cell: such a mask can only be added.",
  noMaskCode: "attn_mask = None",

  inspector: "How this number is made",
  program: "The same numbers in PyTorch",
  programTooLong: "This is too long to write out as code.",
  folded: (numbers: string) => `… ${numbers} numbers`,
  foldedNote: "Long lists are folded; what you copy is whole.",
  copy: "Copy",
  copied: "Copied",
  notCopied: "Copying is not allowed",

  status: ({ backend, adapter, noGpu, kernel, threads, version }: EngineInfo) =>
    [
      adapter ? `${backend} ${adapter}` : backend,
      ...(noGpu ? [`no GPU: ${noGpu}`] : []),
      `${kernel} · ${threads} ${threads === 1 ? "thread" : "threads"} · attnscope ${version}`,
    ].join(" · "),
  lastPass: (ms: string) => `last pass ${ms} ms`,
  documentation: "documentation",
  starting: "Starting the engine …",
  computing: (percent: number) => `computing ${percent} %`,
  cancel: "Cancel",
  wasCancelled: "The computation was cancelled. Undo brings back what it was for.",
  problem: ({ code, message, found, range, needed, count }: Problem): string => {
    if (code === "too_few_columns")
      return `One-hot needs a d_model of at least ${found}: a column for each different token.`;
    if (code === "out_of_range" && range) return `“${found}” is not from ${range[0]} to ${range[1]}.`;
    if (code === "too_many_tokens")
      return `${found} tokens are more than the page can show. The picture shows another sentence.`;
    if (code === "not_a_number") return `“${found}” is not a number.`;
    if (code === "not_whole")
      return found.trim() === "" ? "Enter a whole number." : `“${found}” is not a whole number.`;
    if (code === "no_tokens") return "Type at least one word. Until then the picture shows another sentence.";
    if (code === "not_divisible")
      return `d_model ${found} is not divisible by ${count} heads: choose another size, or give d_k and d_v.`;
    if (code === "more_than_tokens") return `“${found}” is more than the ${count} tokens there are.`;
    if (code === "no_such_token") return `There is no token ${found}: the last is ${(count ?? 1) - 1}.`;
    if (code === "too_large" && needed !== undefined)
      return `This needs ${(needed / 2 ** 30).toFixed(1)} GiB, more than a page may take. The picture shows something smaller.`;
    if (code === "engine_crashed")
      return "The engine stopped and is started anew with the next change. Nothing is lost.";
    return message;
  },

  inspect: {
    factors: (stage) => {
      switch (plainStage(stage)) {
        case "scores":
          return { over: "d", left: "q", right: "k" };
        case "context":
          return { over: "key", left: "weight", right: "v" };
        case "output":
          return { over: "d", left: "concat", right: "W_O" };
        case "feed_forward":
          return { over: "d", left: "activation", right: "W_2" };
        default:
          return { over: "d", left: "x", right: MATRICES[plainStage(stage)] ?? "" };
      }
    },
    product: "product",
    bias: "bias",
    sum: "sum",
    key: "key",
    allowed: "allowed: unchanged",
    hidden: (fill) => `hidden: becomes ${fill}`,
    emptyRow: "every key is hidden, and an empty row gives 0",
    off: "head off",
    given: "given, not computed",
    more: (count) => `… and ${count} more`,
  } satisfies Omit<InspectorText, "stage"> as Omit<InspectorText, "stage">,
};

export type Text = typeof en;

export type Language = "en" | "zh";

export const LANGUAGES: readonly { value: Language; label: string }[] = [
  { value: "en", label: "English" },
  { value: "zh", label: "中文" },
];
