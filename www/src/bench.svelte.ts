import {
  AttnError,
  createEngine,
  type Engine,
  type EngineInfo,
  type Mask,
  mask,
  type Tensor,
  type Trace,
} from "attnscope";
import { type HeadRole, ROLES, readableHeads } from "./readable-heads.ts";
import { tokenize } from "./tokens.ts";

export type Source = "readable" | "torch";
export type Draw = "rand" | "randn";
export type Preset = "none" | "causal" | "padding" | "painted";
export type Fill = "-1e9" | "-inf";
export type Field = "sentence" | "seed" | "nHeads" | "dModel" | "padded";

/** What was refused, and the field it concerns. `not_whole` and `no_tokens` are the page's own. */
export interface Problem {
  readonly field: Field;
  readonly code: string;
  readonly found: string;
  readonly message: string;
}

/** One pass and the mask it ran under; all that is on the page at one moment comes from one of these. */
export interface Picture {
  readonly tokens: readonly string[];
  readonly roles: readonly HeadRole[];
  /** Names of the columns of input and output; empty where they are only numbered. */
  readonly features: readonly string[];
  readonly plain: Trace;
  readonly masked: Trace;
  readonly mask: Mask | null;
  readonly allowed: Uint8Array;
  readonly nHeads: number;
}

class Refusal extends Error {
  constructor(readonly problem: Problem) {
    super(problem.message);
  }
}

type Base = Omit<Picture, "masked" | "mask" | "allowed">;

const FIELDS: Record<string, Field> = { dModel: "dModel", nHeads: "nHeads", seed: "seed" };

function toProblem(error: unknown): Problem {
  if (error instanceof Refusal) return error.problem;
  const message = error instanceof Error ? error.message : String(error);
  const { code = "unexpected", details = {} } = error instanceof AttnError ? error : {};
  const field = code === "not_divisible" ? "dModel" : (FIELDS[String(details.option)] ?? "sentence");
  return { field, code, found: String(details.found ?? ""), message };
}

function whole(field: Field, typed: string): number {
  const value = Number(typed);
  if (typed.trim() !== "" && Number.isSafeInteger(value)) return value;
  const message = `${field}: found "${typed}", expected a whole number`;
  throw new Refusal({ field, code: "not_whole", found: typed, message });
}

// A painted mask outlives a change of the sentence: what it said of the positions that are still there stays.
function resized(cells: Uint8Array, from: number, to: number): Uint8Array {
  const next = new Uint8Array(to * to).fill(1);
  const kept = Math.min(from, to);
  for (let row = 0; row < kept; row++) next.set(cells.subarray(row * from, row * from + kept), row * to);
  return next;
}

/** Everything on the bench: what the person chose, and the latest picture that the engine made of it. */
export class Bench {
  sentence = $state("the cat sat on the mat");
  source = $state<Source>("readable");
  draw = $state<Draw>("rand");
  // As typed, so that what cannot be used is still there to be mended.
  seed = $state("42");
  nHeads = $state("4");
  dModel = $state("16");

  preset = $state<Preset>("none");
  padded = $state("1");
  fill = $state<Fill>("-1e9");
  painted = $state.raw<Uint8Array>(new Uint8Array());

  picture = $state.raw<Picture | null>(null);
  problem = $state.raw<Problem | null>(null);
  info = $state.raw<EngineInfo | null>(null);
  milliseconds = $state(0);

  readonly tokens = $derived(tokenize(this.sentence));
  /** The mask to show: what is being painted at once, a preset once the engine has sized it. */
  readonly allowed = $derived.by(() => {
    const ready = this.picture?.allowed ?? new Uint8Array();
    return this.preset === "painted" && this.painted.length === ready.length ? this.painted : ready;
  });

  #engine: Engine | null = null;
  #base: Base | null = null;
  #stale: "nothing" | "mask" | "everything" = "nothing";
  #busy = false;

  constructor() {
    $effect(() => {
      void [this.tokens, this.source, this.draw, this.seed, this.nHeads, this.dModel];
      this.#request("everything");
    });
    $effect(() => {
      void [this.preset, this.padded, this.fill, this.painted];
      this.#request("mask");
    });
  }

