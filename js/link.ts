import { AttnError } from "./errors.ts";
import type { PassReply, Request } from "./host.ts";
import { optionalRule } from "./mask.ts";
import { given } from "./options.ts";
import { Trace, type TraceSource } from "./trace.ts";
import type { Transport } from "./transport.ts";

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

  newId(): number {
    return ++this.#lastId;
  }

  async call<T>(request: Request): Promise<T> {
    if (this.#closed) throw new AttnError("disposed", "the engine was destroyed");
    return this.#transport.call<T>(request);
  }

  /** For what nobody waits for: an error in it shows when what it makes is used. */
  send(request: Request): void {
    if (this.#closed) throw new AttnError("disposed", "the engine was destroyed");
    this.#transport.call(request).catch(() => {});
  }

  /** Frees the engine's object when its owner here is garbage. */
  watch(owner: object, id: number): void {
    this.#collected.register(owner, id);
  }

  free(id: number): void {
    if (!this.#closed) this.#transport.call({ op: "free", id }).catch(() => {});
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#transport.close();
  }

  /** The trace of a pass, null where no stages were kept. */
  trace(reply: PassReply, id: number): Trace | null {
    if (!reply.stages) return null;
    const source: TraceSource = {
      explain: (stage, layer, index) => this.call({ op: "explain", id, stage, layer, index }),
      remask: async (mask, options) => {
        const trace = this.newId();
        const request = { id, mask: optionalRule(mask, "mask"), options: given(options), trace };
        const again = await this.call<PassReply>({ op: "remask", ...request });
        return {
          output: again.output,
          weights: again.weights[0] ?? null,
          // A pass that could be run again had kept its stages.
          trace: this.trace(again, trace) as Trace,
        };
      },
      dispose: () => this.free(id),
    };
    const trace = new Trace(reply.stages, source);
    this.watch(trace, id);
    return trace;
  }
}
