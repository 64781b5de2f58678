//! State dicts: every family of names gives the same module, and a bad entry is named with nothing loaded.

use attnscope::{
    AttnError, ForwardOptions, MultiHeadAttention, MultiHeadAttentionOptions, NormKind, Positions, Tensor, Transformer,
    TransformerOptions, torch::Generator,
};

type StateDict = Vec<(String, Tensor)>;

const MAX_BYTES: usize = 1 << 20;

fn module(seed: i64) -> MultiHeadAttention {
    let options = MultiHeadAttentionOptions { residual_norm: true, ..MultiHeadAttentionOptions::new(6, 2) };
    MultiHeadAttention::new(&options, &mut Generator::new(seed), 1 << 20).unwrap()
}

fn renamed(dict: &StateDict, names: &[(&str, &str)]) -> StateDict {
    let rename = |name: &str| {
        let (part, rest) = name.split_once('.').unwrap();
        let part = names.iter().find(|(ours, _)| *ours == part).map_or(part, |(_, theirs)| *theirs);
        format!("{part}.{rest}")
    };
    dict.iter().map(|(name, tensor)| (rename(name), tensor.clone())).collect()
}

fn bad_entry(result: attnscope::Result<()>) -> String {
    match *result.unwrap_err() {
        AttnError::BadStateDict { entry, .. } => entry,
        other => panic!("{other}"),
    }
}

#[test]
fn the_names_are_the_modules() {
    let names: Vec<String> = module(0).state_dict().into_iter().map(|(name, _)| name).collect();
    let expected =
        ["query", "key", "value", "out", "norm"].map(|part| [format!("{part}.weight"), format!("{part}.bias")]);
    assert_eq!(names, expected.concat());
    let options = TransformerOptions { n_layers: Some(2), ..TransformerOptions::new(6, 2) };
    let stack = Transformer::encoder(options, &mut Generator::new(0), 1 << 20).unwrap().state_dict();
    assert_eq!(stack.len(), 32);
    assert_eq!(stack[0].0, "layers.0.attention.query.weight");
    let block =
        Transformer::encoder(TransformerOptions::new(6, 2), &mut Generator::new(0), 1 << 20).unwrap().state_dict();
    assert!(block.iter().any(|(name, _)| name == "linear2.bias"));
}

#[test]
fn every_family_of_names_loads() {
    let dict = module(1).state_dict();
    let first_post =
        [("query", "query_linear"), ("key", "key_linear"), ("value", "value_linear"), ("out", "out_linear")];
    let second_post = [("query", "W_Q"), ("key", "W_K"), ("value", "W_V"), ("out", "linear"), ("norm", "layer_norm")];
    let second_post_fc = [("query", "W_Q"), ("key", "W_K"), ("value", "W_V"), ("out", "fc"), ("norm", "layer_norm")];
    for names in [&first_post[..], &second_post, &second_post_fc] {
        let mut loaded = module(2);
        loaded.load_state_dict(renamed(&dict, names), None).unwrap();
        assert_eq!(loaded.state_dict(), dict);
    }
}

#[test]
fn the_fused_projection_of_torch_is_split() {
    let dict = module(1).state_dict();
    let stacked = |kind: &str| {
        let parts: Vec<&Tensor> = ["query", "key", "value"]
            .iter()
            .map(|part| &dict.iter().find(|(name, _)| *name == format!("{part}.{kind}")).unwrap().1)
            .collect();
        let mut shape = parts[0].shape.clone();
        shape[0] *= 3;
        Tensor::new(parts.iter().flat_map(|part| part.data.clone()).collect(), shape).unwrap()
    };
    let mut fused = renamed(&dict, &[("out", "out_proj")]);
    fused.retain(|(name, _)| name.starts_with("out_proj") || name.starts_with("norm"));
    fused.push(("in_proj_weight".into(), stacked("weight")));
    fused.push(("in_proj_bias".into(), stacked("bias")));
    let mut loaded = module(2);
    loaded.load_state_dict(fused, None).unwrap();
    assert_eq!(loaded.state_dict(), dict);
}