  paint(allowed: Uint8Array): void {
    this.painted = allowed;
    this.preset = "painted";
  }

  choose(preset: Preset): void {
    if (preset === "painted") this.painted = this.allowed.slice();
    this.preset = preset;
  }

  // One pass at a time; whatever changed meanwhile is in the next one, so the last state always wins.
  #request(part: "mask" | "everything"): void {
    if (this.#stale !== "everything") this.#stale = part;
    if (!this.#busy) void this.#run();
  }

  async #run(): Promise<void> {
    this.#busy = true;
    while (this.#stale !== "nothing") {
      const part = this.#stale;
      this.#stale = "nothing";
      const start = performance.now();
      try {
        if (part === "everything" || !this.#base) await this.#rebuild();
        await this.#remask();
        this.milliseconds = performance.now() - start;
        if (part === "everything" || this.problem?.field === "padded") this.problem = null;
      } catch (error) {
        this.problem = toProblem(error);
        if (this.problem.code === "engine_crashed") this.#forget();
      }
    }
    this.#busy = false;
  }

  // A crashed engine answers nothing any more; the next pass starts a fresh one.
  #forget(): void {
    this.#engine?.destroy();
    this.#engine = null;
    this.#base = null;
  }

  async #ready(): Promise<Engine> {
    this.#engine ??= await createEngine();
    this.info = this.#engine.info;
    return this.#engine;
  }

  async #rebuild(): Promise<void> {
    const engine = await this.#ready();
    const { tokens, source } = this;
    if (tokens.length === 0) {
      throw new Refusal({ field: "sentence", code: "no_tokens", found: "", message: "the sentence has no tokens" });
    }
    const base = source === "readable" ? await this.#readable(engine, tokens) : await this.#torch(engine, tokens);
    const before = this.#base;
    this.#base = base;
    if (before && before.tokens.length !== tokens.length) {
      this.painted = resized(this.painted, before.tokens.length, tokens.length);
    }
    before?.plain.dispose();
  }

  async #readable(engine: Engine, tokens: readonly string[]): Promise<Base> {
    const { x, sizes, weights, features } = readableHeads(tokens);
    const module = engine.multiHeadAttention(sizes);
    await module.loadStateDict(weights);
    const { trace } = await module.forward(x, { trace: true });
    return { tokens, roles: ROLES, features, plain: trace as Trace, nHeads: sizes.nHeads };
  }

  async #torch(engine: Engine, tokens: readonly string[]): Promise<Base> {
    const dModel = whole("dModel", this.dModel);
    const nHeads = whole("nHeads", this.nHeads);
    const generator = engine.torchGenerator(whole("seed", this.seed));
    const drawn: Promise<Tensor> = generator[this.draw]([tokens.length, dModel]);
    const module = engine.multiHeadAttention({ dModel, nHeads, generator });
    const { trace } = await module.forward(await drawn, { trace: true });
    return { tokens, roles: [], features: [], plain: trace as Trace, nHeads };
  }

  #mask(n: number): Mask | null {
    switch (this.preset) {
      case "none":
        return null;
      case "causal":
        return mask.causal();
      case "padding":
        return mask.padding(Math.max(0, n - whole("padded", this.padded)));
      case "painted":
        return mask.fromKeep({ data: Float32Array.from(this.painted), shape: [n, n] });
    }
  }

  async #remask(): Promise<void> {
    const engine = await this.#ready();
    const base = this.#base as Base;
    const n = base.tokens.length;
    const chosen = this.#mask(n);
    const { trace } = await base.plain.remask(chosen, { maskFill: this.fill === "-inf" ? -Infinity : -1e9 });
    const allowed = chosen
      ? (await engine.materialize(chosen, { nQ: n, nK: n })).allowed
      : new Uint8Array(n * n).fill(1);
    this.picture?.masked.dispose();
    this.picture = { ...base, masked: trace, mask: chosen, allowed };
  }
}
