import { inFull, isAddress } from "./address.ts";
import { Analysis } from "./analysis.ts";
import type { BackendInfo, BackendOption } from "./backend-info.ts";
import type { Beside } from "./beside.ts";
import { AttnError, invalidOption, notLoaded, refusedOption } from "./errors.ts";
import {
  BUILD,
  type FileFormat,
  type MaskSize,
  type ScaledDotProductOptions as RustScaledDotProductOptions,
  VERSION,
} from "./generated.ts";
import { Generator } from "./generator.ts";
import { Link } from "./link.ts";
import { type Mask, optionalRule, ruleOf } from "./mask.ts";
import {
  Decoder,
  DecoderBlock,
  MultiHeadAttention,
  type MultiHeadAttentionOptions,
  Transformer,
  TransformerBlock,
  type TransformerOptions,
  Weighted,
} from "./modules.ts";
import { Ops } from "./ops.ts";
import { type Given, given } from "./options.ts";
import { givingUp, type ReuseOptions } from "./reuse.ts";
import { kindOf, shown } from "./shown.ts";
import { invalid, isTensor, lentTensor, notNumbers, type Tensor, type TensorLike, toTensor } from "./tensor.ts";
import { type Asked, isLazy, type LazyOption, type LazyResult, type Passed, type Trace } from "./trace.ts";
import { type HostOptions, Remote, type Transport, WORKER } from "./transport.ts";
import { glue, isModule, load, throwTyped, WASM, type WasmSource } from "./wasm.ts";
import { type WatchOptions, watchOf } from "./watch.ts";

/** How an engine is made. */
export interface EngineOptions {
  /**
   * "auto", the default, uses the GPU for passes that are faster there, if there is one, and else the CPU. "webgpu" uses it for every
   * pass that it computes as the CPU does: numbers that are or may become infinite or NaN stay on the CPU, and so does what does not
   * fit the GPU. If the device is lost, passes then throw "gpu_lost"; with "auto" they are repeated on the CPU.
   */
  backend?: BackendOption | undefined;
  /**
   * Whether the engine lives in a worker; default true in browsers, and false in Node.js, where a pass then blocks the thread that asks.
   * A function makes the worker, which runs `attnscope/worker`: for a page that is one file, and for bundlers that do not follow
   * `new URL(..., import.meta.url)`.
   */
  worker?: boolean | (() => Worker) | undefined;
  /**
   * The most threads that share a pass; default what the machine has, up to 8. There are several where the engine's memory may be
   * shared: in Node.js, and in workers of pages with the headers `Cross-Origin-Opener-Policy: same-origin` and
   * `Cross-Origin-Embedder-Policy: require-corp`, each with relaxed SIMD. `engine.info.threads` says how many. They are started
   * when the first pass comes for which they pay, and the numbers are the same, bit for bit, with any number of them.
   */
  threads?: number | undefined;
  /** A call that would need more bytes throws "too_large" before it allocates; default 1 GiB. */
  maxBytes?: number | undefined;
  /**
   * The engine's WebAssembly, where it does not lie beside the package: an address (a relative one is of the page's base), its bytes, or
   * a compiled module. A page loads it once: engines made later share the first one's.
   */
  wasm?: WasmSource | undefined;
  /** The same for the WebAssembly of `engine.analysis` and `engine.ops`, which is loaded when they are first asked. */
  analysisWasm?: WasmSource | undefined;
  /**
   * The same for the WebAssembly that reads and writes files, and state dicts with other names than the module's own, which is
   * loaded when the first of these comes.
   */
  filesWasm?: WasmSource | undefined;
  /** The address of `attnscope/gpu`, the script for graphics processors, where it does not lie beside the package. */
  gpu?: string | URL | undefined;
}

/** What computes, as `engine.info` says it. */
export interface EngineInfo extends BackendInfo {
  /** The instructions of the WebAssembly: relaxed SIMD where the runtime has it. */
  readonly kernel: "scalar" | "simd128" | "relaxed-simd";
  /** The version of the package. */
  readonly version: string;
  /** The fingerprint of the sources that the WebAssembly was compiled from; one of other sources is refused. */
  readonly build: string;
}

