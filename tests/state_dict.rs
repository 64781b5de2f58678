//! State dicts: every family of names gives the same module, and a bad entry is named with nothing loaded.

use attnscope::{
    AttnError, ForwardOptions, MultiHeadAttention, MultiHeadAttentionOptions, Tensor, Transformer, TransformerOptions,
    torch::Generator,
};

type StateDict = Vec<(String, Tensor)>;

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

fn bad_entry(result: Result<(), AttnError>) -> String {
    match result.unwrap_err() {
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
