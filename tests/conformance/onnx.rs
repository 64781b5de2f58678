//! ONNX's operators as its own backend tests have them: Attention, LayerNormalization, RMSNormalization, RotaryEmbedding, Gelu,
//! Softmax. Cases in half precision are counted and left out.

use std::collections::BTreeMap;

use attnscope::{
    Activation, EmptyRow, Mask, QueryKeyValue, ScaledDotProductOptions, Stage, Tensor, ops,
    scaled_dot_product_attention,
};

use crate::MAX_BYTES;
use crate::golden::{Case, Golden, and, compare, keep, numbers, reshaped};

#[test]
fn operators() {
    let golden = Golden::read("onnx");
    let mut checked: BTreeMap<&str, usize> = BTreeMap::new();
    let mut half = 0;
    for json in golden.manifest["cases"].as_array().unwrap() {
        let is_half = json["dtypes"].as_array().unwrap().iter().any(|dtype| dtype == "float16" || dtype == "bfloat16");
        if is_half || json["stored"] != true {
            half += 1;
            continue;
        }
        let case = golden.case(json);
        let op = json["op"].as_str().unwrap();
        for (name, ours) in run(op, &case) {
            let Some(key) = json["outputs"][&name].as_str() else { continue };
            let expected = numbers(&case.tensors, key);
            let bound = (8.0 * json["err"][&name].as_f64().unwrap_or(0.0)).max(2e-6);
            compare(&format!("{} {name}", case.id()), &ours, &expected, &expected.1, bound);
        }
        *checked.entry(op).or_default() += 1;
    }
    println!("checked {checked:?}, half precision or not stored {half}");
    for (op, least) in [("Attention", 60), ("LayerNormalization", 17), ("RMSNormalization", 14), ("RotaryEmbedding", 6)]
    {
        assert!(checked[op] >= least, "{op}: {checked:?}");
    }
}

fn run(op: &str, case: &Case) -> Vec<(String, Tensor)> {
    let attribute = |name: &str| &case.json["attrs"][name];
    let number = |name: &str| attribute(name).as_f64();
    let axis = number("axis").unwrap_or(-1.0) as isize;
    let named = |name: &str, tensor| vec![(name.to_owned(), tensor)];
    match op {
        "Attention" => attention(case),
        "LayerNormalization" => {
            let eps = number("epsilon").unwrap_or(1e-5) as f32;
            let (scale, bias) = (case.input("Scale"), case.input("B"));
            named("Y", ops::layer_norm(&case.needed("X"), scale.as_ref(), bias.as_ref(), eps, axis).unwrap())
        }
        "RMSNormalization" => {
            let eps = number("epsilon").unwrap_or(1e-5) as f32;
            named("Y", ops::rms_norm(&case.needed("X"), case.input("scale").as_ref(), eps, axis).unwrap())
        }
        "RotaryEmbedding" => {
            let x = case.needed("X");
            let [mut cos, mut sin] = ["cos_cache", "sin_cache"].map(|name| case.needed(name));
            if let Some(positions) = case.input("position_ids") {
                [cos, sin] = [cos, sin].map(|cache| rows_at(&cache, &positions));
            }
            let heads = number("num_heads").map(|heads| heads as usize);
            let split = heads.map_or(x.clone(), |heads| split_heads(&x, heads));
            let turned = ops::rotary(&split, &cos, &sin, attribute("interleaved") == 1).unwrap();
            named("Y", if heads.is_some() { join_heads(&turned) } else { turned })
        }
        "Gelu" => {
            let tanh = attribute("approximate") == "tanh";
            let activation = if tanh { Activation::GeluTanh } else { Activation::Gelu };
            named("Y", ops::activation(&case.needed("X"), activation))
        }
        "Softmax" => named("output", ops::softmax(&case.needed("input"), axis).unwrap()),
        other => panic!("unknown operator {other}"),
    }
}