/** Options of {@link Engine.scaledDotProductAttention}. */
export interface ScaledDotProductOptions<Weighed extends boolean = boolean, Traced extends boolean = boolean>
  extends Given<RustScaledDotProductOptions>,
    ReuseOptions,
    WatchOptions {
  /** Whether the result holds the weights; default true. */
  needWeights?: Weighed | undefined;
  /** Whether every stage is kept; default false. */
  trace?: Traced | undefined;
  /** Which key a query may attend to; default all. With a past, or with kvLengths, rules see the queries behind it. */
  mask?: Mask | null | undefined;
  /** `[..., n_past, d_k]`: keys of earlier positions, put in front. */
  pastKey?: TensorLike | null | undefined;
  /** `[..., n_past, d_v]`: their values. */
  pastValue?: TensorLike | null | undefined;
}

/** What attention gives. */
export interface AttentionResult<Weighed extends boolean = boolean, Traced extends boolean = boolean> {
  /** `[..., n_q, d_v]` */
  readonly output: Tensor;
  /** `[..., heads, n_q, n_k]`, or null with `needWeights: false` */
  readonly weights: Asked<Weighed, Tensor>;
  /** Every stage with `trace: true`, else null */
  readonly trace: Asked<Traced, Trace>;
  /** `[..., n_past + n_k, d_k]`: the keys with the past in front, where one was given */
  readonly presentKey?: Tensor;
  /** `[..., n_past + n_k, d_v]`: the values with the past in front */
  readonly presentValue?: Tensor;
}

/** What attention with `lazy: true` gives. */
export interface LazyAttentionResult extends LazyResult, Pick<AttentionResult, "presentKey" | "presentValue"> {}

/** A mask at a size. */
export interface MaterializedMask {
  /** 1 where the query may attend to the key, else 0; what an additive mask hides by -Infinity is in `bias` alone */
  readonly allowed: Uint8Array;
  /** what is added to the scores, or null */
  readonly bias: Float32Array | null;
  /** `[batch or 1, heads or 1, n_q, n_k]` */
  readonly shape: readonly number[];
}

/** An engine of the parts that the caller gives and, for those not given, of the package's own. */
export async function engineOf(options: EngineOptions, own: Beside | null): Promise<Engine> {
  const hasWorkers = typeof Worker !== "undefined";
  const {
    backend = "auto",
    worker = own !== null && hasWorkers && typeof document !== "undefined",
    threads = processors(),
    maxBytes = 2 ** 30,
    wasm,
    analysisWasm = own?.analysis(),
    filesWasm = own?.files(),
    gpu = own?.gpu(),
  } = given(options, ["backend", "worker", "threads", "maxBytes", "wasm", "analysisWasm", "filesWasm", "gpu"]);
  if (!["auto", "cpu", "webgpu"].includes(backend))
    throw invalidOption("backend", backend, '"auto", "cpu" or "webgpu"');
  if (!(Number.isInteger(threads) && threads >= 1))
    throw invalidOption("threads", threads, "a whole number of at least 1");
  if (!(typeof maxBytes === "number" && maxBytes > 0)) throw invalidOption("maxBytes", maxBytes, "a number above 0");
  if (typeof worker !== "boolean" && typeof worker !== "function") {
    throw invalidOption("worker", worker, "true, false or a function that makes a Worker");
  }
  const script = isAddress(gpu) ? inFull(gpu) : gpu;
  if (script !== undefined && typeof script !== "string")
    throw invalidOption("gpu", gpu, "the address of attnscope/gpu");
  const ways = worker === true ? own?.workers() : worker === false ? [] : hasWorkers ? [worker] : undefined;
  if (ways === undefined) {
    const wishes = [own?.workers() && "true", "false", hasWorkers && "a function that makes a Worker"];
    throw invalidOption("worker", worker, wishes.filter(Boolean).join(" or "));
  }
  const engineWasm = sourceOf("wasm", wasm ?? own?.engine());
  if (engineWasm === undefined) throw invalidOption("wasm", wasm, WASM);
  const settings = {
    backend,
    gpu: script,
    threads,
    maxBytes,
    analysisWasm: sourceOf("analysisWasm", analysisWasm),
    filesWasm: sourceOf("filesWasm", filesWasm),
  };
  // The worker's script, or that of an engine in this thread, comes while the WebAssembly does.
  const loading = load(engineWasm, wasm != null);
  loading.catch(() => {});
  const from = worker === true ? own?.workerAddress() : undefined;
  const makers = ways.map((make) => () => madeBy(make, from));
  const transport = worker ? await Remote.start(makers, from, loading, settings) : await local(loading, settings, own);
  return new Engine(new Link(transport, maxBytes));
}

