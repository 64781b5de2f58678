//! Small random models of the common families, from the state dicts that `transformers` saves to the hidden states and
//! attentions that it computes.

use attnscope::{
    Activation, ForwardOptions, Mask, Memory, NormKind, Positions, Tensor, Trace, Transformer, TransformerOptions, ops,
    torch::Generator,
};
use safetensors::SafeTensors;
use serde_json::Value;

use crate::MAX_BYTES;
use crate::golden::{Golden, compare, numbers, tensor};

/// One model: its manifest entry and tensors.
struct Model<'a> {
    json: &'a Value,
    tensors: &'a SafeTensors<'a>,
}

impl Model<'_> {
    fn id(&self) -> &str {
        self.json["id"].as_str().unwrap()
    }

    fn config(&self, names: &[&str]) -> Option<f64> {
        names.iter().find_map(|name| self.json["config"][name].as_f64())
    }

    fn size(&self, names: &[&str]) -> usize {
        self.config(names).unwrap_or_else(|| panic!("{}: none of {names:?}", self.id())) as usize
    }

    fn weight(&self, name: &str) -> Option<Tensor> {
        let shapes = self.json["weights"].as_object().unwrap();
        let found = shapes.keys().find(|key| *key == name || key.ends_with(&format!(".{name}")))?;
        Some(tensor(self.tensors, &format!("{}/w/{found}", self.id())))
    }

    fn state_dict(&self) -> Vec<(String, Tensor)> {
        let names = self.json["weights"].as_object().unwrap().keys();
        names.map(|name| (name.clone(), tensor(self.tensors, &format!("{}/w/{name}", self.id())))).collect()
    }

    fn input(&self, name: &str) -> Tensor {
        tensor(self.tensors, &format!("{}/in/{name}", self.id()))
    }

    fn options(&self) -> TransformerOptions {
        let id = self.id();
        let d_model = self.size(&["hidden_size", "dim", "n_embd", "d_model"]);
        let n_heads = self.size(&["num_attention_heads", "n_heads", "n_head", "num_heads"]);
        let eps = self.config(&["layer_norm_eps", "layer_norm_epsilon", "rms_norm_eps"]).unwrap_or(1e-12) as f32;
        let base = TransformerOptions {
            n_layers: Some(self.size(&["num_hidden_layers", "n_layers", "n_layer", "num_layers"])),
            d_ff: self.config(&["intermediate_size", "hidden_dim", "d_ff"]).map(|size| size as usize),
            activation: Activation::Gelu,
            eps,
            ..TransformerOptions::new(d_model, n_heads)
        };
        let pre_norm = TransformerOptions { norm_first: true, final_norm: true, ..base.clone() };
        let llama = TransformerOptions {
            norm: NormKind::Rms,
            gated: true,
            activation: Activation::Silu,
            bias: false,
            n_kv_heads: self.config(&["num_key_value_heads"]).map(|heads| heads as usize),
            d_k: self.config(&["head_dim"]).map(|size| size as usize),
            positions: Positions::Rope,
            ..pre_norm.clone()
        };
        match id {
            "bert" | "roberta" | "distilbert" => base,
            "vit" => pre_norm,
            "gpt2" => TransformerOptions { activation: Activation::GeluTanh, ..pre_norm },
            "gpt_neox" => {
                TransformerOptions { parallel: true, positions: Positions::Rope, rotary_dim: Some(2), ..pre_norm }
            }
            "llama_gqa" | "phi3" => llama,
            "qwen2" => TransformerOptions { qkv_bias: Some(true), ..llama },
            "qwen3" => TransformerOptions { qk_norm: true, ..llama },
            "t5" => TransformerOptions {
                norm: NormKind::Rms,
                activation: Activation::Relu,
                bias: false,
                scale: Some(1.0),
                d_k: Some(self.size(&["d_kv"])),
                ..pre_norm
            },
            other => panic!("unknown family {other}"),
        }
    }

    /// What enters the first block.
    fn embedded(&self) -> Tensor {
        let gather = |table: &Tensor, rows: &[usize]| {
            let width = table.shape[1];
            let data = rows.iter().flat_map(|&row| &table.data[row * width..][..width]).copied().collect();
            Tensor::new(data, vec![1, rows.len(), width]).unwrap()
        };
        let add = |sum: &mut Tensor, more: &Tensor| sum.data.iter_mut().zip(&more.data).for_each(|(x, y)| *x += y);
        if self.id() == "vit" {
            return self.patches();
        }
        let ids: Vec<usize> = self.input("input_ids").data.iter().map(|&id| id as usize).collect();
        let words = ["word_embeddings.weight", "wte.weight", "embed_in.weight", "embed_tokens.weight", "shared.weight"];
        let words = words.iter().find_map(|name| self.weight(name)).unwrap();
        let mut x = gather(&words, &ids);
        let first = if self.id() == "roberta" { 2 } else { 0 };
        if let Some(table) = self.weight("position_embeddings.weight").or_else(|| self.weight("wpe.weight")) {
            add(&mut x, &gather(&table, &(first..first + ids.len()).collect::<Vec<_>>()));
        }
        if let Some(table) = self.weight("token_type_embeddings.weight") {
            add(&mut x, &gather(&table, &vec![0; ids.len()]));
        }
        if let Some(weight) = self.weight("embeddings.LayerNorm.weight") {
            let bias = self.weight("embeddings.LayerNorm.bias");
            x = ops::layer_norm(&x, Some(&weight), bias.as_ref(), 1e-12, -1).unwrap();
        }
        x
    }

    /// ViT's input: a convolution whose stride is its size, a token in front, positions added.
    fn patches(&self) -> Tensor {
        let pixels = self.input("pixel_values");
        let weight = self.weight("patch_embeddings.projection.weight").unwrap();
        let [_, channels, size, _] = pixels.shape[..] else { panic!("an image has four axes") };
        let [d_model, _, patch, _] = weight.shape[..] else { panic!("a convolution has four axes") };
        let side = size / patch;
        let mut rows = Vec::new();
        for at in 0..side * side {
            for channel in 0..channels {
                for y in 0..patch {
                    let start = (channel * size + at / side * patch + y) * size + at % side * patch;
                    rows.extend_from_slice(&pixels.data[start..][..patch]);
                }
            }
        }
        let width = channels * patch * patch;
        let rows = Tensor::new(rows, vec![side * side, width]).unwrap();
        let weight = Tensor::new(weight.data, vec![d_model, width]).unwrap();
        let patches =
            ops::linear(&rows, &weight, self.weight("patch_embeddings.projection.bias").as_ref(), MAX_BYTES).unwrap();
        let mut data = self.weight("cls_token").unwrap().data;
        data.extend(patches.data);
        data.iter_mut().zip(self.weight("position_embeddings").unwrap().data).for_each(|(x, y)| *x += y);
        Tensor::new(data, vec![1, side * side + 1, d_model]).unwrap()
    }

    /// T5's distances, learned once for all layers.
    fn distances(&self, side: &str) -> Option<Mask> {
        let name = format!("{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
        let table = self.weight(&name)?;
        Some(Mask::Relative {
            buckets: table.shape[0],
            heads: table.shape[1],
            table: table.data.iter().flat_map(|number| number.to_le_bytes()).collect(),
            bidirectional: side == "encoder",
            max_distance: 128,
        })
    }

    fn check(&self, name: &str, ours: &Tensor) {
        let Some(err) = self.json["err"][name].as_f64() else { return };
        let expected = numbers(self.tensors, &format!("{}/y/{name}", self.id()));
        compare(&format!("{} {name}", self.id()), ours, &expected, &expected.1, (8.0 * err).max(2e-6));
    }

    /// The layers' weights `[layers, heads, n_q, n_k]`.
    fn attentions(&self, weights: impl Fn(usize) -> Tensor, layers: usize) -> Tensor {
        let weights: Vec<Tensor> = (0..layers).map(weights).collect();
        let shape = [&[layers], &weights[0].shape[1..]].concat();
        Tensor::new(weights.into_iter().flat_map(|weights| weights.data).collect(), shape).unwrap()
    }

    /// What entered each layer, and the result `[layers + 1, n, d_model]`.
    fn hidden_states(&self, trace: &Trace, last: &Tensor) -> Tensor {
        let layers = trace.n_layers();
        let mut states: Vec<Tensor> =
            (0..layers).map(|layer| trace.stage(attnscope::Stage::Input, layer).unwrap()).collect();
        states.push(last.clone());
        let shape = [&[layers + 1], &last.shape[1..]].concat();
        Tensor::new(states.into_iter().flat_map(|state| state.data).collect(), shape).unwrap()
    }
}