#[test]
fn a_bad_entry_is_named_and_nothing_is_loaded() {
    let good = module(1).state_dict();
    let mut mha = module(2);
    let before = mha.state_dict();

    let mut missing = good.clone();
    missing.retain(|(name, _)| name != "out.bias");
    assert_eq!(bad_entry(mha.load_state_dict(missing, None)), "out.bias");

    let mut extra = good.clone();
    extra.push(("bias_k".into(), good[0].1.clone()));
    assert_eq!(bad_entry(mha.load_state_dict(extra, None)), "bias_k");
    // One that would lie in an attention, were it a block's.
    let mut inside = good.clone();
    inside.push(("attention.norm.weight".into(), good[0].1.clone()));
    assert_eq!(bad_entry(mha.load_state_dict(inside, None)), "attention.norm.weight");

    let mut twice = good.clone();
    twice.push(("W_Q.weight".into(), good[0].1.clone()));
    assert_eq!(bad_entry(mha.load_state_dict(twice, None)), "W_Q.weight");

    let mut wrong = good;
    wrong[8].1 = Tensor::new(vec![0.0; 5], vec![5]).unwrap();
    assert_eq!(bad_entry(mha.load_state_dict(wrong, None)), "norm.weight");

    assert_eq!(mha.state_dict(), before);
}

#[test]
fn a_trace_keeps_the_weights_it_was_made_with() {
    let mut mha = module(1);
    let x = Tensor::new(Generator::new(3).randn(18), vec![3, 6]).unwrap();
    let options = ForwardOptions { trace: true, ..ForwardOptions::default() };
    let trace = mha.forward(&x, None, None, None, &options, 1 << 20).unwrap();
    let explained = trace.explain(attnscope::Stage::Query, 0, &[1, 2, 0]).unwrap();
    mha.load_state_dict(module(2).state_dict(), None).unwrap();
    assert_eq!(trace.explain(attnscope::Stage::Query, 0, &[1, 2, 0]).unwrap(), explained);
}

/// A stack of two small blocks with LLaMA's parts, and its state dict.
fn llama(seed: i64) -> (Transformer, StateDict) {
    let options = TransformerOptions {
        n_layers: Some(2),
        norm: NormKind::Rms,
        gated: true,
        bias: false,
        norm_first: true,
        final_norm: true,
        n_kv_heads: Some(1),
        d_k: Some(4),
        ..TransformerOptions::new(6, 2)
    };
    let stack = Transformer::encoder(options, &mut Generator::new(seed), MAX_BYTES).unwrap();
    let dict = stack.state_dict();
    (stack, dict)
}

/// Each name through a list of replacements.
fn spelled(dict: &StateDict, spelling: &[(&str, &str)], prefix: &str) -> StateDict {
    let rename = |name: &str| spelling.iter().fold(name.to_owned(), |name, (ours, theirs)| name.replace(ours, theirs));
    dict.iter().map(|(name, tensor)| (format!("{prefix}{}", rename(name)), tensor.clone())).collect()
}

const LLAMA: [(&str, &str); 10] = [
    ("attention.query", "self_attn.q_proj"),
    ("attention.key", "self_attn.k_proj"),
    ("attention.value", "self_attn.v_proj"),
    ("attention.out", "self_attn.o_proj"),
    ("norm1", "input_layernorm"),
    ("norm2", "post_attention_layernorm"),
    ("gate", "mlp.gate_proj"),
    ("linear1", "mlp.up_proj"),
    ("linear2", "mlp.down_proj"),
    ("final", "norm"),
];

#[test]
fn wrappers_in_front_are_dropped_and_the_rest_of_a_model_is_passed_over() {
    let (_, dict) = llama(1);
    for prefix in ["", "model.", "module.", "module._orig_mod.model.", "state_dict.model.", "model_state_dict."] {
        let mut theirs = spelled(&dict, &LLAMA, prefix);
        theirs.push((format!("{prefix}embed_tokens.weight"), Tensor::new(vec![0.0; 6], vec![1, 6]).unwrap()));
        theirs.push(("lm_head.weight".into(), Tensor::new(vec![0.0; 6], vec![1, 6]).unwrap()));
        let (mut loaded, _) = llama(2);
        loaded.load_state_dict(theirs, None).unwrap_or_else(|error| panic!("{prefix}: {error}"));
        assert_eq!(loaded.state_dict(), dict);
    }
}

const LLAMA_CPP: [(&str, &str); 12] = [
    ("layers.", "blk."),
    ("attention.query_norm", "attn_q_norm"),
    ("attention.key_norm", "attn_k_norm"),
    ("attention.query", "attn_q"),
    ("attention.key", "attn_k"),
    ("attention.value", "attn_v"),
    ("attention.out", "attn_output"),
    ("norm1", "attn_norm"),
    ("norm2", "ffn_norm"),
    ("gate", "ffn_gate"),
    ("linear1", "ffn_up"),
    ("linear2", "ffn_down"),
];