/** A part of the package as the caller gave it, its address said in full. @throws AttnError `invalid_option` */
function sourceOf(option: string, source: WasmSource | undefined): WasmSource | undefined {
  if (source === undefined) return source;
  const found = isAddress(source) ? inFull(source) : source;
  const isGood = typeof found === "string" || ArrayBuffer.isView(found) || /^(Shared)?ArrayBuffer$/.test(kindOf(found));
  if (found !== null && (isGood || isModule(found))) return found;
  throw invalidOption(option, source, WASM);
}

/** A page whose engine lives in a worker does without it. The thread of a page may not wait for others. */
async function local(loading: Promise<unknown>, settings: HostOptions, own: Beside | null): Promise<Transport> {
  const script = import("./local.ts").catch((reason: unknown) => {
    throw notLoaded("the engine's script", undefined, reason);
  });
  const [{ Local }] = await Promise.all([script, loading]);
  return Local.start(settings, typeof document === "undefined" ? own?.helper : undefined);
}

/** How many threads the machine runs at once, up to 8: what more would give is little, and they are not ours alone. */
function processors(): number {
  const { navigator, process } = globalThis;
  return Math.min(
    navigator?.hardwareConcurrency ?? process?.getBuiltinModule("node:os").availableParallelism() ?? 1,
    8,
  );
}

function madeBy(factory: () => Worker, from: string | undefined): Worker {
  let worker: unknown;
  try {
    worker = factory();
  } catch (reason) {
    throw notLoaded(WORKER, from, reason);
  }
  if (typeof Worker === "undefined" || worker instanceof Worker) return worker as Worker;
  throw invalidOption("worker", worker, "a function that makes a Worker");
}

/** Attention and the modules built on it. Everything that computes returns a Promise; making a module does not. */
export class Engine {
  readonly #link: Link;
  readonly #kernel: EngineInfo["kernel"];
  /** The parts of attention by themselves. */
  readonly ops: Ops;
  /** What researchers ask of attention weights. */
  readonly analysis: Analysis;

  /** @internal */
  constructor(link: Link) {
    this.#link = link;
    this.#kernel = glue().kernelName() as EngineInfo["kernel"];
    this.ops = new Ops(link);
    this.analysis = new Analysis(link);
  }

