import type { DeviceTensor } from "./device.ts";
import { AttnError, invalidOption } from "./errors.ts";
import type { Explanation, RemaskOptions as RustRemaskOptions, Stage } from "./generated.ts";
import type { Mask } from "./mask.ts";
import { type Given, given } from "./options.ts";
import { short, shown } from "./shown.ts";
import { isList, type Tensor, tensor } from "./tensor.ts";
import type { WatchOptions } from "./watch.ts";

/** Which layer of a stack. */
export interface LayerOption {
  /** Counted from 0; default the first that has the stage. */
  layer?: number | undefined;
}

/** What a pass gives where it was asked for it. */
export type Asked<Is extends boolean, What> = Is extends true ? What : null;

/** Leaves the numbers of a pass where it is computed. */
export interface LazyOption<Lazy extends boolean = boolean> {
  /**
   * Whether stages and weights are left where they are computed, on a graphics processor, and copied only when they are read: the
   * result's `trace` holds the weights, or with `trace: true` every stage. What is not computed there is here at once. Default false.
   */
  lazy?: Lazy | undefined;
}

/** @throws AttnError `invalid_option` */
export function isLazy(lazy: boolean | undefined = false): boolean {
  if (typeof lazy !== "boolean") throw invalidOption("lazy", lazy, "true or false");
  return lazy;
}

/** What a pass with `lazy: true` gives. */
export interface LazyResult {
  /** As other passes give it. */
  readonly output: Tensor;
  /** The weights, or with `trace: true` every stage; some may lie on a graphics processor. */
  readonly trace: Trace;
}

/** What a pass gives, whether `lazy` or as other passes do. */
export type Passed<Lazy extends boolean, Result, Left = LazyResult> = Lazy extends true ? Left : Result;

/** What a pass with another mask gives. */
export interface Remasked {
  /** As the pass without that mask gave it. */
  readonly output: Tensor;
  /** The weights of the first layer. */
  readonly weights: Tensor | null;
  /** Every stage under that mask. */
  readonly trace: Trace;
}

/** Options of {@link Trace.remask}. */
export interface RemaskOptions extends Given<RustRemaskOptions>, WatchOptions {}

/** The engine's side of a trace. */
export interface TraceSource {
  read(stage: Stage, layer: number): Promise<Tensor>;
  /** A stage on a graphics processor; `read` gives its numbers. */
  onDevice(stage: LeftStage, read: () => Promise<Tensor>): DeviceTensor;
  explain(stage: Stage, layer: number, index: number[]): Promise<Explanation>;
  remask(mask: Mask | null, options: RemaskOptions): Promise<Remasked>;
  dispose(): void;
}

export interface KeptStage {
  readonly name: Stage;
  readonly layer: number;
  readonly tensor: Tensor;
}

/** A stage that was left on a graphics processor. */
export interface LeftStage {
  readonly name: Stage;
  readonly layer: number;
  readonly shape: readonly number[];
}

/** A number as JSON has it; what JSON lacks is a word. */
type JsonNumber = number | "NaN" | "Infinity" | "-Infinity" | "-0";

/** A trace as plain data. */
export interface TraceJson {
  /** What tells such data from other. */
  readonly format: "attnscope-trace/1";
  /** The stages in order, each with its numbers row by row. */
  readonly stages: readonly { name: Stage; layer: number; shape: readonly number[]; data: readonly JsonNumber[] }[];
}

/**
 * Every stage of one pass, in order, with its shape. The numbers are copies of the engine's; stages that are the same numbers share
 * one copy, with the result too, as do passes that differ by their mask alone, for what no mask reaches.
 *
 * ```ts
 * const [q, k, v] = [[[1, 0]], [[1, 0], [0, 1]], [[1, 2], [3, 4]]];
 * const { trace } = await engine.scaledDotProductAttention(q, k, v, { trace: true });
 * console.log(trace.stages.join(", ")); // query, key, value, scores, scaled, masked, weights, context
 * console.log(trace.stage("scores").data); // Float32Array(2) [ 1, 0 ]
 * ```
 */
export class Trace {
  readonly #stages: (KeptStage | LeftStage)[];
  readonly #source: TraceSource | null;

  private constructor(stages: readonly (KeptStage | LeftStage)[], source: TraceSource | null) {
    this.#stages = [...stages];
    this.#source = source;
  }

  /** The trace of a pass. @internal */
  static of(stages: readonly (KeptStage | LeftStage)[], source: TraceSource): Trace {
    return new Trace(stages, source);
  }

