//! The two posts that this project started from, with their traps.

use attnscope::{
    ForwardOptions, Mask, MaskAxes, MultiHeadAttention, MultiHeadAttentionOptions, QueryKeyValue, Result,
    ScaledDotProductOptions, Stage, Tensor, Trace, Transformer, TransformerOptions, scaled_dot_product_attention,
    torch::Generator,
};

use crate::MAX_BYTES;
use crate::golden::{Computed, Golden, keep, masked, tensor};

fn options() -> ForwardOptions {
    ForwardOptions { trace: true, ..ForwardOptions::default() }
}

fn weights(trace: &Trace, layer: usize) -> Result<Tensor> {
    Ok(trace.weights(layer)?.expect("weights were asked for"))
}

#[test]
fn multi_head_attention_of_the_first() {
    let checked = Golden::read("golden").run("seedA_mha", |case| {
        let sizes = MultiHeadAttentionOptions::new(case.size("d_model"), case.size("n_heads"));
        let mha = MultiHeadAttention::new(&sizes, &mut Generator::new(0), MAX_BYTES);
        if !case.size("d_model").is_multiple_of(case.size("n_heads")) {
            // The post goes on with heads that do not divide, and cuts five rows out of four.
            assert_eq!(mha.unwrap_err().code().as_str(), "not_divisible");
            return Ok(expected(case));
        }
        let mut mha = mha?;
        mha.load_state_dict(case.state_dict(), None)?;
        // The post reads 0 as hidden, whatever the type, and a matrix of two axes as one row a head.
        let mask = case.json["inputs"]["mask"].as_str().map(|key| {
            let Tensor { mut shape, data } = tensor(&case.tensors, key);
            let axes = if shape.len() == 2 { None } else { Some(MaskAxes::Batch) };
            if axes.is_none() {
                shape.insert(1, 1);
            }
            keep(shape, data.iter().map(|&cell| u8::from(cell != 0.0)).collect(), axes)
        });
        let trace = mha.forward(&case.needed("x"), None, None, mask.as_ref(), &options(), MAX_BYTES)?;
        Ok(vec![("output".into(), trace.output()), ("weights".into(), weights(&trace, 0)?)])
    });
    assert!(checked >= 19);
}

/// What the case expects, for one that is refused here.
fn expected(case: &crate::golden::Case) -> Computed {
    let expected = case.json["expected"].as_object().unwrap();
    expected.iter().map(|(name, key)| (name.clone(), tensor(&case.tensors, key.as_str().unwrap()))).collect()
}

#[test]
fn blocks_and_stacks_of_the_first() {
    let checked = Golden::read("golden").run("seedA_block", |case| {
        let n_layers = case.size("n_blocks");
        let dropout = case.config("dropout").as_f64().unwrap_or(0.0);
        let sizes = TransformerOptions {
            n_layers: Some(n_layers),
            dropout,
            ..TransformerOptions::new(case.size("d_model"), case.size("n_heads"))
        };
        let mut stack = Transformer::encoder(sizes, &mut Generator::new(0), MAX_BYTES)?;
        stack.load_state_dict(case.state_dict(), None)?;
        let (x, mask) = (case.needed("x"), case.mask("mask", Some(MaskAxes::Batch), keep));
        let trace = if case.config("mode") == "train" {
            let mut generator = Generator::new(case.config("seed").as_i64().unwrap());
            stack.train(&x, None, mask.as_ref(), &options(), &mut generator, MAX_BYTES)?
        } else {
            stack.forward(&x, None, mask.as_ref(), &options(), MAX_BYTES)?
        };
        let mut ours = Vec::new();
        for layer in 0..n_layers {
            ours.push((format!("weights.{layer}"), weights(&trace, layer)?));
            ours.push((format!("output.{layer}"), trace.stage(Stage::Norm2, layer)?));
        }
        assert_eq!(ours[ours.len() - 1].1, trace.output());
        Ok(ours)
    });
    assert!(checked >= 7);
}

#[test]
fn scaled_dot_product_attention_of_the_second() {
    let checked = Golden::read("golden").run("seedB_sdpa", |case| {
        let mask = case.mask("attn_mask", None, masked);
        let [query, key, value] = &["Q", "K", "V"].map(|name| case.needed(name));
        let inputs = QueryKeyValue { query, key, value, past: None };
        let trace =
            scaled_dot_product_attention(inputs, mask.as_ref(), &ScaledDotProductOptions::default(), MAX_BYTES)?;
        Ok(vec![("context".into(), trace.output()), ("attn".into(), weights(&trace, 0)?)])
    });
    assert!(checked >= 8);
}

#[test]
fn multi_head_attention_of_the_second() {
    let checked = Golden::read("golden").run("seedB_mha", |case| {
        let sizes = MultiHeadAttentionOptions {
            d_k: Some(case.size("d_k")),
            d_v: Some(case.size("d_v")),
            residual_norm: true,
            ..MultiHeadAttentionOptions::new(case.size("d_model"), case.size("n_heads"))
        };
        let mut mha = MultiHeadAttention::new(&sizes, &mut Generator::new(0), MAX_BYTES)?;
        let mask = case.mask("attn_mask", Some(MaskAxes::Batch), masked);
        let [q, k, v] = ["Q", "K", "V"].map(|name| case.needed(name));
        let pass = |mha: &MultiHeadAttention| mha.forward(&q, Some(&k), Some(&v), mask.as_ref(), &options(), MAX_BYTES);
        let mut dict = case.state_dict();
        mha.load_state_dict(dict.clone(), None)?;
        let trace = pass(&mha)?;
        let mut ours = vec![
            ("output".into(), trace.output()),
            ("attn".into(), weights(&trace, 0)?),
            ("context".into(), trace.stage(Stage::Concat, 0)?),
        ];
        if case.config("as_written") == true {
            // As written, each call makes a new output projection.
            let drawn = Generator::new(8).linear(16, 16, true);
            for (name, tensor) in &mut dict {
                match &name[..] {
                    "linear.weight" => tensor.data = drawn.weight.clone(),
                    "linear.bias" => tensor.data = drawn.bias.clone().unwrap(),
                    _ => {}
                }
            }
            mha.load_state_dict(dict, None)?;
            ours.push(("output_second_call".into(), pass(&mha)?.output()));
        }
        Ok(ours)
    });
    assert!(checked >= 12);
}

/// What PyTorch refuses in the posts: heads that do not divide is refused here too; the rest has a meaning here.
#[test]
fn what_the_posts_refuse() {
    let error = MultiHeadAttention::new(&MultiHeadAttentionOptions::new(10, 4), &mut Generator::new(0), MAX_BYTES);
    let error = error.unwrap_err();
    assert_eq!(error.code().as_str(), "not_divisible");
    assert!(error.to_string().contains("10") && error.to_string().contains('4'));

    let mha =
        MultiHeadAttention::new(&MultiHeadAttentionOptions::new(8, 4), &mut Generator::new(0), MAX_BYTES).unwrap();
    let x = Tensor::new(Generator::new(1).randn(80), vec![2, 5, 8]).unwrap();
    let square: Vec<u8> = (0..25).map(|at| u8::from(at % 5 <= at / 5)).collect();
    let two_axes = Mask::Keep { shape: vec![5, 5], data: square, axes: None };
    let pass = |mask| mha.forward(&x, None, None, Some(mask), &options(), MAX_BYTES).unwrap().output();
    assert_eq!(pass(&two_axes), pass(&Mask::Causal));
}
