// Small random models of the common families: from the state dicts that `transformers` saves to hidden states and attentions.
import type * as Attnscope from "attnscope";
import {
  difference,
  type Numbered,
  numbersOf,
  type Report,
  type Subject,
  type Tensor,
  tally,
  tensorOf,
} from "./golden.ts";

export interface ModelJson {
  id: string;
  config: Record<string, number>;
  weights: Record<string, number[]>;
  inputs: string[];
  outputs: Record<string, number[]>;
  err: Record<string, number>;
}

export async function runModels(subject: Subject, models: readonly ModelJson[], tensors: Numbered): Promise<Report> {
  const report: Report = { passed: {}, failed: [] };
  for (const json of models) {
    const problem = await new Model(subject, json, tensors).check().catch(String);
    tally(report, json.id, problem && `${json.id}: ${problem}`);
  }
  return report;
}

class Model {
  readonly #subject: Subject;
  readonly #json: ModelJson;
  readonly #tensors: Numbered;

  constructor(subject: Subject, json: ModelJson, tensors: Numbered) {
    this.#subject = subject;
    this.#json = json;
    this.#tensors = tensors;
  }

  async check(): Promise<string | null> {
    const { engine } = this.#subject;
    const { id } = this.#json;
    const options = this.#options();
    const isCausal = /gpt|llama|qwen|phi/.test(id);
    const forward = { isCausal, maskFill: -Infinity, trace: true };
    const stack = engine.transformer(options);
    await stack.loadStateDict(this.#stateDict());
    const { output, weights, trace } = await stack.forward(await this.#embedded(), {
      ...forward,
      mask: this.#distances("encoder"),
    });
    if (!trace) return "no trace";
    // ViT's last hidden state is normed, the last of its list is not.
    const layers = options.nLayers;
    const last = id === "vit" ? trace.stage("residual2", { layer: layers - 1 }) : output;
    const inputs = Array.from({ length: layers }, (_, layer) => trace.stage("input", { layer }));
    const found: Record<string, Tensor> = {
      hidden_states: stacked([...inputs, last]),
      [id === "t5" ? "encoder_attentions" : "attentions"]: stacked(weights),
      [id === "t5" ? "encoder_last_hidden_state" : "last_hidden_state"]: output,
    };
    const head = ["lm_head.weight", "embed_out.weight", "wte.weight"].map((name) => this.#weight(name)).find(Boolean);
    if (head) found.logits = await engine.ops.linear(output, head);
    if (id === "t5") {
      const decoder = engine.decoder(options);
      await decoder.loadStateDict(this.#stateDict());
      const x = gathered(this.#weight("shared.weight") as Tensor, [...this.#input("decoder_input_ids").data]);
      const mask = this.#distances("decoder");
      const decoded = await decoder.forward(x, output, { ...forward, isCausal: true, mask });
      found.last_hidden_state = decoded.output;
      found.decoder_attentions = stacked(decoded.selfWeights);
      found.cross_attentions = stacked(decoded.crossWeights);
    }
    for (const [name, err] of Object.entries(this.#json.err)) {
      if (name === "pooler_output") continue;
      const expected = numbersOf(this.#tensors, `${id}/y/${name}`);
      const problem = difference(name, found[name], expected, expected.data, Math.max(8 * err, 2e-6));
      if (problem) return problem;
    }
    return null;
  }

  #size(...names: string[]): number {
    const found = names.map((name) => this.#json.config[name]).find((size) => size !== undefined);
    if (found === undefined) throw new Error(`none of ${names}`);
    return found;
  }

  #options(): Attnscope.TransformerOptions & { nLayers: number } {
    const { config, id } = this.#json;
    const base = {
      dModel: this.#size("hidden_size", "dim", "n_embd", "d_model"),
      nHeads: this.#size("num_attention_heads", "n_heads", "n_head", "num_heads"),
      nLayers: this.#size("num_hidden_layers", "n_layers", "n_layer", "num_layers"),
      dFf: config.intermediate_size ?? config.hidden_dim ?? config.d_ff ?? null,
      activation: "gelu" as const,
      eps: config.layer_norm_eps ?? config.layer_norm_epsilon ?? config.rms_norm_eps ?? 1e-12,
    };
    const preNorm = { ...base, normFirst: true, finalNorm: true };
    const llama = {
      ...preNorm,
      norm: "rms" as const,
      gated: true,
      activation: "silu" as const,
      bias: false,
      nKvHeads: config.num_key_value_heads ?? null,
      dK: config.head_dim ?? null,
      positions: "rope" as const,
    };
    const families: Record<string, Attnscope.TransformerOptions & { nLayers: number }> = {
      bert: base,
      roberta: base,
      distilbert: base,
      vit: preNorm,
      gpt2: { ...preNorm, activation: "gelu_tanh" },
      gpt_neox: { ...preNorm, parallel: true, positions: "rope", rotaryDim: 2 },
      llama_gqa: llama,
      phi3: llama,
      qwen2: { ...llama, qkvBias: true },
      qwen3: { ...llama, qkNorm: true },
      t5: { ...preNorm, norm: "rms", activation: "relu", bias: false, scale: 1, dK: config.d_kv ?? null },
    };
    const found = families[id];
    if (!found) throw new Error(`unknown family ${id}`);
    return found;
  }

  #weight(name: string): Tensor | undefined {
    const found = Object.keys(this.#json.weights).find((key) => key === name || key.endsWith(`.${name}`));
    return found === undefined ? undefined : tensorOf(this.#tensors, `${this.#json.id}/w/${found}`);
  }

  #stateDict(): Record<string, Tensor> {
    const names = Object.keys(this.#json.weights);
    return Object.fromEntries(names.map((name) => [name, tensorOf(this.#tensors, `${this.#json.id}/w/${name}`)]));
  }

  #input(name: string): Tensor {
    return tensorOf(this.#tensors, `${this.#json.id}/in/${name}`);
  }

  /** What enters the first block. */
  async #embedded(): Promise<Tensor> {
    if (this.#json.id === "vit") return this.#patches();
    const ids = [...this.#input("input_ids").data];
    const names = ["word_embeddings", "wte", "embed_in", "embed_tokens", "shared"];
    const words = names.map((name) => this.#weight(`${name}.weight`)).find(Boolean) as Tensor;
    let x = gathered(words, ids);
    const first = this.#json.id === "roberta" ? 2 : 0;
    const positions = this.#weight("position_embeddings.weight") ?? this.#weight("wpe.weight");
    if (positions)
      x = sum(
        x,
        gathered(
          positions,
          ids.map((_, i) => first + i),
        ),
      );
    const types = this.#weight("token_type_embeddings.weight");
    if (types)
      x = sum(
        x,
        gathered(
          types,
          ids.map(() => 0),
        ),
      );
    const weight = this.#weight("embeddings.LayerNorm.weight");
    const bias = this.#weight("embeddings.LayerNorm.bias");
    if (weight && bias) x = await this.#subject.engine.ops.layerNorm(x, { weight, bias, eps: 1e-12 });
    return x;
  }

  /** ViT's input: a convolution whose stride is its size, a token in front, positions added. */
  async #patches(): Promise<Tensor> {
    const pixels = this.#input("pixel_values");
    const [, channels = 0, size = 0] = pixels.shape;
    const weight = this.#weight("patch_embeddings.projection.weight") as Tensor;
    const [dModel = 0, , patch = 0] = weight.shape;
    const side = size / patch;
    const rows: number[] = [];
    for (let at = 0; at < side * side; at++) {
      for (let channel = 0; channel < channels; channel++) {
        for (let y = 0; y < patch; y++) {
          const start = (channel * size + Math.floor(at / side) * patch + y) * size + (at % side) * patch;
          rows.push(...pixels.data.subarray(start, start + patch));
        }
      }
    }
    const width = channels * patch * patch;
    const patches = await this.#subject.engine.ops.linear(
      { data: Float32Array.from(rows), shape: [side * side, width] },
      { data: weight.data, shape: [dModel, width] },
      this.#weight("patch_embeddings.projection.bias") as Tensor,
    );
    const token = this.#weight("cls_token") as Tensor;
    const shape = [1, side * side + 1, dModel];
    const x = { data: Float32Array.from([...token.data, ...patches.data]), shape };
    return sum(x, this.#weight("position_embeddings") as Tensor);
  }

  /** T5's distances, learned once for all layers. */
  #distances(side: "encoder" | "decoder"): Attnscope.Mask | null {
    const table = this.#weight(`${side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight`);
    return table ? this.#subject.attnscope.mask.relative(table, { bidirectional: side === "encoder" }) : null;
  }
}

function gathered({ data, shape }: Tensor, rows: number[]): Tensor {
  const width = shape[1] as number;
  const out = new Float32Array(rows.length * width);
  for (const [i, row] of rows.entries()) out.set(data.subarray(row * width, (row + 1) * width), i * width);
  return { data: out, shape: [1, rows.length, width] };
}

function sum(left: Tensor, right: Tensor): Tensor {
  return { data: left.data.map((x, i) => x + (right.data[i] as number)), shape: left.shape };
}

/** Tensors `[1, ...]` behind each other. */
function stacked(tensors: readonly Tensor[] | null): Tensor {
  if (!tensors?.[0]) throw new Error("nothing to stack");
  const data = tensors.flatMap((tensor) => [...tensor.data]);
  return { data: Float32Array.from(data), shape: [tensors.length, ...tensors[0].shape.slice(1)] };
}
