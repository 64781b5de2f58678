//! State dicts of other families: their names and layouts become ours.
//!
//! An entry's name is read from the left: wrappers are dropped, a numbered container gives the layer, and what is left is a
//! path inside the block, looked up in the tables below.

use crate::error::{AttnError, Result};
use crate::state_dict::{StateDict, bad, shape};
use crate::tensor::Tensor;
use crate::text::Listed;

/// What stands in front of a model's own names.
const WRAPPERS: [&str; 19] = [
    "module",
    "_orig_mod",
    "state_dict",
    "model_state_dict",
    "base_model",
    "model",
    "language_model",
    "text_model",
    "vision_model",
    "bert",
    "roberta",
    "distilbert",
    "transformer",
    "gpt_neox",
    "vit",
    "encoder",
    "decoder",
    "transformer_encoder",
    "transformer_decoder",
];

/// What counts the layers: a number follows.
const CONTAINERS: [&str; 6] = ["layers", "layer", "h", "block", "blocks", "blk"];

/// The parts of T5's blocks, which are numbered behind `layer` too.
const T5_PARTS: [&str; 4] = ["SelfAttention", "EncDecAttention", "DenseReluDense", "layer_norm"];

/// Parts of whole models that no module here has: embeddings and their norms, heads, an optimizer's numbers.
const OUTSIDE: [&str; 32] = [
    "embeddings",
    "embed_tokens",
    "embed_positions",
    "embed_in",
    "embed_out",
    "layernorm_embedding",
    "pre_layrnorm",
    "wte",
    "wpe",
    "shared",
    "rotary_emb",
    "token_embd",
    "token_embd_norm",
    "token_types",
    "position_embd",
    "rope_freqs",
    "pooler",
    "lm_head",
    "cls",
    "classifier",
    "pre_classifier",
    "qa_outputs",
    "score",
    "vocab_transform",
    "vocab_layer_norm",
    "vocab_projector",
    "final_logits_bias",
    "logit_scale",
    "text_projection",
    "visual_projection",
    "optimizer",
    "optimizer_state_dict",
];

/// Entries that are no parameters: the head of llama.cpp's models, causal masks and frequencies, which are computed here, and the distances' bias
/// of T5, which is a mask here (`Mask::Relative`).
const NO_PARAMETERS: [&str; 8] = [
    "output.weight",
    "attn.bias",
    "attn.masked_bias",
    "attention.bias",
    "attention.masked_bias",
    "attention.rotary_emb.inv_freq",
    "self_attn.rotary_emb.inv_freq",
    "layer.0.SelfAttention.relative_attention_bias.weight",
];

/// What the norm behind a stack is called.
const FINAL_NORMS: [&str; 8] =
    ["norm", "ln_f", "final_layer_norm", "final_layernorm", "post_layernorm", "layernorm", "layer_norm", "output_norm"];

/// The attention inside a block, longer names first, and ours.
const ATTENTIONS: [(&str, &str); 11] = [
    ("attention.self", "attention."),
    ("attention.attention", "attention."),
    ("layer.0.SelfAttention", "attention."),
    ("layer.1.EncDecAttention", "cross_attention."),
    ("cross_attention", "cross_attention."),
    ("multihead_attn", "cross_attention."),
    ("encoder_attn", "cross_attention."),
    ("attention", "attention."),
    ("self_attn", "attention."),
    ("self_attention", "attention."),
    ("attn", "attention."),
];

/// How a tensor of theirs becomes ours.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Layout {
    /// As it is.
    Same,
    /// `[in, out]`, as GPT-2's Conv1D keeps it.
    Transposed,
    /// The rows of several of ours below each other.
    Fused,
    /// `Fused`, and `Transposed`.
    FusedTransposed,
    /// The rows of query, key and value by turns, head by head, as in GPT-NeoX.
    FusedByHead,
}

