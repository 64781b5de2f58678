import {
  createEngine,
  type Engine,
  type EngineInfo,
  type EngineOptions,
  type FileFormat,
  Selection,
  type Stage,
  type Tensor,
  type Trace,
} from "attnscope";
import { untrack } from "svelte";
import { Computing } from "./computing.svelte.ts";
import { History } from "./history.svelte.ts";
import { problemsInMask, toMask } from "./mask-algebra.ts";
import {
  ALL_SEEDED,
  type InputName,
  type Matrix,
  type MatrixName,
  matrixOf,
  typedInput,
  typedLayers,
  withMatrix,
} from "./matrices.ts";
import { atSize, ofRows } from "./number-grid.ts";
import type { Painted } from "./painted.ts";
import { type Asked, type Prepared, pass, prepare, remask } from "./passes.ts";
import { type Base, isLarge, type Picture } from "./picture.ts";
import { placeOf } from "./place.svelte.ts";
import { readableHeads } from "./readable-heads.ts";
import { type Field, type Problem, toProblem } from "./refusal.ts";
import { type Report, reportOf } from "./report.ts";
import { cellsOf, keysOf } from "./stages.ts";
import {
  type BenchState,
  type HeadsState,
  type LessonName,
  LIMITS,
  type MaskState,
  NO_MASK,
  type Numbers,
  type RuleNumbers,
  type Source,
  START,
  type ViewState,
  type Work,
} from "./state.ts";
import { type Placed, rearranged, tokenize, type Unarranged } from "./tokens.ts";
import { buildOf, mended, problemsIn } from "./typed.ts";

/** What has to be made again, each with all before it. */
const STALE = ["nothing", "report", "masks", "everything"] as const;
type Stale = (typeof STALE)[number];

/** Everything on the bench: what the person chose, and the latest picture that the engine made of it. */
export class Bench {
  picture = $state.raw<Picture | null>(null);
  report = $state.raw<Report | null>(null);
  info = $state.raw<EngineInfo | null>(null);
  milliseconds = $state(0);
  readonly computing = new Computing();

  readonly selection: Selection;
  readonly #history: History<Work>;
  /** One's own work, as it was before the lesson. */
  #own: BenchState;

  // Parts of the work by themselves, so that a change of one asks only for what depends on it.
  readonly #sentence = $derived.by(() => this.work.sentence);
  readonly #keySentence = $derived.by(() => this.work.keySentence);
  readonly #numbers = $derived.by(() => this.work.numbers);
  readonly #masks = $derived.by(() => this.work.masks);
  readonly #off = $derived.by(() => this.work.heads.off);
  readonly #softmax = $derived.by(() => `${this.work.fill} ${this.work.emptyRow}`);
  readonly #layer = $derived.by(() => placeOf(this.selection).layer);

  /** Why the last pass failed, while what it was for stands there. */
  #failed = $state.raw<Problem | null>(null);

