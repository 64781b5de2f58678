// Decides where a pass is computed, and sees to it that it is: on the graphics processor where it is there and pays, else on the CPU.
import { AttnError } from "./errors.ts";
import type { Computed, Gpu, GpuFailure, Kept, Pass } from "./gpu.ts";
import { type Glue, throwTyped } from "./wasm.ts";

type RawPlan = Glue["RawPlan"]["prototype"];
type RawTrace = Glue["RawTrace"]["prototype"];

export type BackendOption = "auto" | "cpu" | "webgpu";

/** What computes, as far as it can change while an engine lives. */
export interface BackendInfo {
  readonly backend: "cpu" | "webgpu";
  /** The graphics adapter, or null. */
  readonly adapter: string | null;
}

const CPU: BackendInfo = { backend: "cpu", adapter: null };

/** @internal */
export class Backend {
  readonly #option: BackendOption;
  readonly #changed: (info: BackendInfo) => void;
  readonly #costs = new Costs();
  #info = CPU;
  #gpu: Gpu | null = null;
  /** "auto" asks for a GPU when the first pass comes for which it might pay. */
  #isAsked = false;

  private constructor(option: BackendOption, changed: (info: BackendInfo) => void) {
    this.#option = option;
    this.#changed = changed;
  }

  /** `changed` is told what computes whenever it is something else. @throws AttnError `gpu_unavailable` */
  static async start(option: BackendOption, changed: (info: BackendInfo) => void): Promise<Backend> {
    const backend = new Backend(option, changed);
    if (option !== "webgpu") return backend;
    try {
      backend.#gpu = await openGpu();
    } catch (reason) {
      throw new AttnError("gpu_unavailable", (reason as Error).message, { backend: option });
    }
    backend.#tell({ backend: "webgpu", adapter: backend.#gpu.adapter });
    return backend;
  }

  get info(): BackendInfo {
    return this.#info;
  }

  /** Whether a pass may be one for the GPU. */
  mayTake(plan: RawPlan): boolean {
    if (this.#option === "webgpu") return true;
    if (this.#option === "cpu" || !this.#costs.mayPay(plan.work())) return false;
    if (!this.#isAsked) this.#ask();
    return this.#gpu !== null;
  }

  /** Runs a pass on the CPU. */
  run(plan: RawPlan, tell?: (part: number) => void): RawTrace {
    const [start, work] = [performance.now(), plan.work()];
    const trace = plan.run(tell);
    this.#costs.learnCpu(work, performance.now() - start);
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
    const work = plan.work();
    const outline = throwTyped(() => plan.outline()) as Pass["outline"];
    const pass = { outline, given: (step: number) => plan.given(step) };
    const onGpu = gpu.plan(pass);
    // Its numbers, or its size, are such that only the CPU does it right.
    if (typeof onGpu === "string") return null;
    if (this.#option === "auto" && !this.#costs.pays(work, onGpu.size)) return null;
    try {
      const computed = await gpu.run(pass, onGpu, before);
      this.#costs.learnGpu(work, onGpu.size, computed.milliseconds);
      this.#tell({ backend: "webgpu", adapter: gpu.adapter });
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
    if (!(globalThis.navigator as Navigator | undefined)?.gpu) return;
    openGpu().then(
      (gpu) => {
        // A program that plays a GPU is slower than the engine.
        if (gpu.isFallback) return gpu.close();
        this.#gpu = gpu;
        gpu.lost.then(() => {
          if (this.#gpu === gpu) this.#leave();
        });
      },
      () => {},
    );
  }

  #failed(failure: Error | GpuFailure): null {
    if (!("reason" in failure)) throw failure;
    const { reason, message } = failure;
    if (reason === "memory") return null;
    if (reason === "lost" || this.#option === "auto") this.#leave();
    if (this.#option === "auto") return null;
    throw new AttnError(reason === "lost" ? "gpu_lost" : "gpu_unavailable", message, { backend: this.#option });
  }

  /** From here on the CPU computes. */
  #leave(): void {
    this.close();
    this.#tell(CPU);
  }

  #tell(info: BackendInfo): void {
    if (info.backend === this.#info.backend && info.adapter === this.#info.adapter) return;
    this.#info = info;
    this.#changed(info);
  }
}

async function openGpu(): Promise<Gpu> {
  const { Gpu } = await import("./gpu.ts");
  return Gpu.open();
}

/** What a pass costs on either side, in milliseconds; guesses at first, then what was measured. */
class Costs {
  /** Multiply-adds a millisecond of the CPU. */
  #cpuRate = 4e6;
  /** Multiply-adds and numbers copied back a millisecond of the GPU, beside what every pass takes. */
  readonly #gpuRate = 2e8;
  readonly #copyRate = 3e5;
  readonly #everyPass = 4;
  /** How many times longer the GPU takes than is guessed. */
  #gpuFactor = 1;

  mayPay(work: number): boolean {
    return this.#cpu(work) > this.#everyPass;
  }

  pays(work: number, numbers: number): boolean {
    return this.#cpu(work) > this.#gpuFactor * this.#gpu(work, numbers);
  }

  learnCpu(work: number, milliseconds: number): void {
    // What takes less is not measured well.
    if (milliseconds > 1) this.#cpuRate = (this.#cpuRate + work / milliseconds) / 2;
  }

  learnGpu(work: number, numbers: number, milliseconds: number): void {
    this.#gpuFactor = (this.#gpuFactor + milliseconds / this.#gpu(work, numbers)) / 2;
  }

  #cpu(work: number): number {
    return work / this.#cpuRate;
  }

  #gpu(work: number, numbers: number): number {
    return this.#everyPass + work / this.#gpuRate + numbers / this.#copyRate;
  }
}
