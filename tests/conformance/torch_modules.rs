//! `torch.nn.MultiheadAttention`, `F.scaled_dot_product_attention`, `TransformerEncoderLayer` and `TransformerDecoderLayer`.

use attnscope::{
    Activation, EmptyRow, ForwardOptions, Mask, MaskAxes, Memory, MultiHeadAttention, MultiHeadAttentionOptions,
    QueryKeyValue, ScaledDotProductOptions, Tensor, Transformer, TransformerOptions, scaled_dot_product_attention,
    torch::Generator,
};

use crate::MAX_BYTES;
use crate::golden::{Case, Golden, and, keep, masked};

/// What PyTorch does: -infinity, and zeros for an empty row where it does not return weights.
fn exact(need_weights: bool) -> ForwardOptions {
    let empty_row = if need_weights { EmptyRow::Nan } else { EmptyRow::Zero };
    ForwardOptions { mask_fill: f32::NEG_INFINITY, empty_row, need_weights, ..ForwardOptions::default() }
}

/// `key_padding_mask` `[batch, n_k]` as `[batch, 1, 1, n_k]`, true is hidden.
fn padding(case: &Case, name: &str) -> Option<Mask> {
    fn wide(shape: &[usize]) -> Vec<usize> {
        vec![shape[0], 1, 1, shape[1]]
    }
    case.mask(name, None, masked).map(|mask| match mask {
        Mask::Masked { shape, data, axes } => Mask::Masked { shape: wide(&shape), data, axes },
        Mask::Additive { shape, data, axes } => Mask::Additive { shape: wide(&shape), data, axes },
        other => other,
    })
}

#[test]
fn multihead_attention() {
    let checked = Golden::read("golden").run("torch_mha", |case| {
        let (d_model, n_heads) = (case.size("embed_dim"), case.size("num_heads"));
        let width = |name| case.config(name).as_u64().map(|width| width as usize);
        let options = MultiHeadAttentionOptions {
            k_dim: width("kdim"),
            v_dim: width("vdim"),
            bias: case.config("bias") != false,
            bias_kv: case.config("add_bias_kv") == true,
            add_zero_attn: case.config("add_zero_attn") == true,
            ..MultiHeadAttentionOptions::new(d_model, n_heads)
        };
        let mut mha = MultiHeadAttention::new(&options, &mut Generator::new(0), MAX_BYTES)?;
        mha.load_state_dict(case.state_dict(), None)?;

        let batch_first = case.config("batch_first") == true;
        let swap = |tensor: Tensor| if batch_first { tensor } else { first_axes_swapped(&tensor) };
        let [query, key, value] = ["query", "key", "value"].map(|name| swap(case.needed(name)));
        // Three axes are the heads of every batch entry, one behind another.
        let attn_mask = case.mask("attn_mask", None, masked).map(|mask| match mask {
            Mask::Masked { shape, data, axes } => Mask::Masked { shape: by_head(shape, n_heads), data, axes },
            Mask::Additive { shape, data, axes } => Mask::Additive { shape: by_head(shape, n_heads), data, axes },
            other => other,
        });
        let mask = and(attn_mask, padding(case, "key_padding_mask"));
        let call = case.config("call");
        let need_weights = call["need_weights"] != false;
        let forward = ForwardOptions { average_weights: call["average_attn_weights"] != false, ..exact(need_weights) };
        let trace = mha.forward(&query, Some(&key), Some(&value), mask.as_ref(), &forward, MAX_BYTES)?;
        let mut ours = vec![("output".into(), swap(trace.output()))];
        ours.extend(trace.weights(0)?.map(|weights| ("weights".into(), weights)));
        Ok(ours)
    });
    assert!(checked >= 20);
}

fn by_head(shape: Vec<usize>, n_heads: usize) -> Vec<usize> {
    match shape[..] {
        [entries, n_q, n_k] => vec![entries / n_heads, n_heads, n_q, n_k],
        _ => shape,
    }
}

