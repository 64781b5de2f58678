import type { BackendInfo } from "./backend-info.ts";
import { deviceTensor } from "./device-tensor.ts";
import { AttnError } from "./errors.ts";
import type { Stage } from "./generated.ts";
import type { PassReply, PassRequest, Request } from "./host.ts";
import { optionalRule } from "./mask.ts";
import { given } from "./options.ts";
import type { Tensor } from "./tensor.ts";
import { type KeptStage, type LeftStage, Trace, type TraceSource } from "./trace.ts";
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

  call<T>(request: Request, watch = UNWATCHED): Promise<T> {
    if (this.#closed) return Promise.reject(new AttnError("disposed", "the engine was destroyed"));
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
    before: readonly (KeptStage | LeftStage)[] = [],
  ): Promise<Omit<PassReply, "stages" | "left"> & { trace: Trace | null }> {
    try {
      // By name: to spread what is left of an object takes microseconds, which a small pass would feel.
      const { output, present, stages, left, weights, crossWeights } = await this.call<PassReply>(request, watch);
      if (request.op === "remask" || !request.isLazy) {
        const trace = stages && this.#trace(stages, request.trace, before);
        return { output, present, weights, crossWeights, trace };
      }
      // The weights are the trace's, wherever the pass was computed.
      const kept = left ?? stages ?? weightsOf(weights, crossWeights);
      const trace = this.#trace(kept, request.trace, [], request.options);
      return { output, present, weights: [null], crossWeights: [null], trace };
    } catch (reason) {
      // A pass that was given up when it had begun leaves its trace behind.
      if (watch.signal?.aborted) this.free(request.trace);
      throw reason;
    }
  }

  #trace(
    again: readonly (KeptStage | LeftStage)[],
    id: number,
    before: readonly (KeptStage | LeftStage)[],
    options: Readonly<Record<string, unknown>> = { trace: true },
  ): Trace {
    const isSame = (one: LayerStage) => (other: LayerStage) => one.name === other.name && one.layer === other.layer;
    const stages = before.length > 0 ? before.map((stage) => again.find(isSame(stage)) ?? stage) : again;
    const check = (stage: Stage, layer: number) => {
      if (options.trace) return;
      const message = "the pass kept no stages; run it with trace: true";
      throw new AttnError("no_such_stage", message, { stage, layer, available: stages.map(({ name }) => name) });
    };
    const source: TraceSource = {
      explain: async (stage, layer, index) => {
        check(stage, layer);
        return this.call({ op: "explain", id, stage, layer, index });
      },
      read: (stage, layer) => this.call({ op: "readStage", id, stage, layer }),
      onDevice: (stage, read) => deviceTensor(this, id, stage, read),
      remask: async (mask, chosen) => {
        check("masked", 0);
        const [watch, options] = watchOf(given(chosen));
        const request = { op: "remask", id, mask: optionalRule(mask, "mask"), options, trace: this.newId() } as const;
        const { output, weights, trace } = await this.pass(request, watch, stages);
        // A pass that could be run again had kept its stages.
        return { output, weights: weights[0] ?? null, trace: trace as Trace };
      },
      dispose: () => this.free(id),
    };
    const trace = Trace.of(stages, source);
    this.watch(trace, id);
    return trace;
  }
}

type LayerStage = Pick<KeptStage, "name" | "layer">;

/** The weights of a pass as stages. */
function weightsOf(weights: PassReply["weights"], crossWeights: PassReply["crossWeights"]): KeptStage[] {
  const stages = (name: KeptStage["name"], tensors: readonly (Tensor | null)[]) =>
    tensors.flatMap((tensor, layer) => (tensor ? [{ name, layer, tensor }] : []));
  return [...stages("weights", weights), ...stages("cross_weights", crossWeights)];
}