fn attention(case: &Case) -> Vec<(String, Tensor)> {
    let attribute = |name: &str| case.json["attrs"][name].as_f64();
    let [q_heads, kv_heads] = ["q_num_heads", "kv_num_heads"].map(|name| attribute(name).map(|heads| heads as usize));
    let heads = |name, heads: Option<usize>| match heads {
        Some(heads) => split_heads(&case.needed(name), heads),
        None => case.needed(name),
    };
    let [query, key, value] = &[heads("Q", q_heads), heads("K", kv_heads), heads("V", kv_heads)];
    let past = [case.input("past_key"), case.input("past_value")];
    let past = if let [Some(key), Some(value)] = &past { Some([key, value]) } else { None };

    let side = |name| attribute(name).filter(|&size| size >= 0.0).map_or(usize::MAX >> 1, |size| size as usize);
    let has_window = ["left_window_size", "right_window_size"].iter().any(|name| attribute(name).is_some());
    let window = Mask::SlidingWindow { left: side("left_window_size"), right: side("right_window_size") };
    let mask = and(has_window.then_some(window), case.mask("attn_mask", None, keep));
    let lengths = case.input("nonpad_kv_seqlen");
    let options = ScaledDotProductOptions {
        is_causal: attribute("is_causal") == Some(1.0),
        scale: attribute("scale").map(|scale| scale as f32),
        softcap: attribute("softcap").unwrap_or(0.0) as f32,
        mask_fill: f32::NEG_INFINITY,
        empty_row: EmptyRow::Zero,
        kv_lengths: lengths.map(|lengths| lengths.data.iter().map(|&length| length as usize).collect()),
        trace: true,
        ..ScaledDotProductOptions::default()
    };
    let inputs = QueryKeyValue { query, key, value, past };
    let trace = scaled_dot_product_attention(inputs, mask.as_ref(), &options, MAX_BYTES);
    let trace = trace.unwrap_or_else(|error| panic!("{}: {error}", case.id()));

    let output = trace.output();
    let mut ours = vec![("Y".to_owned(), if q_heads.is_some() { join_heads(&output) } else { output })];
    if let Some([key, value]) = trace.present() {
        ours.extend([("present_key".to_owned(), key), ("present_value".to_owned(), value)]);
    }
    let stage = match (attribute("qk_matmul_output_mode").unwrap_or(0.0) as i32, options.softcap > 0.0) {
        (0, _) | (1, false) => Stage::Scaled,
        (1, true) => Stage::Capped,
        (2, _) => Stage::Masked,
        _ => Stage::Weights,
    };
    ours.push(("qk_matmul_output".to_owned(), trace.stage(stage, 0).unwrap()));
    ours
}

/// `[batch, n, heads * d]` as `[batch, heads, n, d]`.
fn split_heads(tensor: &Tensor, heads: usize) -> Tensor {
    let [batch, n, width] = tensor.shape[..] else { panic!("three axes") };
    moved(tensor, [batch, n, heads, width / heads])
}

/// `[batch, heads, n, d]` as `[batch, n, heads * d]`.
fn join_heads(tensor: &Tensor) -> Tensor {
    let [batch, heads, n, d] = tensor.shape[..] else { panic!("four axes") };
    let moved = moved(tensor, [batch, heads, n, d]);
    reshaped(moved, &[batch, n, heads * d])
}

/// The two middle axes of four exchanged.
fn moved(tensor: &Tensor, [batch, a, b, d]: [usize; 4]) -> Tensor {
    let rows =
        (0..batch).flat_map(|batch| (0..b).flat_map(move |j| (0..a).map(move |i| ((batch * a + i) * b + j) * d)));
    let data = rows.flat_map(|at| &tensor.data[at..][..d]).copied().collect();
    Tensor::new(data, vec![batch, b, a, d]).unwrap()
}

/// The cache's rows at positions `[batch, n]`.
fn rows_at(cache: &Tensor, positions: &Tensor) -> Tensor {
    let width = cache.shape[1];
    let data = positions.data.iter().flat_map(|&at| &cache.data[at as usize * width..][..width]).copied().collect();
    Tensor::new(data, [&positions.shape[..], &[width]].concat()).unwrap()
}