/// Their path, ours, and the layout.
type Entry = (&'static str, &'static [&'static str], Layout);

/// Inside an attention.
const MEMBERS: [Entry; 45] = {
    use Layout::*;
    [
        ("query", &["query"], Same),
        ("query_linear", &["query"], Same),
        ("W_Q", &["query"], Same),
        ("q_proj", &["query"], Same),
        ("q_lin", &["query"], Same),
        ("q", &["query"], Same),
        ("key", &["key"], Same),
        ("key_linear", &["key"], Same),
        ("W_K", &["key"], Same),
        ("k_proj", &["key"], Same),
        ("k_lin", &["key"], Same),
        ("k", &["key"], Same),
        ("value", &["value"], Same),
        ("value_linear", &["value"], Same),
        ("W_V", &["value"], Same),
        ("v_proj", &["value"], Same),
        ("v_lin", &["value"], Same),
        ("v", &["value"], Same),
        ("out", &["out"], Same),
        ("out_linear", &["out"], Same),
        ("linear", &["out"], Same),
        ("fc", &["out"], Same),
        ("out_proj", &["out"], Same),
        ("o_proj", &["out"], Same),
        ("out_lin", &["out"], Same),
        ("o", &["out"], Same),
        ("dense", &["out"], Same),
        ("output.dense", &["out"], Same),
        ("output", &["out"], Same),
        ("proj", &["out"], Same),
        ("c_proj", &["out"], Transposed),
        ("q_norm", &["query_norm"], Same),
        ("query_norm", &["query_norm"], Same),
        ("k_norm", &["key_norm"], Same),
        ("key_norm", &["key_norm"], Same),
        ("bias_k", &["bias_k"], Same),
        ("bias_v", &["bias_v"], Same),
        ("norm", &["norm"], Same),
        ("layer_norm", &["norm"], Same),
        ("output.LayerNorm", &["norm"], Same),
        ("in_proj", &["query", "key", "value"], Fused),
        ("qkv_proj", &["query", "key", "value"], Fused),
        ("qkv", &["query", "key", "value"], Fused),
        ("c_attn", &["query", "key", "value"], FusedTransposed),
        ("query_key_value", &["query", "key", "value"], FusedByHead),
    ]
};

/// Inside a block, beside its attentions. The last norm is the feed-forward network's: `norm2`, in a decoder `norm3`.
const BLOCK: [Entry; 51] = {
    use Layout::*;
    const NORM1: &[&str] = &["norm1"];
    const NORM2: &[&str] = &["norm2"];
    const LAST_NORM: &[&str] = &["last_norm"];
    const LINEAR1: &[&str] = &["linear1"];
    const LINEAR2: &[&str] = &["linear2"];
    const GATE: &[&str] = &["gate"];
    [
        ("norm1", NORM1, Same),
        ("ln_1", NORM1, Same),
        ("sa_layer_norm", NORM1, Same),
        ("attention.output.LayerNorm", NORM1, Same),
        ("input_layernorm", NORM1, Same),
        ("layernorm_before", NORM1, Same),
        ("layer_norm1", NORM1, Same),
        ("self_attn_layer_norm", NORM1, Same),
        ("attn_norm", NORM1, Same),
        ("attn_output_norm", NORM1, Same),
        ("layer.0.layer_norm", NORM1, Same),
        ("norm2", NORM2, Same),
        ("encoder_attn_layer_norm", NORM2, Same),
        ("layer.1.layer_norm", NORM2, Same),
        ("norm3", &["norm3"], Same),
        ("layer.2.layer_norm", &["norm3"], Same),
        ("ln_2", LAST_NORM, Same),
        ("output_layer_norm", LAST_NORM, Same),
        ("layer_output_norm", LAST_NORM, Same),
        ("output.LayerNorm", LAST_NORM, Same),
        ("post_attention_layernorm", LAST_NORM, Same),
        ("layernorm_after", LAST_NORM, Same),
        ("layer_norm2", LAST_NORM, Same),
        ("final_layer_norm", LAST_NORM, Same),
        ("ffn_norm", LAST_NORM, Same),
        ("linear1", LINEAR1, Same),
        ("intermediate.dense", LINEAR1, Same),
        ("ffn.lin1", LINEAR1, Same),
        ("fc1", LINEAR1, Same),
        ("mlp.fc1", LINEAR1, Same),
        ("mlp.c_fc", LINEAR1, Transposed),
        ("mlp.dense_h_to_4h", LINEAR1, Same),
        ("mlp.up_proj", LINEAR1, Same),
        ("ffn_up", LINEAR1, Same),
        ("wi", LINEAR1, Same),
        ("wi_1", LINEAR1, Same),
        ("gate", GATE, Same),
        ("mlp.gate_proj", GATE, Same),
        ("ffn_gate", GATE, Same),
        ("wi_0", GATE, Same),
        ("mlp.gate_up_proj", &["gate", "linear1"], Fused),
        ("linear2", LINEAR2, Same),
        ("output.dense", LINEAR2, Same),
        ("ffn.lin2", LINEAR2, Same),
        ("fc2", LINEAR2, Same),
        ("mlp.fc2", LINEAR2, Same),
        ("mlp.c_proj", LINEAR2, Transposed),
        ("mlp.dense_4h_to_h", LINEAR2, Same),
        ("mlp.down_proj", LINEAR2, Same),
        ("ffn_down", LINEAR2, Same),
        ("wo", LINEAR2, Same),
    ]
};

/// What llama.cpp puts in front of an attention's members, and what is none of them.
const GGUF: (&str, [&str; 2]) = ("attn_", ["norm", "output_norm"]);

/// The module that a dict is loaded into.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// What it is.
    pub kind: Kind,
    /// Whether its blocks look at a memory.
    pub is_decoder: bool,
    /// The number of heads.
    pub n_heads: usize,
    /// Whether its rotary positions turn neighbours, and not the halves of a head's width.
    pub turns_neighbours: bool,
    /// The names and shapes of its parameters, in its order.
    pub shapes: Vec<(String, Vec<usize>)>,
}

/// What holds the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Multi-head attention.
    Attention,
    /// A block.
    Block,
    /// Several blocks.
    Stack,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Attention, Self::Block, Self::Stack];
}

