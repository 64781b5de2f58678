//! Numbers at the edge: huge, tiny, equal, NaN, infinite, none allowed; and the operations by themselves.

use attnscope::{Activation, EmptyRow, QueryKeyValue, ScaledDotProductOptions, ops, scaled_dot_product_attention};

use crate::MAX_BYTES;
use crate::golden::{Golden, compare, masked, numbers, tensor};

#[test]
fn scores_at_the_edge() {
    let checked = Golden::read("golden").run("edge_sdpa", |case| {
        let mask = case.mask("attn_mask", None, masked);
        let [query, key, value] = &["Q", "K", "V"].map(|name| case.needed(name));
        let inputs = QueryKeyValue { query, key, value, past: None };
        let pass = |options| scaled_dot_product_attention(inputs, mask.as_ref(), &options, MAX_BYTES);
        let trace = pass(ScaledDotProductOptions::default())?;

        // PyTorch's fused attention, to float32's bound. It adds -infinity where we fill, so a hidden NaN reaches its weights.
        if case.id() != "E/nan_key_masked" {
            let fused = pass(ScaledDotProductOptions {
                mask_fill: f32::NEG_INFINITY,
                empty_row: EmptyRow::Zero,
                ..ScaledDotProductOptions::default()
            })?;
            let expected = numbers(&case.tensors, case.json["expected"]["torch_sdpa"].as_str().unwrap());
            compare(&format!("{} fused", case.id()), &fused.output(), &expected, &expected.1, 4e-6);
        }
        Ok(vec![("context".into(), trace.output()), ("attn".into(), trace.weights(0)?.expect("weights"))])
    });
    assert!(checked >= 18);
}

#[test]
fn operations() {
    let checked = Golden::read("golden").run("edge_op", |case| {
        let x = case.needed("x");
        let parameter = |name: &str| Some(tensor(&case.tensors, case.json["params"][name].as_str()?));
        let (weight, bias) = (parameter("weight"), parameter("bias"));
        let eps = case.config("eps").as_f64().unwrap_or(0.0) as f32;
        let y = match case.id().trim_start_matches("E/op/") {
            name if name.starts_with("layernorm") => ops::layer_norm(&x, weight.as_ref(), bias.as_ref(), eps, -1)?,
            name if name.starts_with("rmsnorm") => ops::rms_norm(&x, weight.as_ref(), eps, -1)?,
            "gelu_erf" => ops::activation(&x, Activation::Gelu),
            "gelu_tanh" => ops::activation(&x, Activation::GeluTanh),
            "silu" => ops::activation(&x, Activation::Silu),
            "log_softmax" => ops::log_softmax(&x, -1)?,
            name if name.starts_with("softmax") => ops::softmax(&x, -1)?,
            other => panic!("unknown operation {other}"),
        };
        Ok(vec![("y".into(), y)])
    });
    assert!(checked >= 7);
}
