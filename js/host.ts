// Carries out requests against the engine, in whichever thread it lives. Objects are named by numbers that the caller chose.
import type { Backend, Result } from "./backend.ts";
import type { DeviceLook, DeviceMatrix, DevicePicture, Region, Survey } from "./device.ts";
import { AttnError } from "./errors.ts";
import type { Activation, Explanation, FileFormat, Mask as MaskRule, MaskSize, Stage } from "./generated.ts";
import type { Kept, Left } from "./gpu/gpu.ts";
import { analysis, files, type PartSources } from "./parts.ts";
import { isTensor, type Tensor } from "./tensor.ts";
import { type Glue, glue, hasCrashed, instance, throwTyped } from "./wasm.ts";

type Id = number;
type Options = Readonly<Record<string, unknown>>;

export type Request =
  | { op: "generator"; id: Id; seed: bigint }
  | { op: ModuleKind; id: Id; options: Options; generator: Id }
  | { op: "stateDict"; id: Id }
  | { op: "loadStateDict"; id: Id; entries: [string, Tensor][]; layer: number | undefined }
  | ({ op: "forward"; id: Id; inputs: Options; generator: Id | null } & PassOf)
  | ({ op: "scaledDotProductAttention"; inputs: Options } & PassOf)
  | { op: "remask"; id: Id; mask: MaskRule | null; options: Options; trace: Id }
  | { op: "explain"; id: Id; stage: Stage; layer: number; index: number[] }
  | { op: "readStage"; id: Id; stage: Stage; layer: number }
  | { op: "openMatrix"; id: Id; stage: Stage; layer: number; entry: number[]; look: DeviceLook; matrix: Id }
  | { op: "drawMatrix"; id: Id; picture: DevicePicture }
  | { op: "readCells"; id: Id; region: Region }
  | { op: "draw"; id: Id; kind: Draw; sizes: (number | undefined)[] }
  | { op: "dropout"; id: Id; x: Tensor; p: number }
  | { op: "materialize"; mask: MaskRule; size: MaskSize }
  | { op: "readTensors"; bytes: Uint8Array; format: FileFormat | undefined }
  | { op: "writeTensors"; entries: [string, Tensor][]; format: FileFormat }
  | { op: "linear"; x: Tensor; weight: Tensor; bias: Tensor | null }
  | { op: "softmax" | "logSoftmax"; x: Tensor; axis: number }
  | { op: "layerNorm"; x: Tensor; weight: Tensor | null; bias: Tensor | null; eps: number; axis: number }
  | { op: "rmsNorm"; x: Tensor; weight: Tensor | null; eps: number; axis: number }
  | { op: "rotary"; x: Tensor; cos: Tensor; sin: Tensor; interleaved: boolean }
  | { op: "sinusoidal"; n: number; dModel: number }
  | { op: "activation"; x: Tensor; name: Activation }
  | { op: "entropy" | "effectiveKeys"; weights: Tensor }
  | { op: "meanDistance"; weights: Tensor; offset: number }
  | { op: "labelHeads"; weights: Tensor; tokens: Int32Array | null; mask: MaskRule | null; offset: number }
  | { op: "rollout"; weights: Tensor[]; residual: boolean }
  | { op: "maskEffect" | "moved"; before: Tensor; after: Tensor }
  | { op: "ablate"; id: Id; inputs: Options; mask: MaskRule | null; options: Options }
  | { op: "free"; id: Id };

/** What every first pass says: `isLazy` that its stages may be left where they are computed, `spares` where results may go. */
interface PassOf {
  mask: MaskRule | null;
  options: Options;
  isLazy: boolean;
  spares: Float32Array[] | undefined;
  trace: Id;
}

/** Where a pass goes. */
type PassTo = Pick<PassOf, "trace" | "isLazy" | "spares">;

/** The modules with weights. */
export type ModuleKind = "attention" | "encoder" | "decoder";

export type Draw = "rand" | "randn" | "normal" | "xavierUniform" | "embedding" | "linear" | "randint" | "randperm";

type OpenMatrix = Extract<Request, { op: "openMatrix" }>;

/** What runs a pass. */
export type PassRequest = Extract<Request, { trace: Id }>;

