// Carries out plans on a graphics processor: device, compiled kernels, buffers, one submission, one copy back. The engine loads this
// when a pass is first to go there: one script, bundled/attnscope.gpu.js, with the kernels and the planner in it.

import type { DeviceLook, DeviceMatrix } from "../device.ts";
import type { Dispatch, GpuPlan, Buffer as PlanBuffer } from "../generated.ts";
import init, { plan as planOf } from "../wasm/attnscope_gpu.js";
import wasm from "../wasm/attnscope_gpu.wasm";
import { COPY_DST, COPY_SRC, copiedOut, MAP_READ, type Piece, STORAGE, UNIFORM } from "./buffers.ts";
import { Costs } from "./costs.ts";
import { type Lying, Painter } from "./painter.ts";
import { SHADERS } from "./shaders.ts";

/** A pass as the engine hands it over. */
export interface Pass {
  /** What it costs, in multiply-adds, on the CPU, which takes over rows of an earlier pass. */
  readonly work: number;
  /** What it costs where none are taken over. */
  readonly wholeWork: number;
  /** What the planner needs to know of it. */
  readonly outline: { readonly steps: Uint32Array; readonly tables: Uint32Array };
  /** The numbers of a step, or of its weight. */
  given(step: number): Float32Array;
}

/** Why a pass was not computed: there is no device, it went away, a kernel is refused, or the memory does not suffice. */
export class GpuFailure extends Error {
  readonly reason: "unavailable" | "lost" | "memory";

