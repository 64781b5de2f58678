/** What a pass costs on either side, in milliseconds; guesses at first, then what was measured. */
export class Costs {
  /** Multiply-adds a millisecond of the CPU. */
  #cpuRate = 4e6;
  /** Multiply-adds and numbers copied back a millisecond of the GPU, beside what every pass takes. */
  readonly #gpuRate = 2e8;
  readonly #copyRate = 3e5;
  readonly #everyPass = 4;
  /** How many times longer the GPU takes than is guessed. */
  #gpuFactor = 1;

  /** Whether the GPU, which takes no rows over and copies so many numbers back, is quicker with the whole than the CPU with its part. */
  pays(part: number, whole: number, numbers: number): boolean {
    return part / this.#cpuRate > this.#gpuFactor * this.#guess(whole, numbers);
  }

  learnCpu(work: number, milliseconds: number): void {
    // What takes less is not measured well.
    if (milliseconds > 1) this.#cpuRate = (this.#cpuRate + work / milliseconds) / 2;
  }

  learnGpu(work: number, numbers: number, milliseconds: number): void {
    this.#gpuFactor = (this.#gpuFactor + milliseconds / this.#guess(work, numbers)) / 2;
  }

  #guess(work: number, numbers: number): number {
    return this.#everyPass + work / this.#gpuRate + numbers / this.#copyRate;
  }
}