/// The rows of queries and keys, 4 a head, with their halves by turns.
fn by_turns(dict: &mut StateDict) {
    for (_, tensor) in dict.iter_mut().filter(|(name, _)| name.contains("attn_q.") || name.contains("attn_k.")) {
        let width = tensor.data.len() / tensor.shape[0];
        let rows: Vec<&[f32]> = tensor.data.chunks_exact(width).collect();
        let order = (0..rows.len()).map(|row| row / 4 * 4 + [0, 2, 1, 3][row % 4]);
        tensor.data = order.flat_map(|row| rows[row]).copied().collect();
    }
}

#[test]
fn llama_cpps_heads_are_put_in_order() {
    let (_, dict) = llama(1);
    let mut theirs = spelled(&dict, &LLAMA_CPP, "");
    theirs
        .iter_mut()
        .filter(|(name, _)| name == "norm.weight")
        .for_each(|(name, _)| *name = "output_norm.weight".into());
    by_turns(&mut theirs);
    let (mut loaded, _) = llama(2);
    loaded.load_state_dict(theirs, None).unwrap();
    assert!(loaded.state_dict() == dict);
}

#[test]
fn llama_cpps_heads_stay_where_neighbours_are_turned_or_no_halves_came_by_turns() {
    let llama = TransformerOptions {
        positions: Positions::Rope,
        norm: NormKind::Rms,
        gated: true,
        bias: false,
        ..TransformerOptions::new(8, 2)
    };
    let neighbours = TransformerOptions { rope_interleaved: true, ..llama.clone() };
    let qwen2 = TransformerOptions { qkv_bias: Some(true), ..llama.clone() };
    let qwen3 = TransformerOptions { qk_norm: true, ..llama.clone() };
    let with_biases = TransformerOptions { bias: true, norm: NormKind::Layer, gated: false, ..llama.clone() };
    for (options, come_by_turns) in
        [(llama, true), (neighbours, false), (qwen2, false), (qwen3, false), (with_biases, true)]
    {
        let drawn = |seed| Transformer::encoder(options.clone(), &mut Generator::new(seed), MAX_BYTES).unwrap();
        let dict = drawn(1).state_dict();
        let mut theirs = spelled(&dict, &LLAMA_CPP, "blk.0.");
        if come_by_turns {
            by_turns(&mut theirs);
        }
        let mut loaded = drawn(2);
        loaded.load_state_dict(theirs.clone(), None).unwrap();
        assert!(loaded.state_dict() == dict, "{options:?}");
        // An attention by itself, out of the block.
        let attention = MultiHeadAttentionOptions {
            positions: options.positions,
            rope_interleaved: options.rope_interleaved,
            bias: options.qkv_bias.unwrap_or(options.bias),
            out_bias: Some(options.bias),
            qk_norm: options.qk_norm,
            ..MultiHeadAttentionOptions::new(8, 2)
        };
        let mut loaded = MultiHeadAttention::new(&attention, &mut Generator::new(3), MAX_BYTES).unwrap();
        loaded.load_state_dict(theirs, Some(0)).unwrap();
        let own = dict.iter().filter_map(|(name, tensor)| Some((name.strip_prefix("attention.")?, tensor)));
        assert!(loaded.state_dict().iter().map(|(name, tensor)| (&name[..], tensor)).eq(own), "{options:?}");
    }
}

#[test]
fn an_attention_is_taken_out_of_a_block_whose_other_parts_have_names_like_its_own() {
    let options = TransformerOptions { n_layers: Some(2), d_ff: Some(6), ..TransformerOptions::new(6, 2) };
    let dict = Transformer::encoder(options, &mut Generator::new(1), MAX_BYTES).unwrap().state_dict();
    let bert = [
        ("layers.", "bert.encoder.layer."),
        ("attention.out", "attention.output.dense"),
        ("attention.query", "attention.self.query"),
        ("attention.key", "attention.self.key"),
        ("attention.value", "attention.self.value"),
        ("norm1", "attention.output.LayerNorm"),
        ("norm2", "output.LayerNorm"),
        ("linear1", "intermediate.dense"),
        ("linear2", "output.dense"),
    ];
    let vit = [
        ("layers.", "vit.encoder.layer."),
        ("attention.out", "attention.output.dense"),
        ("attention.query", "attention.attention.query"),
        ("attention.key", "attention.attention.key"),
        ("attention.value", "attention.attention.value"),
        ("norm1", "layernorm_before"),
        ("norm2", "layernorm_after"),
        ("linear1", "intermediate.dense"),
        ("linear2", "output.dense"),
    ];
    for (names, residual_norm) in [(bert, false), (bert, true), (vit, false)] {
        let theirs = spelled(&dict, &names, "");
        let options = MultiHeadAttentionOptions { residual_norm, ..MultiHeadAttentionOptions::new(6, 2) };
        let mut mha = MultiHeadAttention::new(&options, &mut Generator::new(2), MAX_BYTES).unwrap();
        mha.load_state_dict(theirs.clone(), Some(1)).unwrap();
        let ours = |name: &str| match name.strip_prefix("norm.") {
            Some(leaf) => format!("layers.1.norm1.{leaf}"),
            None => format!("layers.1.attention.{name}"),
        };
        for (name, tensor) in mha.state_dict() {
            assert!(dict.iter().any(|(theirs, same)| *theirs == ours(&name) && *same == tensor), "{name}");
        }
        // The feed-forward network's output has the shape of the attention's, and is not taken for it.
        let without = theirs.into_iter().filter(|(name, _)| !name.contains("attention.output.dense.weight")).collect();
        assert_eq!(bad_entry(mha.load_state_dict(without, Some(1))), "out.weight");
    }
}