  constructor(reason: GpuFailure["reason"], message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Buffers that passes under other masks use again, by step. */
export class Kept {
  readonly buffers: ReadonlyMap<number, GPUBuffer>;
  #users = 1;

  constructor(buffers: ReadonlyMap<number, GPUBuffer>) {
    this.buffers = buffers;
  }

  share(): this {
    this.#users++;
    return this;
  }

  free(): void {
    if (--this.#users === 0) for (const buffer of this.buffers.values()) buffer.destroy();
  }
}

/** Numbers that were copied back. */
export interface Numbers {
  readonly numbers: Float32Array;
  /** Steps and where their numbers are among these, one behind the other. */
  readonly places: Uint32Array;
}

/** What a pass gives. */
export interface Computed extends Numbers {
  readonly kept: Kept;
  /** The stages that were left on the device; null where all were copied back. */
  readonly left: Left | null;
}

/** The stages of a pass, left on the device. */
export class Left {
  readonly #gpu: Gpu;
  readonly #plan: GpuPlan;
  readonly #buffers: readonly GPUBuffer[];
  readonly #release: () => void;

  constructor(gpu: Gpu, plan: GpuPlan, buffers: readonly GPUBuffer[], release: () => void) {
    this.#gpu = gpu;
    this.#plan = plan;
    this.#buffers = buffers;
    this.#release = release;
  }

  /** All numbers, as a pass that leaves none gives them. @throws GpuFailure */
  async all(): Promise<Numbers> {
    const { reads, size } = this.#plan;
    const numbers = new Float32Array(size);
    for (const { buffer, at } of reads) numbers.set(await this.#read(buffer), at);
    return { numbers, places: Uint32Array.from(reads.flatMap(({ step, at }) => [step, at])) };
  }

  /** The numbers of a step, as they lie; null where they never were on the device. @throws GpuFailure */
  async read(step: number): Promise<Float32Array | null> {
    const buffer = this.#plan.places[step] ?? -1;
    return buffer < 0 ? null : this.#read(buffer);
  }

  /** A matrix of a step, ready to be drawn; null where its numbers never were on the device. @throws GpuFailure */
  async open(step: number, lying: Omit<Lying, "buffer">, look: DeviceLook): Promise<DeviceMatrix | null> {
    const buffer = this.#buffers[this.#plan.places[step] ?? -1];
    return buffer ? this.#gpu.open({ ...lying, buffer }, look) : null;
  }

  free(): void {
    this.#release();
  }

  #read(at: number): Promise<Float32Array> {
    const bytes = 4 * (this.#plan.buffers[at]?.numbers ?? 0);
    return this.#gpu.copyOut([{ buffer: this.#buffers[at] as GPUBuffer, from: 0, bytes }]);
  }
}

/** Weights stay on the device as long as they take no more bytes than this, and so do buffers for the next pass. */
const MOST_AT_REST = 2 ** 29;

const lines = (text: string) => text.split("\n").length - 1;

/** Functions that stand before every kernel: WGSL has no imports. */
const BEFORE = ["exp", "score", "four"] as const;

/** Threads of a workgroup that reduce together; a subgroup is to be full. */
const REDUCING = 64;

export class Gpu {
  /** The adapter's name. */
  readonly adapter: string;
  /** Whether the adapter is a software renderer, slower than this package's own loops. */
  readonly isFallback: boolean;
  /** Comes when the device goes away, and says why. */
  readonly lost: Promise<string>;
  readonly costs = new Costs();
  readonly #device: GPUDevice;
  #lost: string | null = null;
  readonly #pipelines = new Map<string, Promise<GPUComputePipeline>>();
  /** By their numbers, those used last at the end. */
  readonly #weights = new Map<number, GPUBuffer>();
  #weightBytes = 0;
  /** By size. */
  readonly #free = new Map<number, GPUBuffer[]>();
  #freeBytes = 0;
  #painter: Painter | undefined;

  private constructor(device: GPUDevice, info: GPUAdapterInfo) {
    this.#device = device;
    this.isFallback = info.isFallbackAdapter;
    this.adapter =
      [info.vendor, info.architecture, info.device, info.description].filter(Boolean).join(" ") || "unnamed adapter";
    this.lost = device.lost.then(({ message, reason }) => {
      this.#lost = `the graphics processor was lost: ${message || reason}`;
      return this.#lost;
    });
  }

  /** @throws GpuFailure */
  static async open(): Promise<Gpu> {
    try {
      const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
      if (!adapter) throw new GpuFailure("unavailable", "WebGPU gives no adapter");
      const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
      await planner();
      const hasSubgroups = adapter.features.has("subgroups") && adapter.info.subgroupMaxSize <= REDUCING;
      const device = await adapter.requestDevice({
        requiredLimits: { maxBufferSize, maxStorageBufferBindingSize },
        requiredFeatures: hasSubgroups ? ["subgroups"] : [],
      });
      return new Gpu(device, adapter.info);
    } catch (reason) {
      throw reason instanceof GpuFailure ? reason : new GpuFailure("unavailable", `WebGPU refuses: ${reason}`);
    }
  }

  /**
   * Runs a pass; null where its numbers or its size are such that only the CPU does it right, or with `onlyIfItPays` where the CPU
   * is quicker. `before` is what the pass before kept, where this is one with another mask. Of a pass whose stages are to be left on
   * the device the steps of `wanted` alone are copied back.
   *
   * @throws GpuFailure
   */
  async compute(
    pass: Pass,
    before: Kept | null,
    onlyIfItPays: boolean,
    wanted: readonly number[] | null,
  ): Promise<Computed | null> {
    const plan = this.#plan(pass, wanted !== null);
    if (typeof plan === "string") return null;
    const back: Back = wanted ? readsOf(plan, wanted) : plan;
    if (onlyIfItPays && !this.costs.pays(pass.work, pass.wholeWork, back.size)) return null;
    const start = performance.now();
    const computed = await this.#safely(async () => {
      // Each kernel is compiled once, the first time that it is needed.
      const pipelines = await Promise.all(plan.dispatches.map((dispatch) => this.#pipeline(dispatch)));
      return this.#submit(pass, plan, pipelines, before, back);
    });
    this.costs.learnGpu(pass.wholeWork, back.size, performance.now() - start);
    return computed;
  }

  /** The plan of a pass, or why it is none for this device. */
  #plan({ outline: { steps, tables } }: Pass, isLeft: boolean): GpuPlan | string {
    const { maxBufferSize, maxStorageBufferBindingSize } = this.#device.limits;
    const most = Math.min(maxBufferSize, maxStorageBufferBindingSize);
    const plan: GpuPlan | string = planOf(steps, tables.length, most);
    if (typeof plan !== "string" && !isLeft && padded(4 * plan.size) > maxBufferSize)
      return "what it gives is larger than a buffer";
    return plan;
  }

  /** Copies pieces of buffers out. @throws GpuFailure */
  copyOut(pieces: readonly Piece[]): Promise<Float32Array> {
    const copy = () => copiedOut(this.#device, this.#device.createCommandEncoder(), pieces);
    return this.#safely(async () => new Float32Array(await copy()));
  }

  /** Makes a matrix ready to be drawn. @throws GpuFailure, as what is done with the matrix does */
  async open(lying: Lying, look: DeviceLook): Promise<DeviceMatrix> {
    const matrix = await this.#safely(() => {
      this.#painter ??= new Painter(this.#device, (files) => this.#module(files));
      return this.#painter.open(lying, look);
    });
    return {
      ...matrix,
      draw: (picture) =>
        this.#safely(async () => {
          const bitmap = await matrix.draw(picture);
          // A device that is lost draws nothing, and says nothing.
          if (this.#lost !== null) throw new GpuFailure("lost", this.#lost);
          return bitmap;
        }),
      cells: (region) => this.#safely(() => matrix.cells(region)),
    };
  }

  async #safely<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (reason) {
      // That the device is lost may be heard a moment after what fails because of it.
      await Promise.race([this.lost, new Promise((resolve) => setTimeout(resolve, 100))]);
      if (this.#lost !== null) throw new GpuFailure("lost", this.#lost);
      throw reason instanceof GpuFailure ? reason : new GpuFailure("unavailable", `WebGPU fails: ${reason}`);
    }
  }