/// An entry's name, read.
struct Name<'a> {
    is_decoders: Option<bool>,
    layer: Option<usize>,
    path: &'a str,
}

impl<'a> Name<'a> {
    fn read(name: &'a str) -> Self {
        let mut read = Self { is_decoders: None, layer: None, path: name };
        while let Some((first, rest)) = read.path.split_once('.')
            && WRAPPERS.contains(&first)
        {
            match first {
                "encoder" | "transformer_encoder" => read.is_decoders = Some(false),
                "decoder" | "transformer_decoder" => read.is_decoders = Some(true),
                _ => {}
            }
            read.path = rest;
        }
        let (container, inside) = read.path.split_once('.').unwrap_or_default();
        let inside = CONTAINERS.contains(&container).then_some(inside);
        for path in [Some(read.path), inside].into_iter().flatten() {
            if let Some((number, rest)) = path.split_once('.')
                && let Ok(layer) = number.parse()
                && !(container == "layer" && T5_PARTS.contains(&rest.split('.').next().unwrap_or_default()))
            {
                (read.layer, read.path) = (Some(layer), rest);
                break;
            }
        }
        read
    }

    /// The path, and `weight`, `bias` or nothing, as the entry is called here.
    fn leaf(&self) -> (&'a str, &'static str) {
        let (before, last) = self.path.rsplit_once('.').unwrap_or(("", self.path));
        // torch.nn.MultiheadAttention says some of these in one word.
        let without = |leaf| self.path.strip_suffix(leaf).unwrap_or_default();
        match last {
            "weight" | "gamma" => (before, "weight"),
            "bias" | "beta" => (before, "bias"),
            "in_proj_weight" | "q_proj_weight" | "k_proj_weight" | "v_proj_weight" => (without("_weight"), "weight"),
            "in_proj_bias" => (without("_bias"), "bias"),
            _ => (self.path, ""),
        }
    }
}

