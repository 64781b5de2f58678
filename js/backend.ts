// Decides where a pass is computed, and sees to it that it is: on the graphics processor where it is there and pays, else on the CPU.
import { type BackendInfo, type BackendOption, CPU } from "./backend-info.ts";
import { AttnError } from "./errors.ts";
import type { Computed, Gpu, GpuFailure, Kept, Pass } from "./gpu/gpu.ts";
import { type Glue, throwTyped } from "./wasm.ts";

type RawPlan = Glue["RawPlan"]["prototype"];
type RawTrace = Glue["RawTrace"]["prototype"];

/** Multiply-adds of a pass for which no GPU is looked for: some milliseconds of the CPU. */
const SMALL = 2e7;

/** @internal */
export class Backend {
  info = CPU;
  readonly #option: BackendOption;
  /** Where the script of js/gpu lies. */
  readonly #script: string | undefined;
  readonly #changed: (info: BackendInfo) => void;
  #gpu: Gpu | null = null;
  /** "auto" asks for a GPU when the first pass comes for which it might pay. */
  #isAsked = false;

  private constructor(option: BackendOption, script: string | undefined, changed: (info: BackendInfo) => void) {
    this.#option = option;
    this.#script = script;
    this.#changed = changed;
  }

  /** `changed` is told what computes whenever it is something else. @throws AttnError `gpu_unavailable` */
  static async start(
    option: BackendOption,
    script: string | undefined,
    changed: (info: BackendInfo) => void,
  ): Promise<Backend> {
    const backend = new Backend(option, script, changed);
    if (option === "webgpu") {
      try {
        backend.#gpu = await backend.#open();
        backend.#tell(backend.#gpu.adapter);
      } catch (reason) {
        throw new AttnError("gpu_unavailable", (reason as Error).message, { backend: option });
      }
    }
    return backend;
  }

  /** Whether a pass may be one for the GPU. */
  mayTake(plan: RawPlan): boolean {
    if (this.#option === "webgpu") return true;
    if (this.#option === "cpu" || plan.work() < SMALL) return false;
    if (!this.#isAsked) this.#ask();
    return this.#gpu !== null;
  }

  /** Runs a pass on the CPU. */
  run(plan: RawPlan, tell?: (part: number) => void): RawTrace {
    const [start, work] = [performance.now(), plan.work()];
    const trace = plan.run(tell);
    this.#gpu?.costs.learnCpu(work, performance.now() - start);
    return trace;
  }

  /**
   * Runs a pass on the GPU; null where it is one for the CPU after all. `isRemask` says that it belongs to a pass before, which
   * kept `before` on the GPU, if anything.
   *
   * @throws AttnError `gpu_lost`, `gpu_unavailable`
   */
  async compute(plan: RawPlan, isRemask: boolean, before: Kept | null): Promise<Computed | null> {
    const gpu = this.#gpu;
    if (!gpu) throw new AttnError("gpu_lost", "the graphics processor was lost; create a new engine");
    if (isRemask && !before) return null;
    const outline = throwTyped(() => plan.outline()) as Pass["outline"];
    const pass = { work: plan.work(), wholeWork: plan.wholeWork(), outline, given: (step: number) => plan.given(step) };
    try {
      const computed = await gpu.compute(pass, before, this.#option === "auto");
      if (computed) this.#tell(gpu.adapter);
      return computed;
    } catch (reason) {
      return this.#failed(reason as Error | GpuFailure);
    }
  }

  close(): void {
    this.#gpu?.close();
    this.#gpu = null;
  }

  /** In the background: the pass at hand does not wait. */
  #ask(): void {
    this.#isAsked = true;
    this.#open().then(
      (gpu) => {
        // A program that plays a GPU is slower than the engine.
        if (gpu.isFallback) {
          gpu.close();
          this.#tell(null, `${gpu.adapter} is a program`);
          return;
        }
        this.#gpu = gpu;
        gpu.lost.then((message) => {
          if (this.#gpu === gpu) this.#leave(message);
        });
      },
      ({ message }) => this.#tell(null, message),
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
    this.close();
    this.#tell(null, noGpu);
  }

  #tell(adapter: string | null, noGpu: string | null = null): void {
    if (adapter === this.info.adapter && noGpu === this.info.noGpu) return;
    this.info = { backend: adapter === null ? "cpu" : "webgpu", adapter, noGpu };
    this.#changed(this.info);
  }
}