#[test]
fn parts_of_published_models_that_no_module_has_are_passed_over() {
    let options = |final_norm| TransformerOptions { n_layers: Some(1), final_norm, ..TransformerOptions::new(6, 2) };
    let drawn =
        |final_norm, seed| Transformer::encoder(options(final_norm), &mut Generator::new(seed), MAX_BYTES).unwrap();
    let one = || Tensor::new(vec![0.0; 6], vec![1, 6]).unwrap();
    for beside in [
        "logit_scale",
        "text_projection.weight",
        "visual_projection.weight",
        "vision_model.pre_layrnorm.weight",
        "vocab_transform.weight",
        "vocab_layer_norm.bias",
        "vocab_projector.weight",
        "pre_classifier.weight",
        "qa_outputs.weight",
        "model.encoder.layernorm_embedding.weight",
        "final_logits_bias",
        "score.weight",
        "model.rotary_emb.inv_freq",
    ] {
        let dict = drawn(false, 1).state_dict();
        let mut theirs = dict.clone();
        theirs.push((beside.into(), one()));
        let mut loaded = drawn(false, 2);
        loaded.load_state_dict(theirs, None).unwrap_or_else(|error| panic!("{beside}: {error}"));
        assert!(loaded.state_dict() == dict);
    }
    for (norm, prefix) in [("post_layernorm", "vision_model."), ("norm", "transformer_encoder.")] {
        let dict = drawn(true, 1).state_dict();
        let theirs = spelled(&dict, &[], prefix);
        let theirs = theirs.into_iter().map(|(name, tensor)| match name.strip_prefix(&format!("{prefix}norm.")) {
            Some(leaf) => (format!("{prefix}{norm}.{leaf}"), tensor),
            None => (name, tensor),
        });
        let mut loaded = drawn(true, 2);
        loaded.load_state_dict(theirs.collect(), None).unwrap();
        assert!(loaded.state_dict() == dict);
    }
}

#[test]
fn a_block_of_t5_alone_numbers_its_parts_and_no_layers() {
    let options = TransformerOptions { norm: NormKind::Rms, bias: false, ..TransformerOptions::new(6, 2) };
    let drawn = |seed| Transformer::encoder(options.clone(), &mut Generator::new(seed), MAX_BYTES).unwrap();
    let dict = drawn(1).state_dict();
    let names = [
        ("attention.query", "layer.0.SelfAttention.q"),
        ("attention.key", "layer.0.SelfAttention.k"),
        ("attention.value", "layer.0.SelfAttention.v"),
        ("attention.out", "layer.0.SelfAttention.o"),
        ("norm1", "layer.0.layer_norm"),
        ("linear1", "layer.1.DenseReluDense.wi"),
        ("linear2", "layer.1.DenseReluDense.wo"),
        ("norm2", "layer.1.layer_norm"),
    ];
    let mut loaded = drawn(2);
    loaded.load_state_dict(spelled(&dict, &names, ""), None).unwrap();
    assert!(loaded.state_dict() == dict);
}