/** What a pass sends back. */
export interface PassReply {
  output: Tensor;
  /** One entry a layer. */
  weights: (Tensor | null)[];
  /** A decoder's second attention's, one entry a layer. */
  crossWeights: (Tensor | null)[];
  /** Keys and values with the past in front, where one was given. */
  present: [Tensor, Tensor] | null;
  /**
   * Every stage where they were kept, else null; then the engine keeps nothing either. Of a pass with another mask only those
   * that the mask may change.
   */
  stages: { name: Stage; layer: number; tensor: Tensor }[] | null;
  /** The stages that were left on a graphics processor, with their shapes; null where none were. */
  left: { name: Stage; layer: number; shape: number[] }[] | null;
}

/** A pass whose stages were left on a graphics processor. */
interface LeftPass {
  /** Null once they were read. */
  readonly plan: RawPlan | null;
  readonly left: Left;
  readonly stages: readonly LeftStage[];
}

/** A stage on a graphics processor: its step, and how far it is there from one entry of each axis to the next. */
interface LeftStage {
  readonly name: Stage;
  readonly layer: number;
  readonly shape: number[];
  readonly step: number;
  readonly strides: number[];
}

type Raw =
  | Glue["RawAttention"]["prototype"]
  | Glue["RawTransformer"]["prototype"]
  | Glue["RawTrace"]["prototype"]
  | Glue["RawGenerator"]["prototype"];

type RawPlan = Glue["RawPlan"]["prototype"];
type RawTrace = Glue["RawTrace"]["prototype"];

/** @internal */
export class Host {
  readonly #objects = new Map<Id, Raw>();
  /** Why a module could not be made; said when it is used, since nobody waits for its making. */
  readonly #failures = new Map<Id, unknown>();
  /** Each module's last pass that kept its stages: as long as it is there, the next one takes rows over from it. */
  readonly #latest = new Map<Id, Id>();
  readonly #instance = instance();
  readonly #backend: Backend;
  /** What traces keep on the GPU. */
  readonly #kept = new Map<Id, Kept>();
  /** Passes whose stages were left on the GPU. */
  readonly #left = new Map<Id, LeftPass>();
  /** Matrices of such passes that are drawn. */
  readonly #matrices = new Map<Id, { readonly trace: Id; readonly matrix: DeviceMatrix }>();
  readonly #maxBytes: number;
  readonly #parts: PartSources;
  readonly #own: (spare: Float32Array) => Float32Array;
  /** What is done when the requests so far are; null where they are. */
  #busy: Promise<unknown> | null = null;
  #isClosed = false;

  /** Whether a request has to wait for others. */
  get isBusy(): boolean {
    return this.#busy !== null;
  }

  /** `own` makes an array that the caller gave up this side's own, where it is not already. */
  constructor(backend: Backend, maxBytes: number, parts: PartSources, own = (spare: Float32Array) => spare) {
    this.#backend = backend;
    this.#maxBytes = maxBytes;
    this.#parts = parts;
    this.#own = own;
  }