#[test]
fn models() {
    let golden = Golden::read("arch");
    let tensors = golden.tensors();
    let models = golden.manifest["archs"].as_array().unwrap();
    for json in models {
        let model = Model { json, tensors: &tensors };
        let options = model.options();
        let layers = options.n_layers.unwrap();
        let is_causal = matches!(model.id(), "gpt2" | "gpt_neox" | "llama_gqa" | "qwen2" | "qwen3" | "phi3");
        let forward =
            ForwardOptions { is_causal, mask_fill: f32::NEG_INFINITY, trace: true, ..ForwardOptions::default() };
        let mut stack = Transformer::encoder(options.clone(), &mut Generator::new(0), MAX_BYTES).unwrap();
        stack.load_state_dict(model.state_dict(), None).unwrap_or_else(|error| panic!("{}: {error}", model.id()));
        let x = model.embedded();
        let trace = stack.forward(&x, None, model.distances("encoder").as_ref(), &forward, MAX_BYTES).unwrap();
        let output = trace.output();
        let attentions = model.attentions(|layer| trace.weights(layer).unwrap().unwrap(), layers);
        // ViT's last hidden state is normed, the last of its list is not.
        let is_vit = model.id() == "vit";
        let last = if is_vit { trace.stage(attnscope::Stage::Residual2, layers - 1).unwrap() } else { output.clone() };
        model.check("hidden_states", &model.hidden_states(&trace, &last));
        if model.id() == "t5" {
            model.check("encoder_attentions", &attentions);
            model.check("encoder_last_hidden_state", &output);
            decode(&model, options, &output);
            continue;
        }
        model.check("attentions", &attentions);
        model.check("last_hidden_state", &output);
        let head = ["lm_head.weight", "embed_out.weight", "wte.weight"].iter().find_map(|name| model.weight(name));
        if let Some(head) = head {
            model.check("logits", &ops::linear(&output, &head, None, MAX_BYTES).unwrap());
        }
    }
    println!("models: {}", models.len());
    assert!(models.len() >= 10);
}