  /**
   * The names of all stages, in order: input, query, ..., output. Without a layer, of a stack each is that of the first layer that has it:
   * of layer 0, but for `final_norm`, which the last one alone has.
   */
  get stages(): Stage[] {
    return [...new Set(this.#stages.map(({ name }) => name))];
  }

  /** The number of layers; 1 but for a stack. */
  get nLayers(): number {
    return this.#stages.reduce((n, { layer }) => Math.max(n, layer + 1), 0);
  }

  /** A stage's shape. @throws AttnError `no_such_stage` */
  shape(name: Stage, options: LayerOption = {}): readonly number[] {
    const stage = this.#find(name, options);
    return "tensor" in stage ? stage.tensor.shape : stage.shape;
  }

  /** A stage's numbers. @throws AttnError `no_such_stage`, also for one that a lazy pass left where it was computed */
  stage(name: Stage, options: LayerOption = {}): Tensor {
    const stage = this.#find(name, options);
    if ("tensor" in stage) return stage.tensor;
    const { layer } = stage;
    const message = `stage ${name} of layer ${layer} was left where it was computed; await trace.read("${name}") first`;
    throw new AttnError("no_such_stage", message, { stage: name, layer, available: this.#names(layer, true) });
  }

  /**
   * A stage's numbers, fetched where a lazy pass left them; from then on `stage` gives them too.
   *
   * ```ts
   * const mha = engine.multiHeadAttention({ dModel: 4, nHeads: 2 });
   * const { trace } = await mha.forward([[1, 0, 0, 1], [0, 1, 1, 0]], { lazy: true });
   * const weights = await trace.read("weights");
   * console.log(weights.shape); // [ 2, 2, 2 ]
   * ```
   *
   * @throws AttnError `no_such_stage`, `disposed`, `gpu_lost`
   */
  async read(name: Stage, options: LayerOption = {}): Promise<Tensor> {
    const stage = this.#find(name, options);
    if ("tensor" in stage) return stage.tensor;
    const { layer } = stage;
    const tensor = await this.#engine().read(name, layer);
    this.#stages[this.#stages.indexOf(stage)] = { name, layer, tensor };
    return tensor;
  }

  /**
   * What a view draws of a stage: its tensor, or where that was left on a graphics processor what is drawn there, without its numbers
   * being copied.
   *
   * ```ts
   * const mha = engine.multiHeadAttention({ dModel: 4, nHeads: 2 });
   * const { trace } = await mha.forward([[1, 0, 0, 1], [0, 1, 1, 0]], { lazy: true });
   * console.log(trace.drawable("weights").shape); // [ 2, 2, 2 ]
   * ```
   *
   * @throws AttnError `no_such_stage`
   */
  drawable(name: Stage, options: LayerOption = {}): Tensor | DeviceTensor {
    const stage = this.#find(name, options);
    if ("tensor" in stage) return stage.tensor;
    return this.#engine().onDevice(stage, () => this.read(name, { layer: stage.layer }));
  }

  /**
   * How one cell was made, as arithmetic with the numbers the pass used.
   *
   * ```ts
   * const [q, k, v] = [[[1, 2]], [[3, 4]], [[5, 6]]];
   * const { trace } = await engine.scaledDotProductAttention(q, k, v, { trace: true });
   * const { formula, terms, value } = await trace.explain("scores", [0, 0]);
   * console.log(formula); // scores[i, j] = Σ_d query[i, d] · key[j, d]
   * console.log(terms.map(({ left, right }) => `${left} · ${right}`).join(" + "), "=", value); // 1 · 3 + 2 · 4 = 11
   * ```
   *
   * @throws AttnError `no_such_stage`, `shape_mismatch` for a cell that is not there, `no_engine` for a trace read from a file
   */
  async explain(name: Stage, index: readonly number[], options: LayerOption = {}): Promise<Explanation> {
    const { layer } = this.#find(name, options);
    const shape = this.shape(name, { layer });
    const cell: number[] = isList(index) ? Array.from(index as ArrayLike<number>) : [];
    const inside =
      cell.length === shape.length &&
      cell.every((at, axis) => Number.isInteger(at) && at >= 0 && at < (shape[axis] as number));
    if (!inside) {
      const expected = `a cell of ${name} [${shape.join(", ")}]`;
      throw new AttnError("shape_mismatch", `index: found ${short(`[${cell}]`)}, expected ${expected}`, {
        found: cell,
        expected,
      });
    }
    return this.#engine().explain(name, layer, cell);
  }

  /**
   * The same pass with another mask, or with none: mask, softmax and what follows are done again, no projection is.
   *
   * ```ts
   * const mha = engine.multiHeadAttention({ dModel: 4, nHeads: 2 });
   * const { trace } = await mha.forward([[1, 0, 0, 1], [0, 1, 1, 0]], { trace: true });
   * const { weights } = await trace.remask(mask.causal());
   * console.log(weights?.data.subarray(0, 2)); // Float32Array(2) [ 1, 0 ]
   * ```
   *
   * @throws AttnError `mask_shape`, `invalid_option`, `too_large`, `no_engine` for a trace read from a file; the signal's reason
   */
  async remask(mask: Mask | null, options: RemaskOptions = {}): Promise<Remasked> {
    return this.#engine().remask(mask, options);
  }

  /** Lets the engine forget the pass at once. The numbers here stay; `explain` and `remask` then throw "disposed". */
  dispose(): void {
    this.#source?.dispose();
  }

  /**
   * Plain data for `JSON.stringify`; NaN and infinity survive. Stages that a lazy pass left on a graphics processor must be read first.
   *
   * ```ts
   * const { trace } = await engine.scaledDotProductAttention([[1]], [[1]], [[5]], { trace: true });
   * const read = Trace.fromJSON(JSON.stringify(trace));
   * console.log(read.stage("context").data); // Float32Array(1) [ 5 ]
   * ```
   */
  toJSON(): TraceJson {
    return {
      format: "attnscope-trace/1",
      stages: this.#stages.map(({ name, layer }) => {
        const { data, shape } = this.stage(name, { layer });
        return { name, layer, shape, data: Array.from(data, jsonNumber) };
      }),
    };
  }

  /** A trace read back, from what `toJSON` gave or from its text. @throws AttnError `bad_file` */
  static fromJSON(json: TraceJson | string): Trace {
    let parsed: TraceJson;
    try {
      parsed = typeof json === "string" ? (JSON.parse(json) as TraceJson) : json;
    } catch (reason) {
      throw new AttnError("bad_file", `the trace is not JSON: ${(reason as Error).message}`, { format: "json" });
    }
    const bad = (message: string, details = {}) => new AttnError("bad_file", message, { format: "json", ...details });
    if (parsed?.format !== "attnscope-trace/1") {
      throw bad(`found format ${shown(parsed?.format)}, expected "attnscope-trace/1"`);
    }
    if (!Array.isArray(parsed.stages)) throw bad(`stages: found ${shown(parsed.stages)}, expected an array`);
    const known = new Set<string>();
    const stages = parsed.stages.map((stage: Partial<TraceJson["stages"][number]> | null, i): KeptStage => {
      const { name, layer = -1, shape = [], data } = stage ?? {};
      if (typeof name !== "string" || !Number.isInteger(layer) || layer < 0 || !Array.isArray(data)) {
        throw bad(`stages[${i}]: expected { name, layer, shape, data }`, { stage: i });
      }
      if (known.size === known.add(`${name} of layer ${layer}`).size) {
        throw bad(`stages[${i}]: found ${name} of layer ${layer} a second time, expected each once`, { stage: i });
      }
      try {
        return { name, layer, tensor: tensor(data.map(fromJsonNumber), shape) };
      } catch (reason) {
        throw bad(`stages[${i}]: ${(reason as Error).message}`, { stage: i });
      }
    });
    return new Trace(stages, null);
  }

  /** Whether these numbers are a stage's. @internal */
  holds(data: Float32Array): boolean {
    return this.#stages.some((stage) => "tensor" in stage && stage.tensor.data === data);
  }

  #find(name: Stage, options: LayerOption): KeptStage | LeftStage {
    const { layer } = given(options, ["layer"]);
    const found = this.#stages.find((stage) => stage.name === name && (layer === undefined || stage.layer === layer));
    if (found) return found;
    const available = layer === undefined ? this.stages : this.#names(layer, false);
    const place = layer === undefined ? "" : ` of layer ${layer}`;
    const said = typeof name === "string" ? name : shown(name);
    const message = `stage ${said}${place} is not in the trace; available: ${available.join(", ") || "none"}`;
    throw new AttnError("no_such_stage", message, { stage: name, layer: layer ?? 0, available });
  }

  #names(layer: number, areHere: boolean): Stage[] {
    const ofLayer = this.#stages.filter((stage) => stage.layer === layer && (!areHere || "tensor" in stage));
    return ofLayer.map(({ name }) => name);
  }

  #engine(): TraceSource {
    if (this.#source) return this.#source;
    throw new AttnError("no_engine", "a trace read from a file has no engine to ask");
  }
}

function jsonNumber(x: number): JsonNumber {
  if (Object.is(x, -0)) return "-0";
  return Number.isFinite(x) ? x : (String(x) as JsonNumber);
}

function fromJsonNumber(x: JsonNumber): number {
  const isWord = x === "NaN" || x === "Infinity" || x === "-Infinity" || x === "-0";
  // Anything else that is not a number is left for tensor() to refuse with its place.
  return isWord ? Number(x) : (x as number);
}
