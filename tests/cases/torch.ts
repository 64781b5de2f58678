// The posts that this project started from, with their traps, and PyTorch's own modules.
import type * as Attnscope from "attnscope";
import { both, type Case, type Computed, type Subject, tensorOf } from "./golden.ts";

const BATCH = { axes: "batch" } as const;

/** What PyTorch computes, by group of golden.json. */
export function torchGroups({ attnscope, engine }: Subject): Record<string, (golden: Case) => Promise<Computed>> {
  /** What PyTorch does: -infinity, and zeros for an empty row where it does not return weights. */
  const exact = (needWeights = true) =>
    ({ maskFill: -Infinity, emptyRow: needWeights ? "nan" : "zero", needWeights }) as const;

  /** `[batch, n_k]`, true is hidden. */
  const padding = (golden: Case, name: string) =>
    golden.mask(attnscope, name, "fromMasked", undefined, ([batch = 0, keys = 0]) => [batch, 1, 1, keys]);

  return {
    async seedA_mha(golden) {
      const options = { dModel: golden.size("d_model"), nHeads: golden.size("n_heads") };
      if (options.dModel % options.nHeads !== 0) return refused(golden, () => engine.multiHeadAttention(options));
      const mha = engine.multiHeadAttention(options);
      await mha.loadStateDict(golden.stateDict());
      let mask: Attnscope.Mask | null = null;
      if (golden.has("mask")) {
        // The post reads 0 as hidden, whatever the type, and a matrix of two axes as one row a head.
        const { data, shape } = golden.input("mask");
        const [rows = 0, keys = 0] = shape;
        mask =
          shape.length === 2
            ? attnscope.mask.fromKeep({ data, shape: [rows, 1, keys] })
            : attnscope.mask.fromKeep({ data, shape }, BATCH);
      }
      return { ...(await mha.forward(golden.input("x"), { mask })) } as unknown as Computed;
    },

    async seedA_block(golden) {
      const { config } = golden.json;
      const nLayers = golden.size("n_blocks");
      const dropout = (config.dropout as number | undefined) ?? 0;
      const sizes = { dModel: golden.size("d_model"), nHeads: golden.size("n_heads"), nLayers, dropout };
      const stack = engine.transformer(sizes);
      await stack.loadStateDict(golden.stateDict());
      const training = config.mode === "train";
      const generator = training ? engine.torchGenerator(golden.size("seed")) : undefined;
      const mask = golden.mask(attnscope, "mask", "fromKeep", BATCH);
      const options = { mask, trace: true, training, ...(generator && { generator }) };
      const { weights, trace } = await stack.forward(golden.input("x"), options);
      const ours: Computed = {};
      for (let layer = 0; layer < nLayers; layer++) {
        ours[`weights.${layer}`] = weights?.[layer];
        ours[`output.${layer}`] = trace?.stage("norm2", { layer });
      }
      return ours;
    },

    async seedB_sdpa(golden) {
      const [q, k, v] = ["Q", "K", "V"].map((name) => golden.input(name)) as [Tensor, Tensor, Tensor];
      const mask = golden.mask(attnscope, "attn_mask", "fromMasked");
      const { output, weights } = await engine.scaledDotProductAttention(q, k, v, { mask });
      return { context: output, attn: weights };
    },

    async seedB_mha(golden) {
      const [dModel, nHeads, dK, dV] = ["d_model", "n_heads", "d_k", "d_v"].map((name) => golden.size(name));
      const sizes = { dModel, nHeads, dK, dV, residualNorm: true } as Attnscope.MultiHeadAttentionOptions;
      const mha = engine.multiHeadAttention(sizes);
      const dict = golden.stateDict();
      await mha.loadStateDict(dict);
      const mask = golden.mask(attnscope, "attn_mask", "fromMasked", BATCH);
      const options = { key: golden.input("K"), value: golden.input("V"), mask, trace: true };
      const { output, weights, trace } = await mha.forward(golden.input("Q"), options);
      const ours: Computed = { output, attn: weights, context: trace?.stage("concat") };
      if (golden.json.config.as_written) {
        // As written, each call makes a new output projection.
        const drawn = await engine.torchGenerator(8).linear(16, 16);
        await mha.loadStateDict({ ...dict, "linear.weight": drawn.weight, "linear.bias": drawn.bias });
        ours.output_second_call = (await mha.forward(golden.input("Q"), options)).output;
      }
      return ours;
    },

    async torch_mha(golden) {
      const { config } = golden.json;
      const nHeads = golden.size("num_heads");
      const mha = engine.multiHeadAttention({
        dModel: golden.size("embed_dim"),
        nHeads,
        kDim: (config.kdim as number | undefined) ?? null,
        vDim: (config.vdim as number | undefined) ?? null,
        bias: config.bias !== false,
        biasKv: config.add_bias_kv === true,
        addZeroAttn: config.add_zero_attn === true,
      });
      await mha.loadStateDict(golden.stateDict());
      const swap = (tensor: Tensor) => (config.batch_first === true ? tensor : firstAxesSwapped(tensor));
      const [query, key, value] = ["query", "key", "value"].map((name) => swap(golden.input(name)));
      // Three axes are the heads of every batch entry, one behind another.
      const byHead = (shape: number[]) =>
        shape.length === 3 ? [(shape[0] as number) / nHeads, nHeads, ...shape.slice(1)] : shape;
      const attnMask = golden.mask(attnscope, "attn_mask", "fromMasked", undefined, byHead);
      const call = config.call as { need_weights?: boolean; average_attn_weights?: boolean };
      const { output, weights } = await mha.forward(query as Tensor, {
        key: key as Tensor,
        value: value as Tensor,
        mask: both(attnMask, padding(golden, "key_padding_mask")),
        averageWeights: call.average_attn_weights !== false,
        ...exact(call.need_weights !== false),
      });
      return { output: swap(output), weights };
    },

    async torch_sdpa(golden) {
      const call = golden.json.config.call as { is_causal?: boolean; scale?: number };
      const [q, k, v] = ["query", "key", "value"].map((name) => golden.input(name)) as [Tensor, Tensor, Tensor];
      const pass = (emptyRow: "nan" | "zero") =>
        engine.scaledDotProductAttention(q, k, v, {
          mask: golden.mask(attnscope, "attn_mask", "fromKeep"),
          isCausal: call.is_causal === true,
          scale: call.scale ?? null,
          maskFill: -Infinity,
          emptyRow,
        });
      // PyTorch's output is zero where a textbook's weights are NaN.
      return { output: (await pass("zero")).output, weights: (await pass("nan")).weights };
    },

    async torch_encoder(golden) {
      const { config } = golden.json;
      const options = { ...blockOptions(golden), finalNorm: config.final_norm === true };
      const nLayers = config.num_layers as number | undefined;
      const mask = both(
        golden.mask(attnscope, "src_mask", "fromMasked", BATCH),
        padding(golden, "src_key_padding_mask"),
      );
      if (nLayers !== undefined) {
        const stack = engine.transformer({ ...options, nLayers });
        await stack.loadStateDict(golden.stateDict());
        const { output, weights } = await stack.forward(golden.input("src"), { mask, ...exact() });
        return { output, weights: weights?.[0] };
      }
      const block = engine.transformerBlock(options);
      await block.loadStateDict(golden.stateDict());
      const { output, weights } = await block.forward(golden.input("src"), { mask, ...exact() });
      return { output, weights };
    },

    async torch_decoder(golden) {
      const block = engine.decoderBlock(blockOptions(golden));
      await block.loadStateDict(golden.stateDict());
      const mask = both(golden.mask(attnscope, "tgt_mask", "fromMasked"), padding(golden, "tgt_key_padding_mask"));
      const memoryMask = both(
        golden.mask(attnscope, "memory_mask", "fromMasked"),
        padding(golden, "memory_key_padding_mask"),
      );
      const options = { mask, memoryMask, ...exact() };
      const { output } = await block.forward(golden.input("tgt"), golden.input("memory"), options);
      return { output };
    },

    async edge_sdpa(golden) {
      const [q, k, v] = ["Q", "K", "V"].map((name) => golden.input(name)) as [Tensor, Tensor, Tensor];
      const mask = golden.mask(attnscope, "attn_mask", "fromMasked");
      const { output, weights } = await engine.scaledDotProductAttention(q, k, v, { mask });
      return { context: output, attn: weights };
    },

    async edge_op(golden) {
      const x = golden.input("x");
      const name = golden.json.id.replace("E/op/", "").replace(/_eps12$|_allinf$/, "");
      const parameters = golden.stateDict();
      const { ops } = engine;
      const run: Record<string, () => Promise<Tensor>> = {
        layernorm: () => ops.layerNorm(x, { ...parameters, eps: golden.size("eps") }),
        rmsnorm: () => ops.rmsNorm(x, { ...parameters, eps: golden.size("eps") }),
        gelu_erf: () => ops.gelu(x),
        gelu_tanh: () => ops.gelu(x, { approximate: "tanh" }),
        silu: () => ops.silu(x),
        softmax: () => ops.softmax(x),
        log_softmax: () => ops.logSoftmax(x),
      };
      return { y: await run[name]?.() };
    },
  };
}