impl Target {
    /// The module's own names and layouts for those of a dict, with all its parameters and nothing else; of a dict with several layers those
    /// of `layer`, where the module is no stack.
    ///
    /// # Errors
    /// `bad_state_dict` naming the first entry that is missing, extra or of the wrong shape; `invalid_option` for a layer of a stack.
    pub fn translate(&self, dict: StateDict, layer: Option<usize>) -> Result<StateDict> {
        if let (Kind::Stack, Some(layer)) = (self.kind, layer) {
            return Err(AttnError::option("layer", layer, "no layer: a stack loads all of them"));
        }
        let mut places: Vec<usize> = (0..self.shapes.len()).collect();
        places.sort_unstable_by_key(|&at| &self.shapes[at].0);
        let names: Vec<Name> = dict.iter().map(|(name, _)| Name::read(name)).collect();
        let is_query = |path| MEMBERS.iter().any(|(theirs, ours, _)| *theirs == path && ours[0] == "query");
        let has_inside = names.iter().any(|name| in_attention(name.leaf().0).is_some())
            && !names.iter().any(|name| is_query(name.leaf().0));
        let halves_by_turns = !self.turns_neighbours && has_halves_by_turns(&dict);
        let reader = Reader { target: self, layer, places: &places, has_inside, halves_by_turns };
        reader.check_layers(&names)?;
        let has_own_side = names.iter().any(|name| name.is_decoders == Some(self.is_decoder));
        // Beside each of the shapes: (the name it came under, the tensor)
        let mut entries: Vec<Option<(String, Tensor)>> = self.shapes.iter().map(|_| None).collect();
        for (name, tensor) in dict {
            let read = Name::read(&name);
            let is_other_side = read.is_decoders == Some(!self.is_decoder) && has_own_side;
            let is_other_layer = layer.is_some() && read.layer != layer;
            if is_other_side || is_other_layer {
                continue;
            }
            for (ours, tensor) in reader.translate(&name, read, tensor)? {
                let Some(at) = reader.place(&ours) else { return Err(reader.unknown(&name)) };
                if let Some((earlier, _)) = &entries[at] {
                    return Err(bad(
                        &name,
                        format!("a second value for {ours}, after {earlier}"),
                        "each entry once; the option prefix takes one part of a dict",
                    ));
                }
                entries[at] = Some((name.clone(), tensor));
            }
        }
        let ours = self.shapes.iter().zip(entries).map(|((ours, expected), entry)| match entry {
            None => Err(bad(ours, "nothing".into(), &shape(expected))),
            Some((theirs, tensor)) if tensor.shape != *expected => {
                Err(bad(&theirs, shape(&tensor.shape), &shape(expected)))
            }
            Some((_, tensor)) => Ok((ours.clone(), tensor)),
        });
        ours.collect()
    }
}

/// What a path names inside an attention, and which attention that is.
fn in_attention(path: &str) -> Option<(&str, &'static str)> {
    let member = |(theirs, ours): &(&str, &'static str)| Some((path.strip_prefix(theirs)?.strip_prefix('.')?, *ours));
    ATTENTIONS.iter().find_map(member).or_else(|| {
        let (before, others) = GGUF;
        path.strip_prefix(before).filter(|path| !others.contains(path)).map(|path| (path, "attention."))
    })
}

/// Whether the halves of each head's query and key rows come by turns, as llama.cpp orders LLaMA's for RoPE of neighbours. It leaves
/// Qwen's as they are, which have biases there but none for the output, or norms, and BERT's, which have another norm.
fn has_halves_by_turns(dict: &StateDict) -> bool {
    let has = |end: &str| dict.iter().any(|(name, _)| name.ends_with(end));
    let is_another = has("attn_q_norm.weight") || has("attn_output_norm.weight");
    has("attn_q.weight") && !is_another && (!has("attn_q.bias") || has("attn_output.bias"))
}

struct Reader<'a> {
    target: &'a Target,
    /// The one layer to take.
    layer: Option<usize>,
    /// Where the target's shapes stand, in the order of their names.
    places: &'a [usize],
    /// Whether an attention's members stand behind its name, so that others are not its.
    has_inside: bool,
    /// Whether llama.cpp's queries and keys are to be put in order.
    halves_by_turns: bool,
}