  /** Frees everything. */
  close(): void {
    this.#device.destroy();
  }

  async #submit(
    work: Pass,
    plan: GpuPlan,
    pipelines: GPUComputePipeline[],
    before: Kept | null,
    { reads, size }: Back,
  ): Promise<Computed> {
    const device = this.#device;
    device.pushErrorScope("out-of-memory");
    device.pushErrorScope("validation");
    const buffers = plan.buffers.map((buffer) => this.#fill(buffer, work, plan, before));
    const release = (isDone: boolean, isOver: (at: number) => boolean) => {
      plan.buffers.forEach(({ source }, at) => {
        if (source === "weight" || source === "kept" || !isOver(at)) return;
        if (isDone) this.#release(buffers[at] as GPUBuffer);
        else buffers[at]?.destroy();
      });
    };
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    plan.dispatches.forEach(({ bindings, workgroups }, i) => {
      const pipeline = pipelines[i] as GPUComputePipeline;
      const entries = bindings.map(({ at, buffer, offset, numbers }) => ({
        binding: at,
        resource: { buffer: buffers[buffer] as GPUBuffer, offset: 4 * offset, size: padded(4 * numbers) },
      }));
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
      pass.dispatchWorkgroups(...workgroups);
    });
    pass.end();
    const staging = device.createBuffer({ size: padded(4 * size), usage: MAP_READ | COPY_DST });
    for (const { buffer, at } of reads) {
      const numbers = plan.buffers[buffer]?.numbers ?? 0;
      encoder.copyBufferToBuffer(buffers[buffer] as GPUBuffer, 0, staging, 4 * at, 4 * numbers);
    }
    device.queue.submit([encoder.finish()]);
    const [invalid, full] = [device.popErrorScope(), device.popErrorScope()];
    const mapped = staging.mapAsync(MAP_READ);
    mapped.catch(() => {});
    const [problem, mistake] = await Promise.all([full, invalid]);
    if (problem || mistake) {
      staging.destroy();
      release(false, () => true);
    }
    if (problem) {
      this.#forgetAll();
      throw new GpuFailure("memory", problem.message);
    }
    if (mistake) throw new GpuFailure("unavailable", mistake.message);
    await mapped;
    const numbers = new Float32Array(staging.getMappedRange()).slice(0, size);
    staging.destroy();

    const kept = new Set(before ? [] : plan.kept);
    const ofKept = [...kept].map((at): [number, GPUBuffer] => [
      (plan.buffers[at] as PlanBuffer).step,
      buffers[at] as GPUBuffer,
    ]);
    const places = Uint32Array.from(reads.flatMap(({ step, at }) => [step, at]));
    // What is left are the steps that may be asked for; all else is free for the next pass at once.
    const isLeft = reads !== plan.reads;
    const held = new Set(isLeft ? plan.places : []);
    release(true, (at) => !kept.has(at) && !held.has(at));
    const leave = () => release(true, (at) => held.has(at) && !kept.has(at));
    const left = isLeft ? new Left(this, plan, buffers, leave) : null;
    return { numbers, places, kept: before?.share() ?? new Kept(new Map(ofKept)), left };
  }

  /** The buffer of a plan's, with its numbers where it has some at the start. */
  #fill(
    { source, step, id, numbers }: PlanBuffer,
    { outline: { tables }, given }: Pass,
    plan: GpuPlan,
    before: Kept | null,
  ): GPUBuffer {
    if (source === "kept") {
      const buffer = before?.buffers.get(step);
      if (!buffer) throw new GpuFailure("unavailable", `the pass before kept nothing of step ${step}`);
      return buffer;
    }
    const bytes = padded(4 * numbers);
    if (source === "weight") {
      const known = this.#weights.get(id);
      const buffer = known ?? this.#create(bytes);
      this.#weights.delete(id);
      this.#weights.set(id, buffer);
      if (!known) {
        this.#device.queue.writeBuffer(buffer, 0, given(step) as Float32Array<ArrayBuffer>);
        this.#weightBytes += bytes;
        this.#forgetWeights(plan);
      }
      return buffer;
    }
    const buffer = this.#take(bytes);
    const write = (at: number, words: Uint32Array | Float32Array) => {
      this.#device.queue.writeBuffer(buffer, at, words as Uint32Array<ArrayBuffer>);
    };
    if (source === "given") write(0, given(step));
    if (source === "constants") {
      write(0, tables);
      write(tables.byteLength, plan.sizes);
    }
    return buffer;
  }

  /** Lets go of the weights that were not used for longest, but of none of this plan's. */
  #forgetWeights(plan: GpuPlan): void {
    for (const [id, buffer] of this.#weights) {
      if (this.#weightBytes <= MOST_AT_REST || plan.buffers.some((own) => own.source === "weight" && own.id === id))
        return;
      this.#weights.delete(id);
      this.#weightBytes -= buffer.size;
      buffer.destroy();
    }
  }

  /** Lets go of all that is only at rest. */
  #forgetAll(): void {
    for (const buffer of [...this.#weights.values(), ...[...this.#free.values()].flat()]) buffer.destroy();
    this.#weights.clear();
    this.#free.clear();
    [this.#weightBytes, this.#freeBytes] = [0, 0];
  }

  #create(size: number): GPUBuffer {
    return this.#device.createBuffer({ size, usage: STORAGE | UNIFORM | COPY_SRC | COPY_DST });
  }

  #take(size: number): GPUBuffer {
    const free = this.#free.get(size)?.pop();
    if (free) this.#freeBytes -= size;
    return free ?? this.#create(size);
  }

  #release(buffer: GPUBuffer): void {
    if (this.#freeBytes + buffer.size > MOST_AT_REST) {
      buffer.destroy();
      return;
    }
    this.#freeBytes += buffer.size;
    const others = this.#free.get(buffer.size);
    if (others) others.push(buffer);
    else this.#free.set(buffer.size, [buffer]);
  }

  #pipeline({ shader, overrides }: Dispatch): Promise<GPUComputePipeline> {
    const name = JSON.stringify([shader, overrides]);
    let pipeline = this.#pipelines.get(name);
    if (!pipeline) {
      pipeline = this.#compile(shader as keyof typeof SHADERS, overrides);
      this.#pipelines.set(name, pipeline);
    }
    return pipeline;
  }

  async #compile(shader: keyof typeof SHADERS, constants: Record<string, number>): Promise<GPUComputePipeline> {
    const reduce = this.#device.features.has("subgroups") ? "reduce_subgroups" : "reduce";
    const module = await this.#module([reduce, ...BEFORE, shader]);
    return this.#device.createComputePipelineAsync({
      layout: "auto",
      compute: { module, entryPoint: "main", constants },
    });
  }

  /** Files of src/shaders behind each other, compiled. */
  async #module(files: readonly (keyof typeof SHADERS)[]): Promise<GPUShaderModule> {
    const code = files.map((name) => SHADERS[name]).join("");
    const module = this.#device.createShaderModule({ label: files.at(-1) as string, code });
    const { messages } = await module.getCompilationInfo();
    const error = messages.find(({ type }) => type === "error");
    if (error)
      throw new GpuFailure("unavailable", `${placeOf(error.lineNum, files)}:${error.linePos}: ${error.message}`);
    return module;
  }
}