fn first_axes_swapped(tensor: &Tensor) -> Tensor {
    let [a, b, width] = tensor.shape[..] else { panic!("three axes") };
    let rows = (0..b).flat_map(|j| (0..a).map(move |i| (i * b + j) * width));
    Tensor::new(rows.flat_map(|at| &tensor.data[at..][..width]).copied().collect(), vec![b, a, width]).unwrap()
}

#[test]
fn functional_scaled_dot_product_attention() {
    let checked = Golden::read("golden").run("torch_sdpa", |case| {
        let call = case.config("call");
        let options = |empty_row| ScaledDotProductOptions {
            is_causal: call["is_causal"] == true,
            scale: call["scale"].as_f64().map(|scale| scale as f32),
            mask_fill: f32::NEG_INFINITY,
            empty_row,
            ..ScaledDotProductOptions::default()
        };
        let mask = case.mask("attn_mask", None, keep);
        let [query, key, value] = &["query", "key", "value"].map(|name| case.needed(name));
        let inputs = QueryKeyValue { query, key, value, past: None };
        let pass = |empty_row| scaled_dot_product_attention(inputs, mask.as_ref(), &options(empty_row), MAX_BYTES);
        // PyTorch's output is zero where a textbook's weights are NaN.
        let weights = pass(EmptyRow::Nan)?.weights(0)?.expect("weights");
        Ok(vec![("output".into(), pass(EmptyRow::Zero)?.output()), ("weights".into(), weights)])
    });
    assert!(checked >= 12);
}

fn options(case: &Case) -> TransformerOptions {
    TransformerOptions {
        n_layers: case.config("num_layers").as_u64().map(|layers| layers as usize),
        d_ff: Some(case.size("dim_feedforward")),
        norm_first: case.config("norm_first") == true,
        activation: if case.config("activation") == "gelu" { Activation::Gelu } else { Activation::Relu },
        eps: case.config("layer_norm_eps").as_f64().unwrap_or(1e-5) as f32,
        bias: case.config("bias") != false,
        final_norm: case.config("final_norm") == true,
        ..TransformerOptions::new(case.size("d_model"), case.size("nhead"))
    }
}

#[test]
fn encoder_layers_and_stacks() {
    let checked = Golden::read("golden").run("torch_encoder", |case| {
        let mut stack = Transformer::encoder(options(case), &mut Generator::new(0), MAX_BYTES)?;
        stack.load_state_dict(case.state_dict(), None)?;
        let mask = and(case.mask("src_mask", Some(MaskAxes::Batch), masked), padding(case, "src_key_padding_mask"));
        let trace = stack.forward(&case.needed("src"), None, mask.as_ref(), &exact(true), MAX_BYTES)?;
        Ok(vec![("output".into(), trace.output()), ("weights".into(), trace.weights(0)?.expect("weights"))])
    });
    assert!(checked >= 7);
}

#[test]
fn decoder_layers() {
    let checked = Golden::read("golden").run("torch_decoder", |case| {
        let mut decoder = Transformer::decoder(options(case), &mut Generator::new(0), MAX_BYTES)?;
        decoder.load_state_dict(case.state_dict(), None)?;
        let own = and(case.mask("tgt_mask", None, masked), padding(case, "tgt_key_padding_mask"));
        let to_memory = and(case.mask("memory_mask", None, masked), padding(case, "memory_key_padding_mask"));
        let memory = Memory { rows: &case.needed("memory"), mask: to_memory.as_ref() };
        let trace = decoder.forward(&case.needed("tgt"), Some(memory), own.as_ref(), &exact(true), MAX_BYTES)?;
        assert_eq!(trace.cross_weights(0)?.expect("weights").shape, [2, 4, 5, 7]);
        Ok(vec![("output".into(), trace.output())])
    });
    assert!(checked >= 1);
}
