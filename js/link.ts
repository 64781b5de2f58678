import type { BackendInfo } from "./backend-info.ts";
import { AttnError } from "./errors.ts";
import type { PassReply, PassRequest, Request } from "./host.ts";
import { optionalRule } from "./mask.ts";
import { given } from "./options.ts";
import { type KeptStage, Trace, type TraceSource } from "./trace.ts";
import type { Transport } from "./transport.ts";
import { UNWATCHED, type Watch, watchOf } from "./watch.ts";

/** What an engine's objects share: the way to the engine, names for what lives there, and the freeing of it. */
export class Link {
  readonly #transport: Transport;
  readonly #collected: FinalizationRegistry<number>;
  #lastId = 0;
  #closed = false;

  /** A call that would need more is refused. */
  readonly maxBytes: number;

  constructor(transport: Transport, maxBytes: number) {
    this.#transport = transport;
    this.maxBytes = maxBytes;
    this.#collected = new FinalizationRegistry((id) => this.free(id));
  }

  get info(): BackendInfo {
    return this.#transport.info;
  }

  newId(): number {
    return ++this.#lastId;
  }

  async call<T>(request: Request, watch = UNWATCHED): Promise<T> {
    if (this.#closed) throw new AttnError("disposed", "the engine was destroyed");
    return this.#transport.call<T>(request, watch);
  }

  /** For what nobody waits for: an error in it shows when what it makes is used. */
  send(request: Request): void {
    if (this.#closed) throw new AttnError("disposed", "the engine was destroyed");
    this.#transport.call(request, UNWATCHED).catch(() => {});
  }

  /** Frees the engine's object when its owner here is garbage. */
  watch(owner: object, id: number): void {
    this.#collected.register(owner, id);
  }

  free(id: number): void {
    if (!this.#closed) this.#transport.call({ op: "free", id }, UNWATCHED).catch(() => {});
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#transport.close();
  }

  /** A pass and its trace, which is null where no stages were kept. `before` are the stages of a pass under another mask. */
  async pass(
    request: PassRequest,
    watch: Watch,
    before: readonly KeptStage[] = [],
  ): Promise<Omit<PassReply, "stages"> & { trace: Trace | null }> {
    try {
      const { stages, ...reply } = await this.call<PassReply>(request, watch);
      return { ...reply, trace: stages && this.#trace(stages, request.trace, before) };
    } catch (reason) {
      // A pass that was given up when it had begun leaves its trace behind.
      if (watch.signal?.aborted) this.free(request.trace);
      throw reason;
    }
  }

  #trace(again: readonly KeptStage[], id: number, before: readonly KeptStage[]): Trace {
    const isSame = (one: KeptStage) => (other: KeptStage) => one.name === other.name && one.layer === other.layer;
    const stages = before.length > 0 ? before.map((stage) => again.find(isSame(stage)) ?? stage) : again;
    const source: TraceSource = {
      explain: (stage, layer, index) => this.call({ op: "explain", id, stage, layer, index }),
      remask: async (mask, chosen) => {
        const [watch, options] = watchOf(given(chosen));
        const request = { op: "remask", id, mask: optionalRule(mask, "mask"), options, trace: this.newId() } as const;
        const { output, weights, trace } = await this.pass(request, watch, stages);
        // A pass that could be run again had kept its stages.
        return { output, weights: weights[0] ?? null, trace: trace as Trace };
      },
      dispose: () => this.free(id),
    };
    const trace = new Trace(stages, source);
    this.watch(trace, id);
    return trace;
  }
}