  readonly tokens = $derived(tokenize(this.#sentence));
  /** Null where keys and values come from the sentence itself. */
  readonly #keyTokens = $derived(this.#keySentence === null ? null : tokenize(this.#keySentence));
  readonly mask = $derived.by(() => this.work.masks[this.work.edited] ?? NO_MASK);
  /** The side of the picture whose mask is being edited. */
  readonly edited = $derived.by(() => {
    const { masks, edited } = this.work;
    return masks.length === 2 && edited === 0 ? "before" : "after";
  });
  /** The mask to show and to paint on: what is painted at once, a rule once the engine has sized it. */
  readonly cells = $derived.by((): Painted | null => {
    if (!this.picture) return null;
    const [rows, columns] = [this.picture.tokens.length, this.picture.keyTokens.length];
    const { terms, painted } = this.mask;
    const [only] = terms;
    const isPainted = terms.length === 1 && only?.rule === "painted" && !only.isNegated;
    if (isPainted && painted?.rows === rows && painted.columns === columns) return painted;
    const { allowed } = this.picture[this.edited];
    const size = rows * columns;
    const cells = Array.from({ length: allowed.length / size }, (_, head) => cellsOf(allowed, size, head));
    return { rows, columns, cells };
  });
  readonly #typed = $derived.by(() =>
    problemsIn({ tokens: this.tokens, otherTokens: this.#keyTokens, numbers: this.#numbers }),
  );
  /** What is wrong: in what was typed, at once and a field each; and with what was computed of it. */
  readonly problems = $derived.by((): readonly Problem[] => {
    const typed = [...this.#typed, ...problemsInMask(this.mask)];
    const failed = this.#failed;
    const isSaid =
      failed === null || failed.field in NO_MASK.numbers || typed.some(({ field }) => field === failed.field);
    return isSaid ? typed : [...typed, failed];
  });
  /** What is wrong in the mask that is not being edited, of two. */
  readonly otherProblem = $derived.by(() => {
    const { masks, edited } = this.work;
    return masks.length === 2 ? (problemsInMask(masks[1 - edited] ?? NO_MASK)[0] ?? null) : null;
  });
  /** Whether the work is what a cancelled pass was followed by. */
  readonly wasCancelled = $derived.by(() => this.work === this.#cancelledTo);
  /** All that is saved and put into links. */
  readonly snapshot = $derived.by((): BenchState => {
    return { ...this.work, place: placeOf(this.selection) };
  });

  readonly #engineOptions: () => Promise<EngineOptions>;
  #engine: Promise<Engine> | null = null;
  #base: Base | null = null;
  /** What it was made with. */
  #prepared: Prepared | null = null;
  /** The passes that the picture shows, beside the base's. */
  readonly #passes: Trace[] = [];
  /** The base that these are of. */
  #passesOf: Base | null = null;
  /** The work that the picture shows. */
  #shown: Work | null = null;
  /** Whether the first picture is to be that of a new page, since no pass can be made of what was asked. */
  #isStandIn = false;
  #cancelledTo = $state.raw<Work | null>(null);
  #stale: Stale = "nothing";
  #busy = false;

  /** `before` is what undo leads back to at once. */
  constructor(
    engineOptions: () => Promise<EngineOptions>,
    { place, ...work }: BenchState,
    before: BenchState | null = null,
  ) {
    this.#engineOptions = engineOptions;
    this.#own = before ?? START;
    this.selection = new Selection(place);
    this.#history = new History<Work>(before ?? work);
    if (before) this.#history.replace(work);
    $effect(() => {
      void [this.tokens, this.#keyTokens, this.#numbers, this.#off];
      this.#failed = null;
      this.#isStandIn = false;
      this.#request("everything");
    });
    $effect(() => {
      void [this.#masks, this.#softmax];
      untrack(() => this.#forgive());
      this.#request("masks");
    });
    $effect(() => {
      void this.#layer;
      this.#request("report");
    });
    // What asks for no pass is shown at once.
    $effect(() => {
      void this.work;
      untrack(() => this.#noteShown(this.work));
    });
  }

  get work(): Work {
    return this.#history.present;
  }

  problemOf(field: Field): Problem | null {
    return this.problems.find((problem) => problem.field === field) ?? null;
  }

  get canUndo(): boolean {
    return this.#history.canUndo;
  }

  get canRedo(): boolean {
    return this.#history.canRedo;
  }

  /** `name` makes one step of changes that follow each other: see {@link History.replace}. */
  change(part: Partial<Work>, name: string | null = null): void {
    this.#history.replace({ ...this.work, ...part }, name);
  }

  changeNumbers(part: Partial<Numbers>, name: string | null = null): void {
    this.change({ numbers: { ...this.work.numbers, ...part } }, name);
  }

  changeMask(part: Partial<MaskState>, name: string | null = null): void {
    const { masks, edited } = this.work;
    this.change({ masks: masks.map((mask, i) => (i === edited ? { ...mask, ...part } : mask)) }, name);
  }

  /** A second mask beside the first, at first the same, to be compared with it. */
  pinMask(): void {
    this.change({ masks: [this.mask, this.mask], edited: 1 });
  }

  /** Only the mask that is being edited stays. */
  unpinMask(): void {
    this.change({ masks: [this.mask], edited: 0 });
  }

  changeRule(part: Partial<RuleNumbers>): void {
    this.changeMask({ numbers: { ...this.mask.numbers, ...part } }, `rule ${Object.keys(part)}`);
  }

  /**
   * Puts a line's tokens into another order, with new ones among them; what was typed for a token goes with it. Says why
   * where the line cannot be written so.
   */
  arrange(line: "sentence" | "keySentence", order: readonly Placed[]): Unarranged | null {
    const before = this.work[line] ?? "";
    const after = rearranged(before, order);
    if (order.length === 0) return "empty";
    if (after === null) return "joined";
    if (after.length > LIMITS.sentence) return "too_long";
    const { own } = this.work.numbers;
    const input = line === "sentence" ? "x" : "memory";
    const weight = own?.[input].weight;
    const rows = order.map((placed) => (typeof placed === "number" ? placed : null));
    const numbers =
      own && weight
        ? {
            ...this.work.numbers,
            own: {
              ...own,
              [input]: { ...own[input], weight: ofRows(atSize(weight, tokenize(before).length, weight.columns), rows) },
            },
          }
        : this.work.numbers;
    this.change({ [line]: after, numbers });
    return null;
  }

  /** Numbers of one's own: those of before, or at first those that are in use. */
  chooseSource(source: Source): void {
    if (source === "own" && !this.work.numbers.own) this.startOwn();
    else this.changeNumbers({ source });
  }

  /** Makes the numbers that are in use ones to edit. */
  startOwn(from: Source = this.work.numbers.source): void {
    if (from !== "readable") {
      this.changeNumbers({ source: "own", own: ALL_SEEDED });
      return;
    }
    const { nLayers: layerCount } = this.problemOf("nLayers") ? START.numbers : this.#numbers;
    const { kind, nLayers } = buildOf({ ...this.#numbers, nLayers: layerCount }, this.#keyTokens !== null);
    const { x, memory, weights, sizes } = readableHeads(this.tokens, this.#keyTokens ?? this.tokens, { kind, nLayers });
    const typed = (size: number) => String(size);
    this.changeNumbers({
      source: "own",
      nLayers: layerCount,
      own: { x: typedInput(x), memory: typedInput(memory), layers: typedLayers(weights, kind, nLayers) },
      dModel: typed(sizes.dModel),
      nHeads: typed(sizes.nHeads),
      dK: typed(sizes.dK),
      dV: typed(sizes.dV),
      dFf: typed(sizes.dFf),
    });
  }

  /** `layer` is the block that a parameter is of. */
  changeMatrix(name: MatrixName, layer: number, part: Partial<Matrix>): void {
    const own = this.work.numbers.own ?? ALL_SEEDED;
    this.changeNumbers({ own: withMatrix(own, name, layer, { ...matrixOf(own, name, layer), ...part }) });
  }

  /** Takes the numbers of a file and says which they are; a file that does not fit throws, and changes nothing. */
  async openNumbers(file: File, input: InputName): Promise<MatrixName> {
    const [engine, { fill }] = await Promise.all([this.#ready(), import("./tensor-files.ts")]);
    const tensors = await engine.readTensors(await file.arrayBuffer());
    const { picture } = this;
    if (!picture) return input;
    const { dK, dV } = this.work.numbers;
    const { inputs, layers, sizes } = await fill(engine, tensors, {
      input,
      rows: (input === "x" ? picture.tokens : (picture.memoryTokens ?? picture.keyTokens)).length,
      kind: picture.kind,
      nHeads: picture.nHeads,
      isSplitEvenly: dK.trim() === "" || (picture.kind === "attention" && dV.trim() === ""),
    });
    const own = { ...(this.work.numbers.own ?? ALL_SEEDED), ...inputs, ...(layers && { layers }) };
    this.changeNumbers({ ...sizes, own });
    return layers ? "query" : input;
  }

  changeHeads(part: Partial<HeadsState>): void {
    this.change({ heads: { ...this.work.heads, ...part } });
  }

  /** Makes the mask as it stands one that is painted, with these cells in one head, or what changed of them in all. */
  paint(allowed: Uint8Array, head: number, isForAll: boolean): void {
    if (!this.cells || !this.picture) return;
    const { nHeads } = this.picture;
    const { cells, ...size } = this.cells;
    const shown = cellsOfHead(cells, head);
    const paintOver = (other: Uint8Array) =>
      other.map((cell, i) => (allowed[i] === shown[i] ? cell : (allowed[i] ?? 1)));
    const next = isForAll
      ? cells.map(paintOver)
      : Array.from({ length: nHeads }, (_, i) => (i === head ? allowed : cellsOfHead(cells, i)));
    const painted = { ...size, cells: next };
    this.changeMask({ terms: [{ rule: "painted", join: "and", isNegated: false }], painted }, "paint");
  }

  changeView(part: Partial<ViewState>): void {
    this.change({ view: { ...this.work.view, ...part } });
  }

  open({ place, ...work }: BenchState): void {
    if (work.lesson && !this.work.lesson) this.#own = this.snapshot;
    this.#history.replace(work);
    this.selection.set(place);
  }

  /** False where its numbers and words could not be loaded. */
  async enterLesson(name: LessonName): Promise<boolean> {
    const loaded = await import("./lessons.ts").catch(() => null);
    if (!loaded) return false;
    const { LESSON } = loaded;
    this.open({ ...START, ...LESSON[name].start, lesson: { name, step: 0 } });
    return true;
  }

  /** The lesson's next step; undo takes it back with what was done for it. */
  completeStep(): void {
    const { lesson } = this.work;
    if (lesson) this.#history.amend({ ...this.work, lesson: { ...lesson, step: lesson.step + 1 } });
  }

  leaveLesson(): void {
    this.open(this.#own);
  }

  /** A file of tensors. */
  async write(tensors: Readonly<Record<string, Tensor>>, format: FileFormat): Promise<Uint8Array> {
    return (await this.#ready()).writeTensors(tensors, format);
  }

  undo(): void {
    this.#history.undo();
  }

  redo(): void {
    this.#history.redo();
  }

  /**
   * Ends the passes that are being computed. The work becomes what the picture shows, or where there is none or it is that already,
   * the start; undo leads back to what the passes were for.
   */
  cancel(): void {
    const { place, ...start } = START;
    const next = this.#shown === null || this.#shown === this.work ? start : this.#shown;
    this.computing.end();
    this.#forget();
    this.#history.replace(next);
    this.#cancelledTo = next;
    // The passes of the picture were the engine's, too.
    this.#request("everything");
  }

  /** What is typed or painted next is a step of its own. */
  seal(): void {
    this.#history.seal();
  }

  // One pass at a time; whatever changed meanwhile is in the next one, so the last state always wins.
  #request(part: Stale): void {
    if (STALE.indexOf(part) > STALE.indexOf(this.#stale)) this.#stale = part;
    if (this.#busy) return;
    this.#busy = true;
    // Once all effects of a change have asked; and what a pass reads is not what they follow.
    queueMicrotask(() => void this.#run());
  }

  async #run(): Promise<void> {
    while (this.#stale !== "nothing") {
      const part = this.#stale;
      this.#stale = "nothing";
      const start = performance.now();
      const { work, picture: before } = this;
      try {
        const isWhole = part === "everything" || !this.#base;
        if (isWhole || part === "masks") {
          const masks = work.masks.filter(({ terms, hasAlibi }) => terms.length > 0 || hasAlibi);
          this.computing.begin(masks.length + (isWhole ? 1 : 0));
          if (isWhole) await this.#rebuild();
          await this.#remask();
          this.milliseconds = performance.now() - start;
          this.info = (await this.#ready()).info;
        }
        if (part === "everything" && !this.#isStandIn) this.#failed = null;
        this.#forgive();
        if (this.#failed === null) this.#shown = work;
        // The memory of an engine never shrinks: after a large picture a smaller one gets a fresh engine.
        if (before && isLarge(before) && this.picture && !isLarge(this.picture)) {
          this.#forget();
          this.#stale = "everything";
        }
        if (this.#stale === "nothing") {
          this.computing.end();
          await this.#analyse();
        }
      } catch (error) {
        const problem = toProblem(error);
        // The bench itself ended an engine that is asked no more, the passes being cancelled, or asked no further.
        if (problem.code === "disposed" || error === OVERTAKEN) continue;
        // Of what is there no more nothing is to be said.
        if (this.#stale !== "everything") this.#failed = problem;
        if (this.#stale !== "nothing") this.#forgive();
        if (problem.code !== "no_engine" && !this.picture && !this.#isStandIn) {
          this.#isStandIn = true;
          this.#stale = "everything";
        }
        if (problem.code === "engine_crashed") this.#forget();
      }
    }
    this.computing.end();
    this.#busy = false;
    this.#noteShown(this.work);
  }

  #noteShown(work: Work): void {
    if (!this.#busy && this.#failed === null && this.picture) this.#shown = work;
  }

  /** A problem is none any more once masks change: it was a mask's, or the analysis was not there, which is asked again. */
  #forgive(): void {
    const failed = this.#failed;
    if (failed && (failed.field in NO_MASK.numbers || failed.code === "no_engine")) this.#failed = null;
  }

  // The next pass starts a fresh engine.
  #forget(): void {
    this.#engine?.then(
      (engine) => engine.destroy(),
      () => {},
    );
    this.#engine = null;
    this.#base = null;
    this.#prepared = null;
    this.#passes.length = 0;
  }

  async #ready(): Promise<Engine> {
    this.#engine ??= this.#engineOptions().then(createEngine);
    const starting = this.#engine;
    try {
      const engine = await starting;
      this.info = engine.info;
      return engine;
    } catch (reason) {
      if (this.#engine === starting) this.#engine = null;
      throw reason;
    }
  }

  /** What is refused leaves the picture as it is; where there is none yet, something is to be seen all the same. */
  get #asked(): Asked {
    const asked = { tokens: this.tokens, otherTokens: this.#keyTokens, numbers: this.#numbers, off: this.#off };
    if (this.picture) return asked;
    if (!this.#isStandIn) return mended(asked);
    return { ...asked, tokens: tokenize(START.sentence), otherTokens: null, numbers: START.numbers };
  }

  async #rebuild(): Promise<void> {
    const engine = await this.#ready();
    const prepared = await prepare(engine, this.#asked, this.#prepared);
    // Two large pictures are more than an engine holds.
    if (this.picture && isLarge(this.picture)) {
      this.#makeRoom();
      this.#base?.plain.dispose();
      this.#base = null;
    }
    const base = await pass(prepared, this.computing.hear);
    this.#base?.plain.dispose();
    this.#base = base;
    this.#prepared = prepared;
  }

  async #remask(): Promise<void> {
    const base = this.#base as Base;
    const sound = (mask: MaskState) => (problemsInMask(mask).length > 0 ? { ...mask, numbers: NO_MASK.numbers } : mask);
    const masks = this.picture ? this.work.masks : this.work.masks.map(sound);
    const second = masks[1] ?? masks[0] ?? NO_MASK;
    // Made before either is run, so that a wrong number in one leaves both as they were.
    const size = { nQ: base.tokens.length, nK: base.keyTokens.length, nHeads: base.nHeads };
    const [maskBefore, maskAfter] = [
      masks.length === 2 ? toMask(masks[0] as MaskState, size) : null,
      toMask(second, size),
    ];
    if (this.picture && isLarge(this.picture)) this.#makeRoom();
    const engine = await this.#ready();
    const from = (this.#passesOf === base && this.#passes.at(-1)) || base.plain;
    const before = await remask(engine, base, from, maskBefore, this.work, this.computing.hear);
    const isUnmasked = maskBefore === null && maskAfter === null;
    const after = isUnmasked ? before : await remask(engine, base, from, maskAfter, this.work, this.computing.hear);
    this.#makeRoom();
    this.#passes.push(...[before.trace, after.trace].filter((trace) => trace !== base.plain));
    this.#passesOf = base;
    const { plain, ...shown } = base;
    this.#keepInside(base);
    this.picture = { ...shown, before, after };
  }

  /** The engine forgets the masked passes: no cell of theirs can be explained any more. */
  #makeRoom(): void {
    for (const pass of this.#passes.splice(0)) pass.dispose();
  }

  // A shorter sentence, fewer heads or layers, or a stage that is no longer there.
  #keepInside(base: Base): void {
    const { tokens, nHeads, nLayers, plain } = base;
    const { stage, layer, head, query, key } = this.selection.place;
    const kept = (plain.stages.includes(stage as Stage) ? stage : "weights") as Stage;
    this.selection.set({
      stage: kept,
      layer: Math.min(layer, nLayers - 1),
      head: Math.min(head, nHeads - 1),
      query: Math.min(query, tokens.length - 1),
      key: Math.min(key, keysOf(base, kept).length - 1),
    });
  }

  async #analyse(): Promise<void> {
    const { picture } = this;
    if (!picture) return;
    const { analysis } = await this.#ready();
    const layer = Math.min(this.#layer, picture.nLayers - 1);
    const goOn = () => {
      if (this.#stale !== "nothing") throw OVERTAKEN;
    };
    this.report = isLarge(picture) ? null : await reportOf(analysis, picture, layer, goOn);
  }
}

const OVERTAKEN = new Error("the picture that is analysed is not the latest");

/** Of one matrix for all heads, or one for each. */
export function cellsOfHead(cells: readonly Uint8Array[], head: number): Uint8Array {
  return cells[head] ?? cells[0] ?? new Uint8Array();
}