/// T5's other half.
fn decode(model: &Model, options: TransformerOptions, memory: &Tensor) {
    let layers = options.n_layers.unwrap();
    let mut decoder = Transformer::decoder(options, &mut Generator::new(0), MAX_BYTES).unwrap();
    decoder.load_state_dict(model.state_dict(), None).unwrap();
    let forward =
        ForwardOptions { is_causal: true, mask_fill: f32::NEG_INFINITY, trace: true, ..ForwardOptions::default() };
    let ids = model.input("decoder_input_ids");
    let table = model.weight("shared.weight").unwrap();
    let rows = ids.data.iter().flat_map(|&id| &table.data[id as usize * table.shape[1]..][..table.shape[1]]);
    let x = Tensor::new(rows.copied().collect(), vec![1, ids.shape[1], table.shape[1]]).unwrap();
    let memory = Memory { rows: memory, mask: None };
    let distances = model.distances("decoder");
    let trace = decoder.forward(&x, Some(memory), distances.as_ref(), &forward, MAX_BYTES).unwrap();
    model.check("last_hidden_state", &trace.output());
    model.check("decoder_attentions", &model.attentions(|layer| trace.weights(layer).unwrap().unwrap(), layers));
    model.check("cross_attentions", &model.attentions(|layer| trace.cross_weights(layer).unwrap().unwrap(), layers));
}