impl Reader<'_> {
    fn place(&self, name: &str) -> Option<usize> {
        let shapes = &self.target.shapes;
        self.places.binary_search_by(|&at| shapes[at].0[..].cmp(name)).ok().map(|found| self.places[found])
    }

    /// A module that is no stack takes one layer.
    fn check_layers(&self, names: &[Name]) -> Result<()> {
        if self.target.kind == Kind::Stack {
            return Ok(());
        }
        let mut layers: Vec<usize> = Vec::new();
        for layer in names.iter().filter_map(|name| name.layer) {
            let at = layers.partition_point(|&before| before < layer);
            if layers.get(at) != Some(&layer) {
                layers.insert(at, layer);
            }
        }
        let found = || match &layers[..] {
            [] => "no numbered layers".into(),
            layers => format!("layers {}", Listed(layers)),
        };
        match self.layer {
            Some(layer) if !layers.contains(&layer) => {
                Err(bad(&format!("layer {layer}"), found(), "a layer that is there"))
            }
            None if layers.len() > 1 => Err(bad("layers", found(), "one, or the option layer")),
            _ => Ok(()),
        }
    }

    /// One of their entries as one or several of ours; none where it is known to be no parameter of a module here.
    fn translate(&self, name: &str, read: Name, tensor: Tensor) -> Result<StateDict> {
        let outermost = read.path.split('.').next().unwrap_or_default();
        let is_outside = read.layer.is_none() && OUTSIDE.contains(&outermost) && self.target.kind != Kind::Attention;
        if is_outside || NO_PARAMETERS.contains(&read.path) {
            return Ok(vec![]);
        }
        let (path, leaf) = read.leaf();
        // What else a block has, where an attention is taken out of it.
        let is_of_block = self.target.kind == Kind::Attention && self.layer.is_some();
        let Some((attention, ours, layout)) = self.find(path, read.layer) else {
            return if is_of_block { Ok(vec![]) } else { Err(self.unknown(name)) };
        };
        let prefix = match (self.target.kind, read.layer) {
            (Kind::Stack, Some(layer)) => format!("layers.{layer}."),
            _ => String::new(),
        };
        let dot = if leaf.is_empty() { "" } else { "." };
        let ours: Vec<String> = ours.iter().map(|ours| format!("{prefix}{attention}{ours}{dot}{leaf}")).collect();
        if ours.iter().any(|ours| self.place(ours).is_none()) {
            return if is_of_block && ours[0].starts_with("norm.") { Ok(vec![]) } else { Err(self.unknown(name)) };
        }
        if self.halves_by_turns && ["attn_q", "attn_k"].contains(&path) {
            return self.halves_in_order(name, ours, tensor);
        }
        self.rearrange(name, ours, layout, tensor)
    }

    fn unknown(&self, name: &str) -> Box<AttnError> {
        let known: Vec<&str> = self.places.iter().map(|&at| &self.target.shapes[at].0[..]).collect();
        bad(name, "an entry that the module does not have".into(), &format!("one of {}", known.join(", ")))
    }

    /// The attention that ours lie in, with its dot, our paths for theirs, and the layout.
    fn find(&self, path: &str, layer: Option<usize>) -> Option<(&'static str, &'static [&'static str], Layout)> {
        let member = |path: &str| MEMBERS.iter().find(|(theirs, ..)| *theirs == path);
        let kind = self.target.kind;
        if kind == Kind::Attention {
            let path = if self.has_inside { in_attention(path)?.0 } else { path };
            return member(path).map(|(_, ours, layout)| ("", *ours, *layout));
        }
        if path == "positions" && layer.is_none() {
            return Some(("", &["positions"], Layout::Same));
        }
        if kind == Kind::Stack && layer.is_none() {
            return FINAL_NORMS.contains(&path).then_some(("", &["norm"], Layout::Same));
        }
        // T5 numbers the parts of a block; the last is the feed-forward network.
        let short = match path.rsplit_once('.') {
            Some((before, last)) if before.ends_with("DenseReluDense") => last,
            _ => path,
        };
        if let Some((_, ours, layout)) = BLOCK.iter().find(|(theirs, ..)| *theirs == short) {
            let ours: &[&str] = match *ours {
                ["last_norm"] if self.target.is_decoder => &["norm3"],
                ["last_norm"] => &["norm2"],
                ours => ours,
            };
            return Some(("", ours, *layout));
        }
        let (path, attention) = in_attention(path)?;
        member(path).map(|(_, ours, layout)| (attention, *ours, *layout))
    }

    /// Query or key of llama.cpp.
    fn halves_in_order(&self, name: &str, ours: Vec<String>, tensor: Tensor) -> Result<StateDict> {
        // A key may have fewer heads than the query, of the same width.
        let width = self.rows(&ours[0].replace("key.", "query.")) / self.target.n_heads;
        if !tensor.shape[0].is_multiple_of(width) || width < 2 {
            return Err(bad(name, shape(&tensor.shape), &format!("whole heads of {width} rows")));
        }
        let half = width / 2;
        let order = (0..tensor.shape[0]).map(|row| {
            let (head, at) = (row / width, row % width);
            head * width + 2 * (at % half) + at / half
        });
        let tensor = picked(&tensor, &order.collect::<Vec<_>>());
        Ok(all_of(ours, tensor))
    }

    /// How many rows a parameter has.
    fn rows(&self, ours: &str) -> usize {
        self.place(ours).map_or(0, |at| self.target.shapes[at].1[0])
    }

    fn rearrange(&self, name: &str, ours: Vec<String>, layout: Layout, tensor: Tensor) -> Result<StateDict> {
        let tensor = match layout {
            Layout::Transposed | Layout::FusedTransposed => transposed(tensor),
            _ => tensor,
        };
        match layout {
            Layout::Same | Layout::Transposed => Ok(all_of(ours, tensor)),
            Layout::Fused | Layout::FusedTransposed | Layout::FusedByHead => {
                let parts: Vec<usize> = ours.iter().map(|ours| self.rows(ours)).collect();
                if parts.iter().sum::<usize>() != tensor.shape[0] {
                    let expected = format!("{} rows below each other for {}", Listed(&parts), ours.join(", "));
                    return Err(bad(name, shape(&tensor.shape), &expected));
                }
                let total = tensor.shape[0];
                let mut start = 0;
                let split = ours.into_iter().zip(parts).map(|(ours, rows)| {
                    let order: Vec<usize> = if layout == Layout::FusedByHead {
                        let (width, part) = (rows / self.target.n_heads, start / rows);
                        (0..rows).map(|row| (3 * (row / width) + part) * width + row % width).collect()
                    } else {
                        (start..start + rows).collect()
                    };
                    start += rows;
                    (ours, order)
                });
                let split: Vec<_> = split.collect();
                if split.iter().flat_map(|(_, order)| order).any(|&row| row >= total) {
                    return Err(bad(name, shape(&tensor.shape), "query, key and value of one size"));
                }
                Ok(split.into_iter().map(|(ours, order)| (ours, picked(&tensor, &order))).collect())
            }
        }
    }
}

/// One tensor under each of the names; copied only where there are several.
fn all_of(names: Vec<String>, tensor: Tensor) -> StateDict {
    let copies = std::iter::repeat_n(tensor, names.len());
    names.into_iter().zip(copies).collect()
}

fn transposed(tensor: Tensor) -> Tensor {
    let [rows, columns] = tensor.shape[..] else { return tensor };
    let data = (0..rows * columns).map(|at| tensor.data[at % rows * columns + at / rows]).collect();
    Tensor { shape: vec![columns, rows], data }
}

/// Some of a tensor's rows, in this order.
fn picked(tensor: &Tensor, rows: &[usize]) -> Tensor {
    let width = tensor.data.len() / tensor.shape[0];
    let mut data = Vec::with_capacity(rows.len() * width);
    rows.iter().for_each(|row| data.extend_from_slice(&tensor.data[row * width..][..width]));
    let mut shape = tensor.shape.clone();
    shape[0] = rows.len();
    Tensor { shape, data }
}
