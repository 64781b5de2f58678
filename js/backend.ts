// Decides where a pass is computed, and sees to it that it is: on the graphics processor where it is there and pays, else on the CPU.
import { type BackendInfo, type BackendOption, CPU } from "./backend-info.ts";
import { AttnError } from "./errors.ts";
import type { Computed, Gpu, GpuFailure, Kept, Pass } from "./gpu/gpu.ts";
import type { Tensor } from "./tensor.ts";
import { type MakeHelper, Threads } from "./threads.ts";
import type { HostOptions } from "./transport.ts";
import { type Glue, glue, throwTyped } from "./wasm.ts";

type RawPlan = Glue["RawPlan"]["prototype"];
type RawTrace = Glue["RawTrace"]["prototype"];

/** What a pass gives beside its stages: the output, each layer's weights, those of a second attention, and the keys and values. */
export type Result = [Tensor, (Tensor | null)[], (Tensor | null)[], [Tensor, Tensor] | null];

/** Multiply-adds of a pass for which neither a GPU is looked for nor threads are started: some milliseconds of the CPU. */
const SMALL = 2e7;

/** @internal */
export class Backend {
  info = CPU;
  readonly #option: BackendOption;
  /** Where the script of js/gpu lies. */
  readonly #script: string | undefined;
  readonly #threads: Threads;
  readonly #changed: (info: BackendInfo) => void;
  #gpu: Gpu | null = null;
  /** "auto" asks for a GPU when the first pass comes for which it might pay. */
  #isAsked = false;
  #isClosed = false;

  private constructor(options: HostOptions, make: MakeHelper | undefined, changed: (info: BackendInfo) => void) {
    this.#option = options.backend;
    this.#script = options.gpu;
    this.#threads = new Threads(options.threads, make);
    this.#changed = changed;
    this.#tell({});
  }

  /** `changed` is told what computes whenever it is something else. @throws AttnError `gpu_unavailable` */
  static async start(
    options: HostOptions,
    make: MakeHelper | undefined,
    changed: (info: BackendInfo) => void,
  ): Promise<Backend> {
    const backend = new Backend(options, make, changed);
    const option = options.backend;
    if (option === "webgpu") {
      try {
        backend.#gpu = await backend.#open();
        backend.#tell(backend.#gpu);
      } catch (reason) {
        throw new AttnError("gpu_unavailable", (reason as Error).message, { backend: option });
      }
    }
    return backend;
  }

  /** Whether a pass of so much work may be one for the GPU. */
  mayTake(work: number): boolean {
    if (this.#option === "webgpu") return true;
    if (this.#option === "cpu" || work < SMALL) return false;
    if (!this.#isAsked) this.#ask();
    return this.#gpu !== null;
  }

  /** What is to be waited for before a pass of so much work runs on the CPU; null where it is nothing. */
  starting(work: number): Promise<void> | null {
    return (work < SMALL ? null : this.#threads.start()?.then(() => this.#tell({}))) ?? null;
  }

  /** To be called before the engine computes: other engines may share its WebAssembly. */
  limitThreads(): void {
    glue().limitThreads(this.info.threads);
  }

  /** Runs a pass of so much work on the CPU; gives its trace where it keeps stages. */
  run(
    plan: RawPlan,
    work: number,
    tell: ((part: number) => void) | undefined,
    spares: Float32Array[] | undefined,
  ): [Result, RawTrace | null] {
    const gpu = this.#gpu;
    const start = gpu ? performance.now() : 0;
    const passed = plan.run(tell, false, spares) as [Result, RawTrace | null];
    gpu?.costs.learnCpu(work, performance.now() - start);
    return passed;
  }

  /**
   * Runs a pass on the GPU; null where it is one for the CPU after all. `isRemask` says that it belongs to a pass before, which
   * kept `before` on the GPU, if anything; `wanted` the steps that alone are copied back where the others are left there.
   *
   * @throws AttnError `gpu_lost`, `gpu_unavailable`
   */
  async compute(
    plan: RawPlan,
    isRemask: boolean,
    before: Kept | null,
    wanted: readonly number[] | null,
  ): Promise<Computed | null> {
    const gpu = this.#gpu;
    if (!gpu) throw new AttnError("gpu_lost", "the graphics processor was lost; create a new engine");
    if (isRemask && !before) return null;
    const [steps, tables] = throwTyped(() => plan.outline()) as [Uint32Array, Uint32Array];
    const outline: Pass["outline"] = { steps, tables };
    const pass = { work: plan.work(), wholeWork: plan.wholeWork(), outline, given: (step: number) => plan.given(step) };
    try {
      const computed = await gpu.compute(pass, before, this.#option === "auto", wanted);
      if (computed) this.#tell(gpu);
      return computed;
    } catch (reason) {
      return this.#failed(reason as Error | GpuFailure);
    }
  }

  /** Reads what was left on the GPU; null where it is gone with it, which "auto" forgives. @throws AttnError `gpu_lost`, `gpu_unavailable` */
  async read<T>(act: () => Promise<T>): Promise<T | null> {
    try {
      return await act();
    } catch (reason) {
      return this.#failed(reason as Error | GpuFailure);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#closeGpu();
    this.#threads.close();
  }

  #closeGpu(): void {
    this.#gpu?.close();
    this.#gpu = null;
  }

  /** In the background: the pass at hand does not wait. */
  #ask(): void {
    this.#isAsked = true;
    this.#open().then(
      (gpu) => {
        if (this.#isClosed) return gpu.close();
        if (gpu.isFallback) {
          // It is slower than the engine.
          gpu.close();
          this.#tell({ noGpu: `${gpu.adapter} is a software renderer` });
          return;
        }
        this.#gpu = gpu;
        gpu.lost.then((message) => {
          if (this.#gpu === gpu) this.#leave(message);
        });
      },
      ({ message }) => this.#tell({ noGpu: message }),
    );
  }

  async #open(): Promise<Gpu> {
    if (!(globalThis.navigator as Navigator | undefined)?.gpu) throw new Error("this runtime has no WebGPU");
    if (!this.#script) throw new Error("there is no script for it: option gpu");
    const { Gpu }: typeof import("./gpu/gpu.ts") = await import(
      /* @vite-ignore */ /* webpackIgnore: true */ this.#script
    );
    return Gpu.open();
  }

  #failed(failure: Error | GpuFailure): null {
    if (!("reason" in failure)) throw failure;
    const { reason, message } = failure;
    if (reason === "memory") return null;
    if (reason === "lost" || this.#option === "auto") this.#leave(message);
    if (this.#option === "auto") return null;
    throw new AttnError(reason === "lost" ? "gpu_lost" : "gpu_unavailable", message, { backend: this.#option });
  }

  /** From here on the CPU computes. */
  #leave(noGpu: string): void {
    this.#closeGpu();
    this.#tell({ adapter: null, noGpu });
  }

  #tell(now: { adapter?: string | null; noGpu?: string }): void {
    const { adapter = this.info.adapter, noGpu = adapter === null ? this.info.noGpu : null } = now;
    const { count: threads } = this.#threads;
    if (adapter === this.info.adapter && noGpu === this.info.noGpu && threads === this.info.threads) return;
    this.info = { backend: adapter === null ? "cpu" : "webgpu", adapter, threads, noGpu };
    this.#changed(this.info);
  }
}