/** What is copied back. */
type Back = Pick<GpuPlan, "reads" | "size">;

/** Copies of some steps alone, one behind the other. */
function readsOf({ places, buffers }: GpuPlan, steps: readonly number[]): Back {
  let size = 0;
  const reads = steps.flatMap((step) => {
    const buffer = places[step] ?? -1;
    if (buffer < 0) return [];
    const at = size;
    size += buffers[buffer]?.numbers ?? 0;
    return [{ step, buffer, at }];
  });
  return { reads, size };
}

let loading: Promise<unknown> | undefined;

/** The planner's WebAssembly, instantiated once a realm. */
function planner(): Promise<unknown> {
  loading ??= init({ module_or_path: wasm });
  return loading;
}

/** The file and line of a line of several files behind each other. */
function placeOf(line: number, files: readonly (keyof typeof SHADERS)[]): string {
  let left = line;
  for (const name of files) {
    if (left <= lines(SHADERS[name])) return `src/shaders/${name}.wgsl:${left}`;
    left -= lines(SHADERS[name]);
  }
  return `src/shaders/${files.at(-1)}.wgsl:${left}`;
}

/** Bytes of a buffer or binding: whole blocks of sizes, whole fours of numbers. */
function padded(bytes: number): number {
  return Math.max(256, 256 * Math.ceil(bytes / 256));
}