#[test]
fn one_layer_of_a_model_is_taken_when_it_is_named() {
    let (_, dict) = llama(1);
    let theirs = spelled(&dict, &LLAMA, "model.");
    let options = MultiHeadAttentionOptions {
        d_k: Some(4),
        d_v: Some(4),
        n_kv_heads: Some(1),
        bias: false,
        ..MultiHeadAttentionOptions::new(6, 2)
    };
    let mut mha = MultiHeadAttention::new(&options, &mut Generator::new(0), MAX_BYTES).unwrap();
    assert_eq!(bad_entry(mha.load_state_dict(theirs.clone(), None)), "layers");
    assert_eq!(bad_entry(mha.load_state_dict(theirs.clone(), Some(2))), "layer 2");
    mha.load_state_dict(theirs, Some(1)).unwrap();
    let second = dict
        .iter()
        .filter_map(|(name, tensor)| Some((name.strip_prefix("layers.1.attention.")?.to_owned(), tensor.clone())));
    assert_eq!(mha.state_dict(), second.collect::<StateDict>());
    let (mut stack, _) = llama(2);
    let error = stack.load_state_dict(dict, Some(0)).unwrap_err();
    assert_eq!(error.code().as_str(), "invalid_option");
}

#[test]
fn encoder_and_decoder_each_take_their_side() {
    let options = |n_layers| TransformerOptions { n_layers: Some(n_layers), ..TransformerOptions::new(4, 2) };
    let encoder = Transformer::encoder(options(1), &mut Generator::new(1), MAX_BYTES).unwrap().state_dict();
    let decoder = Transformer::decoder(options(2), &mut Generator::new(2), MAX_BYTES).unwrap().state_dict();
    let bart = [
        ("cross_attention.", "encoder_attn."),
        ("attention.", "self_attn."),
        (".query.", ".q_proj."),
        (".key.", ".k_proj."),
        (".value.", ".v_proj."),
        (".out.", ".out_proj."),
        ("norm1", "self_attn_layer_norm"),
        ("linear1", "fc1"),
        ("linear2", "fc2"),
    ];
    let both = |norms: &[(&str, &str)], side: &str, dict: &StateDict| {
        spelled(&spelled(dict, &bart, &format!("model.{side}.")), norms, "")
    };
    let mut theirs = both(&[("norm2", "final_layer_norm")], "encoder", &encoder);
    theirs.extend(both(&[("norm2", "encoder_attn_layer_norm"), ("norm3", "final_layer_norm")], "decoder", &decoder));
    let mut loaded = Transformer::encoder(options(1), &mut Generator::new(3), MAX_BYTES).unwrap();
    loaded.load_state_dict(theirs.clone(), None).unwrap();
    assert_eq!(loaded.state_dict(), encoder);
    let mut loaded = Transformer::decoder(options(2), &mut Generator::new(3), MAX_BYTES).unwrap();
    loaded.load_state_dict(theirs, None).unwrap();
    assert_eq!(loaded.state_dict(), decoder);
}

#[test]
fn fused_rows_that_do_not_add_up_are_named() {
    let mut mha =
        MultiHeadAttention::new(&MultiHeadAttentionOptions::new(6, 2), &mut Generator::new(0), MAX_BYTES).unwrap();
    let fused =
        |name: &str, rows: usize| vec![(name.to_owned(), Tensor::new(vec![0.0; rows * 6], vec![rows, 6]).unwrap())];
    assert_eq!(bad_entry(mha.load_state_dict(fused("in_proj_weight", 17), None)), "in_proj_weight");
    assert_eq!(bad_entry(mha.load_state_dict(fused("c_attn.weight", 7), None)), "c_attn.weight");
    assert_eq!(bad_entry(mha.load_state_dict(fused("query_key_value.weight", 19), None)), "query_key_value.weight");
}

#[test]
fn odd_names_are_refused_by_name() {
    for name in [
        "",
        ".",
        "0",
        "layers",
        "layers.0",
        "layers.0.",
        "layers.x.attention.query.weight",
        "weight",
        "..weight",
        "model",
        "encoder.layers.0",
        "layers.99999999999999999999.norm1.weight",
    ] {
        let (mut stack, dict) = llama(1);
        let mut theirs = dict.clone();
        theirs.push((name.into(), Tensor::new(vec![0.0], vec![1]).unwrap()));
        assert_eq!(bad_entry(stack.load_state_dict(theirs, None)), name);
        assert_eq!(stack.state_dict(), dict);
    }
}

#[test]
fn a_pass_after_loading_uses_what_was_loaded() {
    let x = Tensor::new(Generator::new(3).randn(18), vec![3, 6]).unwrap();
    let output = |mha: &MultiHeadAttention| {
        mha.forward(&x, None, None, None, &ForwardOptions::default(), MAX_BYTES).unwrap().output()
    };
    let (mut mha, other) = (module(1), module(2));
    assert_ne!(output(&mha), output(&other));
    mha.load_state_dict(other.state_dict(), None).unwrap();
    assert_eq!(output(&mha), output(&other));
}