  /** What the request gives, or a promise of it: requests are carried out one after the other. @throws AttnError */
  handle(request: Request, tell?: Tell): unknown {
    const carryOut = () => this.#compute(() => this.#run(request, glue(), tell && seldom(tell)));
    const value = this.#busy ? this.#busy.then(carryOut) : carryOut();
    if (value instanceof Promise) {
      const done = value.then(
        () => {},
        () => {},
      );
      this.#busy = done;
      done.then(() => {
        if (this.#busy === done) this.#busy = null;
      });
    }
    return value;
  }

  /** Frees everything. */
  close(): void {
    this.#isClosed = true;
    this.#backend.close();
    for (const map of [this.#kept, this.#matrices]) map.clear();
    if (hasCrashed() || instance() !== this.#instance) return;
    for (const object of this.#objects.values()) object.free();
    for (const { plan } of this.#left.values()) plan?.free();
    for (const map of [this.#objects, this.#left]) map.clear();
  }

  #compute<T>(run: () => T): T {
    this.#check();
    this.#backend.limitThreads();
    return throwTyped(run);
  }

  #check(): void {
    if (this.#isClosed) throw new AttnError("disposed", "the engine was destroyed");
    if (hasCrashed() || instance() !== this.#instance) {
      throw new AttnError("engine_crashed", "the engine crashed earlier; create a new one");
    }
  }

  #run(request: Request, glue: Glue, tell: Tell | undefined): unknown {
    const ask = (run: Parameters<typeof analysis.run>[1]) => {
      this.#afford(request, glue);
      return analysis.run(this.#parts, run);
    };
    switch (request.op) {
      case "generator":
        this.#objects.set(request.id, new glue.RawGenerator(BigInt.asIntN(64, request.seed)));
        return;
      case "attention":
      case "encoder":
      case "decoder": {
        const { op, options } = request;
        const generator = this.#get(request.generator, glue.RawGenerator);
        try {
          const module =
            op === "attention"
              ? glue.RawAttention.draw(options, generator, this.#maxBytes)
              : glue.RawTransformer.draw(options, op === "decoder", generator, this.#maxBytes);
          this.#objects.set(request.id, module);
        } catch (reason) {
          this.#failures.set(request.id, reason);
          throw reason;
        }
        return;
      }
      case "stateDict":
        return this.#module(request.id, glue).stateDict();
      case "loadStateDict":
        return this.#load(request, glue);
      case "forward": {
        const { mask, options } = request;
        const module = this.#module(request.id, glue);
        const generator = request.generator === null ? null : this.#get(request.generator, glue.RawGenerator);
        const inputs = inputsOf(request, module instanceof glue.RawTransformer ? BLOCKS : ATTENTION);
        const plan =
          generator && module instanceof glue.RawTransformer
            ? module.planTraining(inputs, mask, options, generator, this.#maxBytes)
            : module.plan(inputs, mask, options, this.#maxBytes);
        const latest = this.#objects.get(this.#latest.get(request.id) ?? Number.NaN);
        if (options.trace) this.#latest.set(request.id, request.trace);
        return this.#pass(latest instanceof glue.RawTrace ? plan.after(latest) : plan, request, tell);
      }
      case "scaledDotProductAttention": {
        const { mask, options } = request;
        const inputs = inputsOf(request, GIVEN_HEADS);
        return this.#pass(glue.planAttention(inputs, mask, options, this.#maxBytes), request, tell);
      }
      case "remask": {
        const { id, mask, options, trace } = request;
        const again = (before: RawTrace) =>
          this.#pass(before.planRemask(mask, options), { trace, isLazy: false, spares: undefined }, tell, id);
        return this.#withTrace(id, again);
      }
      case "explain": {
        const { stage, layer, index } = request;
        const open = (trace: RawTrace) => trace.explain(stage, layer, Uint32Array.from(index)) as Explanation;
        return this.#withTrace(request.id, open);
      }
      case "readStage":
        return this.#readStage(request.id, request.stage, request.layer);
      case "openMatrix":
        return this.#openMatrix(request);
      case "drawMatrix":
        return this.#drawing(() => this.#matrix(request.id).draw(request.picture));
      case "readCells":
        return this.#drawing(() => this.#matrix(request.id).cells(request.region));
      case "draw": {
        const [a = 0, b = 0, c = Number.NaN] = request.sizes;
        return this.#get(request.id, glue.RawGenerator).draw(request.kind, a, b, c, this.#maxBytes);
      }
      case "dropout":
        this.#afford(request, glue);
        return this.#get(request.id, glue.RawGenerator).dropout(request.x.data, request.p);
      case "materialize": {
        const [allowed, bias, shape] = glue.materialize(request.mask, request.size, 0, this.#maxBytes);
        return { allowed, bias, shape };
      }
      case "readTensors":
        return files.run(this.#parts, ({ readTensors }) => readTensors(request.bytes, request.format, this.#maxBytes));
      case "writeTensors":
        this.#afford(request, glue);
        return files.run(this.#parts, ({ writeTensors }) => writeTensors(request.entries, request.format));
      case "linear":
        this.#afford(request, glue);
        return glue.linear([request.x, request.weight, request.bias], this.#maxBytes);
      case "softmax":
        return ask((glue) => glue.softmax(request.x, request.axis));
      case "logSoftmax":
        return ask((glue) => glue.logSoftmax(request.x, request.axis));
      case "layerNorm":
        return ask((glue) => glue.layerNorm([request.x, request.weight, request.bias], request.eps, request.axis));
      case "rmsNorm":
        return ask((glue) => glue.rmsNorm([request.x, request.weight], request.eps, request.axis));
      case "rotary":
        return ask((glue) => glue.rotary([request.x, request.cos, request.sin], request.interleaved));
      case "sinusoidal":
        return glue.sinusoidal(request.n, request.dModel, this.#maxBytes);
      case "activation":
        return ask((glue) => glue.activation(request.x, request.name));
      case "entropy":
        return ask((glue) => glue.entropy(request.weights));
      case "effectiveKeys":
        return ask((glue) => glue.effectiveKeys(request.weights));
      case "meanDistance":
        return ask((glue) => glue.meanDistance(request.weights, request.offset));
      case "labelHeads": {
        const { weights, tokens, mask, offset } = request;
        const [nK = 0, nQ = 0, nHeads = 0, batch = 1] = [...weights.shape].reverse();
        // Weights of other axes are refused by the analysis.
        const areHeads = weights.shape.length === 3 || weights.shape.length === 4;
        const met = areHeads && mask && glue.materialize(mask, { nQ, nK, nHeads, batch }, offset, this.#maxBytes);
        const [allowed, bias, shape] = met || [new Uint8Array(), null, []];
        return ask((glue) => glue.labelHeads(weights, tokens ?? undefined, allowed, bias ?? undefined, shape, offset));
      }
      case "rollout":
        return ask((glue) => glue.rollout(request.weights, request.residual));
      case "maskEffect":
        return ask((glue) => glue.maskEffect([request.before, request.after]));
      case "moved":
        return ask((glue) => {
          const [distance, cosine] = glue.moved([request.before, request.after]);
          return { distance, cosine };
        });
      case "ablate": {
        const { mask, options } = request;
        const inputs = inputsOf(request, ATTENTION);
        return this.#get(request.id, glue.RawAttention).ablate(inputs, mask, options, this.#maxBytes);
      }
      case "free":
        this.#objects.get(request.id)?.free();
        this.#objects.delete(request.id);
        this.#failures.delete(request.id);
        this.#latest.delete(request.id);
        this.#closeMatrix(request.id);
        this.#leave(request.id);
        this.#kept.get(request.id)?.free();
        this.#kept.delete(request.id);
        return;
    }
  }

  /** Refuses tensors that take too much beside a result as large as the largest of them. @throws AttnError `too_large` */
  #afford(request: Request, glue: Glue): void {
    const sizes = Object.values(request)
      .flat(2)
      .filter(isTensor)
      .map(({ data }) => data.length);
    glue.afford(
      sizes.reduce((sum, size) => sum + size, Math.max(...sizes)),
      this.#maxBytes,
    );
  }

  /** Runs a pass and copies what is asked of it; `tell` hears of both. `before` is the pass whose mask is exchanged. */
  #pass(
    plan: RawPlan,
    { trace, isLazy, spares }: PassTo,
    tell: Tell | undefined,
    before?: Id,
  ): PassReply | Promise<PassReply> {
    const work = plan.work();
    // The inputs were read by now, which may be of the result that is given up; a request before may have been given the same.
    const to = { trace, isLazy, spares: spares?.filter(({ length }) => length > 0).map(this.#own) };
    if (this.#backend.mayTake(work)) return this.#onGpu(plan, to, tell, before);
    return this.#onCpu(plan, work, to, tell, before);
  }

  #onCpu(
    plan: RawPlan,
    work: number,
    to: PassTo,
    tell: Tell | undefined,
    before: Id | undefined,
  ): PassReply | Promise<PassReply> {
    const run = () => {
      const telling = tell && ((part: number) => tell(COMPUTING * part));
      const [result, trace] = this.#backend.run(plan, work, telling, to.spares);
      return this.#reply(result, trace, to.trace, tell, before);
    };
    const starting = this.#backend.starting(work);
    return starting ? starting.then(() => this.#compute(run)) : run();
  }

  /** On the CPU after all where the GPU cannot. */
  async #onGpu(plan: RawPlan, to: PassTo, tell: Tell | undefined, before: Id | undefined): Promise<PassReply> {
    const { trace: id, isLazy } = to;
    const kept = before === undefined ? null : (this.#kept.get(before) ?? null);
    const wanted = isLazy ? [...plan.givenBack()] : null;
    // Meanwhile the engine may have been destroyed.
    const computed = await this.#backend.compute(plan, before !== undefined, kept, wanted).finally(() => this.#check());
    return this.#compute(() => {
      if (!computed) return this.#onCpu(plan, plan.work(), to, tell, before);
      const { numbers, places, left } = computed;
      if (left) {
        const stages = (plan.stages() as [Stage, number, number[], number, number[]][]).map(
          ([name, layer, shape, step, strides]): LeftStage => ({ name, layer, shape, step, strides }),
        );
        this.#left.set(id, { plan, left, stages });
        this.#kept.set(id, computed.kept);
        const ends = [...places.filter((_, i) => i % 2 === 1), numbers.length];
        const beside = [...places.filter((_, i) => i % 2 === 0)].map(
          (step, i) => plan.arranged(step, numbers.subarray(ends[i], ends[i + 1])) as Tensor,
        );
        const [key, value] = beside.length > 1 ? beside : [];
        tell?.(1);
        return {
          output: beside.at(-1) as Tensor,
          weights: [],
          crossWeights: [],
          present: key && value ? [key, value] : null,
          stages: null,
          left: stages.map(({ name, layer, shape }) => ({ name, layer, shape })),
        };
      }
      const trace = plan.computed(numbers, places);
      const reply = this.#reply(trace.result(to.spares) as Result, trace, id, tell, before);
      if (reply.stages) this.#kept.set(id, computed.kept);
      else computed.kept.free();
      return reply;
    });
  }

  /** Does something with a trace, whose stages are read first where they were left on the GPU. */
  #withTrace<T>(id: Id, act: (trace: RawTrace) => T | Promise<T>): T | Promise<T> {
    const kind = glue().RawTrace;
    const pass = this.#left.get(id);
    if (!pass?.plan) return act(this.#get(id, kind));
    return this.#fetch(id, pass.plan, pass).then(() => this.#compute(() => act(this.#get(id, kind))));
  }

  /** Reads all stages of a pass, or runs it again where the device that had them is gone. */
  async #fetch(id: Id, plan: RawPlan, pass: LeftPass): Promise<void> {
    const computed = await this.#backend.read(() => pass.left.all()).finally(() => this.#check());
    this.#compute(() => {
      const trace = computed
        ? plan.computed(computed.numbers, computed.places)
        : (plan.run(undefined, true, undefined)[1] as RawTrace);
      this.#objects.set(id, trace);
      this.#left.set(id, { ...pass, plan: null });
    });
  }

  async #readStage(id: Id, name: Stage, layer: number): Promise<Tensor> {
    const { plan, left, stage } = this.#leftStage(id, name, layer) ?? {};
    if (plan && left && stage) {
      // What the device never saw was given.
      const read = async () => (await left.read(stage.step)) ?? plan.given(stage.step);
      const numbers = await this.#backend.read(read).finally(() => this.#check());
      if (numbers) return this.#compute(() => plan.arranged(stage.step, numbers) as Tensor);
    }
    return this.#withTrace(id, (trace) => trace.stage(name, layer) as Tensor);
  }

  /** A matrix of a stage, ready to be drawn; null where its numbers are not on the GPU. */
  async #openMatrix({ id, stage: name, layer, entry, look, matrix }: OpenMatrix): Promise<Survey | null> {
    const found = this.#leftStage(id, name, layer);
    if (!found) return null;
    const { left, stage } = found;
    const { shape, strides, step } = stage;
    const [rows = 1, columns = 1] = shape.slice(-2);
    const [rowStride = 0, columnStride = 1] = strides.slice(-2);
    const start = entry.reduce((at, index, axis) => at + index * (strides[axis] ?? 0), 0);
    const opened = await this.#backend
      .read(() => left.open(step, { rows, columns, start, rowStride, columnStride }, look))
      .finally(() => this.#check());
    if (opened) this.#matrices.set(matrix, { trace: id, matrix: opened });
    return opened?.survey ?? null;
  }

  /** What a matrix gives; null where the device is gone, which "auto" forgives. */
  #drawing<T>(act: () => Promise<T>): Promise<T | null> {
    return this.#backend.read(act).finally(() => this.#check());
  }

  #leftStage(id: Id, name: Stage, layer: number) {
    const pass = this.#left.get(id);
    const stage = pass?.stages.find((stage) => stage.name === name && stage.layer === layer);
    return pass && stage && { ...pass, stage };
  }

  #matrix(id: Id): DeviceMatrix {
    const open = this.#matrices.get(id);
    if (open) return open.matrix;
    throw new AttnError("disposed", "the matrix was disposed");
  }

  /** Forgets what was left on the GPU. */
  #leave(id: Id): void {
    const pass = this.#left.get(id);
    if (!pass) return;
    for (const [matrix, { trace }] of this.#matrices) if (trace === id) this.#closeMatrix(matrix);
    this.#left.delete(id);
    pass.left.free();
    pass.plan?.free();
  }

  #closeMatrix(id: Id): void {
    this.#matrices.get(id)?.matrix.free();
    this.#matrices.delete(id);
  }

  #reply(
    [output, weights, crossWeights, present]: Result,
    trace: RawTrace | null,
    id: Id,
    tell: Tell | undefined,
    before: Id | undefined,
  ): PassReply {
    const stages = trace && this.#stages(trace, tell, before);
    if (stages) this.#objects.set(id, trace);
    else trace?.free();
    tell?.(1);
    return { output, weights, crossWeights, present, stages, left: null };
  }

  /** The stages that were kept, or of those the ones that another mask may change; null where none were. */
  #stages(trace: RawTrace, tell: Tell | undefined, before: Id | undefined): PassReply["stages"] {
    const copying = tell && ((part: number) => tell(COMPUTING + (1 - COMPUTING) * part));
    const stages = trace.stages(before !== undefined, copying) as [Stage, number, Tensor][];
    return stages.length > 0 ? stages.map(([name, layer, tensor]) => ({ name, layer, tensor })) : null;
  }

  /** The module's own names need no reader of others'. */
  #load({ id, entries, layer }: Extract<Request, { op: "loadStateDict" }>, glue: Glue): void | Promise<void> {
    const module = this.#module(id, glue);
    const target = module.target();
    const own = new Map(target[3] as [string, number[]][]);
    if (layer === undefined && entries.every(([name]) => own.has(name))) return module.loadStateDict(entries);
    const translated = files.run(this.#parts, (glue) => glue.translateStateDict(entries, target, layer));
    return translated.then((entries) => this.#compute(() => this.#module(id, glue).loadStateDict(entries)));
  }

  #module(id: Id, glue: Glue) {
    const object = this.#objects.get(id);
    if (object instanceof glue.RawAttention || object instanceof glue.RawTransformer) return object;
    throw this.#failures.get(id) ?? new AttnError("disposed", "the module was disposed");
  }

  #get<T extends Raw>(id: Id, kind: { prototype: T }): T {
    const object = this.#objects.get(id);
    if (object && Object.getPrototypeOf(object) === kind.prototype) return object as T;
    throw this.#failures.get(id) ?? new AttnError("disposed", "the object was disposed");
  }
}

/** What a pass is given, in the engine's order. */
const ATTENTION = ["x", "key", "value"];
const BLOCKS = ["x", "memory", "memoryMask"];
const GIVEN_HEADS = ["query", "key", "value", "pastKey", "pastValue"];

function inputsOf({ inputs }: { inputs: Options }, names: readonly string[]): unknown[] {
  return names.map((name) => inputs[name]);
}

/** Hears which part of a request is done, from 0 to 1. */
type Tell = (part: number) => void;

/** The share of a pass's time before its stages are copied. */
const COMPUTING = 2 / 3;

const PAUSE = 1000 / 30;

/** Tells the last part, and of the others those that come after a pause. */
function seldom(tell: Tell): Tell {
  let [told, last] = [0, performance.now()];
  return (part) => {
    const now = performance.now();
    if (part === told || (part < 1 && now - last < PAUSE)) return;
    [told, last] = [part, now];
    tell(part);
  };
}