  /** What computes. With "auto" the backend is "webgpu" from the first pass on that pays there, while smaller ones stay here. */
  get info(): EngineInfo {
    return { ...this.#link.info, kernel: this.#kernel, version: VERSION, build: BUILD };
  }

  /**
   * softmax(q · kᵀ · scale + mask) · v, on `[n, d]`, `[heads, n, d]` or `[batch, heads, n, d]`. Fewer key and value heads than
   * query heads are shared by groups of them. Source: Vaswani et al. 2017, section 3.2.1.
   *
   * A hidden position cannot reach the weights: its score is replaced by `maskFill`, whatever it was. Its value still meets a
   * weight of 0, and 0 · NaN is NaN, as in PyTorch. PyTorch's fused attention adds -infinity instead of replacing, and so gives
   * NaN for a NaN in a hidden key too.
   *
   * ```ts
   * const [q, k, v] = [[[1, 0]], [[1, 0], [0, 1]], [[1, 2], [3, 4]]];
   * const { weights } = await engine.scaledDotProductAttention(q, k, v, { scale: 1 });
   * console.log(weights.data); // Float32Array(2) [ 0.7310585975646973, 0.2689414322376251 ]
   * ```
   *
   * @throws AttnError `invalid_tensor`, `shape_mismatch`, `mask_shape`, `invalid_option`, `too_large`; the signal's reason
   */
  async scaledDotProductAttention<
    Weighed extends boolean = true,
    Traced extends boolean = false,
    Lazy extends boolean = false,
  >(
    q: TensorLike,
    k: TensorLike,
    v: TensorLike,
    options: ScaledDotProductOptions<Weighed, Traced> & LazyOption<Lazy> = {},
  ): Promise<Passed<Lazy, AttentionResult<Weighed, Traced>, LazyAttentionResult>> {
    const { mask, pastKey, pastValue, lazy, reuse, ...settings } = given(options);
    const { output, weights, trace, present } = await givingUp(reuse, async (spares) => {
      const [watch, rest] = watchOf(settings);
      if ((pastKey == null) !== (pastValue == null)) {
        const missing = pastKey == null ? "pastKey" : "pastValue";
        throw invalidOption(missing, null, "a past of both, or of neither");
      }
      const inputs = {
        query: lentTensor(q, "query"),
        key: lentTensor(k, "key"),
        value: lentTensor(v, "value"),
        pastKey: pastKey == null ? null : lentTensor(pastKey, "pastKey"),
        pastValue: pastValue == null ? null : lentTensor(pastValue, "pastValue"),
      };
      const request = {
        op: "scaledDotProductAttention",
        inputs,
        mask: optionalRule(mask, "mask"),
        options: rest,
        isLazy: isLazy(lazy),
        spares,
        trace: this.#link.newId(),
      } as const;
      return this.#link.pass(request, watch);
    });
    return {
      output,
      weights: weights[0] ?? null,
      trace,
      ...(present && { presentKey: present[0], presentValue: present[1] }),
    } as Passed<Lazy, AttentionResult<Weighed, Traced>, LazyAttentionResult>;
  }

  /**
   * Multi-head attention. Its weights are drawn as `torch.manual_seed(seed)` and four `nn.Linear` draw them.
   *
   * ```ts
   * const mha = engine.multiHeadAttention({ dModel: 4, nHeads: 2, seed: 42 });
   * const { weights } = await mha.forward([[1, 0, 0, 1], [0, 1, 1, 0]], { mask: mask.causal() });
   * console.log(weights.shape); // [ 2, 2, 2 ]
   * ```
   *
   * @throws AttnError `not_divisible`, `invalid_option`, `too_large`
   */
  multiHeadAttention(options: MultiHeadAttentionOptions): MultiHeadAttention {
    const settings = Weighted.settings(options);
    throwTyped(() => glue().RawAttention.check(settings, this.#link.maxBytes));
    return new MultiHeadAttention(this.#link, options);
  }

  /**
   * A transformer block: attention, residual, norm, feed-forward.
   *
   * @throws AttnError `not_divisible`, `invalid_option`, `too_large`
   */
  transformerBlock(options: Omit<TransformerOptions, "nLayers">): TransformerBlock {
    this.#checkBlocks(options, false, false);
    return new TransformerBlock(this.#link, options);
  }

  /**
   * A stack of transformer blocks.
   *
   * ```ts
   * const stack = engine.transformer({ dModel: 4, nHeads: 2, nLayers: 3, activation: "gelu" });
   * const { weights } = await stack.forward([[1, 0, 0, 1], [0, 1, 1, 0]]);
   * console.log(weights.length); // 3
   * ```
   *
   * @throws AttnError `not_divisible`, `invalid_option`, `too_large`
   */
  transformer(options: TransformerOptions & { nLayers: number }): Transformer {
    this.#checkBlocks(options, true, false);
    return new Transformer(this.#link, options);
  }

  /**
   * A decoder's block: attention to itself, then to a memory, then feed-forward.
   *
   * @throws AttnError `not_divisible`, `invalid_option`, `too_large`
   */
  decoderBlock(options: Omit<TransformerOptions, "nLayers">): DecoderBlock {
    this.#checkBlocks(options, false, true);
    return new DecoderBlock(this.#link, options);
  }

  /**
   * A stack of a decoder's blocks.
   *
   * ```ts
   * const decoder = engine.decoder({ dModel: 4, nHeads: 2, nLayers: 2 });
   * const [x, memory] = [[[1, 0, 0, 1]], [[0, 1, 1, 0], [1, 1, 0, 0]]];
   * const { crossWeights } = await decoder.forward(x, memory);
   * console.log(crossWeights[1].shape); // [ 2, 1, 2 ]
   * ```
   *
   * @throws AttnError `not_divisible`, `invalid_option`, `too_large`
   */
  decoder(options: TransformerOptions & { nLayers: number }): Decoder {
    this.#checkBlocks(options, true, true);
    return new Decoder(this.#link, options);
  }

  #checkBlocks(options: TransformerOptions, isStack: boolean, isDecoder: boolean): void {
    const settings = Weighted.settings(options);
    if (isStack && settings.nLayers == null) throw invalidOption("nLayers", settings.nLayers, "the number of blocks");
    if (!isStack && "nLayers" in settings) {
      throw invalidOption("nLayers", settings.nLayers, "none for a block; a stack has nLayers");
    }
    throwTyped(() => glue().RawTransformer.check(settings, isDecoder, this.#link.maxBytes));
  }

  /**
   * PyTorch's CPU generator after `torch.manual_seed(seed)`, bit for bit.
   *
   * ```ts
   * const { data } = await engine.torchGenerator(42).randn([2]);
   * console.log(data); // Float32Array(2) [ 0.33669036626815796, 0.12880940735340118 ]
   * ```
   */
  torchGenerator(seed: number | bigint): Generator {
    return new Generator(this.#link, seed);
  }

  /**
   * A mask at the size of some scores.
   *
   * ```ts
   * const { allowed, shape } = await engine.materialize(mask.causal(), { nQ: 2, nK: 2 });
   * console.log(allowed, shape); // Uint8Array(4) [ 1, 0, 1, 1 ] [ 1, 1, 2, 2 ]
   * ```
   *
   * @throws AttnError `mask_shape`, `invalid_option`
   */
  async materialize(mask: Mask, size: Pick<MaskSize, "nQ" | "nK"> & Given<MaskSize>): Promise<MaterializedMask> {
    return this.#link.call({ op: "materialize", mask: ruleOf(mask, "mask"), size: given(size) as MaskSize });
  }

  /**
   * The tensors of a file by name, of its bytes, its text, or the `File` that somebody chose; the format is found from the bytes where
   * it is not given. A tensor alone is called "tensor";
   * in nested dicts a name is the keys between dots. What is no tensor is left out, and a pickle can run nothing.
   *
   * ```ts
   * const { tensor } = await engine.readTensors("0.5,0.5\n1,0", { format: "csv" });
   * console.log(tensor.shape); // [ 2, 2 ]
   * ```
   *
   * @throws AttnError `bad_file` with the place (`offset`, or `line` and `column`), `too_large`, `invalid_option`, `no_engine`
   */
  async readTensors(
    file: Uint8Array | ArrayBuffer | Blob | string,
    options: { format?: FileFormat | undefined } = {},
  ): Promise<Record<string, Tensor>> {
    const { format } = given(options, ["format"]);
    const read = bytesOf(file);
    // What is at hand goes to the engine in the order of the calls.
    const bytes = read instanceof Uint8Array ? read : await read;
    return Object.fromEntries(
      await this.#link.call<[string, Tensor][]>({ op: "readTensors", bytes, format: format && named(format) }),
    );
  }

  /**
   * A file of tensors by name: "safetensors", "npz" and "json" hold any number, "npy" one, "csv" one matrix.
   *
   * ```ts
   * const bytes = await engine.writeTensors({ weights: [[0.5, 0.5], [1, 0]] }, "safetensors");
   * console.log(Object.keys(await engine.readTensors(bytes))); // [ 'weights' ]
   * ```
   *
   * @throws AttnError `invalid_option`, `invalid_tensor`, `shape_mismatch`, `no_engine`
   */
  async writeTensors(tensors: Readonly<Record<string, TensorLike>>, format: FileFormat): Promise<Uint8Array> {
    if (kindOf(tensors) !== "Object" || isTensor(tensors) || Object.keys(tensors).length === 0) {
      const expected = "an object of one or more tensors by name";
      throw isTensor(tensors)
        ? invalid("tensors", [], "one tensor", expected)
        : notNumbers("tensors", [], tensors, expected);
    }
    const entries = Object.entries(tensors).map(([name, value]): [string, Tensor] => [name, toTensor(value, name)]);
    return this.#link.call({ op: "writeTensors", entries, format: named(format) });
  }

  /** Frees everything. Later calls throw "disposed". */
  destroy(): void {
    this.#link.close();
  }
}

/** A format's name; which ones there are is the engine's to say. */
function named(format: FileFormat): FileFormat {
  if (typeof format === "string") return format;
  throw invalidOption("format", format, "the name of a format");
}

/** Of objects of whichever realm. */
function bytesOf(file: unknown): Uint8Array | Promise<Uint8Array> {
  if (typeof file === "string") return new TextEncoder().encode(file);
  switch (kindOf(file)) {
    case "ArrayBuffer":
    case "Uint8Array":
      try {
        // A copy, since they may change when the call returns.
        return new Uint8Array(ArrayBuffer.isView(file) ? (file as Uint8Array) : (file as ArrayBuffer).slice(0));
      } catch {
        throw refusedOption("file", `${shown(file)} whose bytes are elsewhere`, "bytes that are here");
      }
    case "Blob":
    case "File":
      return (file as Blob).arrayBuffer().then(
        (buffer) => new Uint8Array(buffer),
        (reason) => {
          throw new AttnError("bad_file", `the file could not be read: ${reason}`, { found: String(reason) });
        },
      );
  }
  throw invalidOption("file", file, "a Uint8Array, an ArrayBuffer, a Blob or text");
}