type Tensor = Attnscope.Tensor;

/** What the case expects, where making the module throws "not_divisible" instead. */
function refused(golden: Case, make: () => unknown): Computed {
  try {
    make();
  } catch (error) {
    if ((error as Attnscope.AttnError).code !== "not_divisible") throw error;
    const expected = Object.entries(golden.json.expected);
    return Object.fromEntries(expected.map(([name, key]) => [name, tensorOf(golden.tensors, key)]));
  }
  throw new Error("heads that do not divide were taken");
}

function blockOptions(golden: Case) {
  const { config } = golden.json;
  return {
    dModel: golden.size("d_model"),
    nHeads: golden.size("nhead"),
    dFf: golden.size("dim_feedforward"),
    normFirst: config.norm_first === true,
    activation: config.activation === "gelu" ? "gelu" : "relu",
    eps: (config.layer_norm_eps as number | undefined) ?? 1e-5,
    bias: config.bias !== false,
  } as const;
}

function firstAxesSwapped({ data, shape }: Tensor): Tensor {
  const [a = 0, b = 0, width = 0] = shape;
  const swapped = new Float32Array(data.length);
  for (let j = 0; j < b; j++) {
    for (let i = 0; i < a; i++)
      swapped.set(data.subarray((i * b + j) * width, (i * b + j + 1) * width), (j * a + i) * width);
  }
  return { data: swapped, shape: [b, a, width] };
}
