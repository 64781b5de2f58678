/** Where passes are computed: where it pays, on the CPU, or on the GPU. */
export type BackendOption = "auto" | "cpu" | "webgpu";

/** What computes, as far as it can change while an engine lives. */
export interface BackendInfo {
  /** Where passes are computed at present. */
  readonly backend: "cpu" | "webgpu";
  /** The graphics adapter, or null. */
  readonly adapter: string | null;
  /** How many threads share a pass on the CPU that is large enough. */
  readonly threads: number;
  /** Why no GPU computes, once one was looked for; else null. */
  readonly noGpu: string | null;
}

export const CPU: BackendInfo = { backend: "cpu", adapter: null, threads: 1, noGpu: null };
