//! `engine.analysis` and `engine.ops`, but for what the engine itself is needed for: a WebAssembly module of their own, loaded when it is
//! first needed.

#![allow(missing_docs)]

use attnscope::{ResolvedMask, analysis, ops};
use attnscope_boundary::{Thrown, object, plain, read, result, tensor_in, tensor_out, tensors_in, throw};
use js_sys::Array;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
pub fn entropy(weights: &JsValue) -> Thrown<JsValue> {
    result(analysis::entropy(&tensor_in(weights)?))
}

#[wasm_bindgen(js_name = effectiveKeys)]
pub fn effective_keys(weights: &JsValue) -> Thrown<JsValue> {
    result(analysis::effective_keys(&tensor_in(weights)?))
}

#[wasm_bindgen(js_name = meanDistance)]
pub fn mean_distance(weights: &JsValue, offset: isize) -> Thrown<JsValue> {
    result(analysis::mean_distance(&tensor_in(weights)?, offset))
}

/// `shape` is that of a mask that has met the weights' sizes, or empty where there is none.
#[wasm_bindgen(js_name = labelHeads)]
pub fn label_heads(
    weights: &JsValue,
    tokens: Option<Vec<i32>>,
    allowed: Vec<u8>,
    bias: Option<Vec<f32>>,
    shape: Vec<usize>,
    offset: isize,
) -> Thrown<JsValue> {
    let mask = shape.try_into().ok().map(|shape| ResolvedMask { shape, allowed, bias });
    let labels = analysis::label_heads_allowed(&tensor_in(weights)?, tokens.as_deref(), mask, offset);
    labels.map(plain).map_err(throw)
}

#[wasm_bindgen]
pub fn rollout(weights: &Array, residual: bool) -> Thrown<JsValue> {
    let layers = tensors_in(weights)?.into_iter().flatten().collect::<Vec<_>>();
    result(analysis::rollout(&layers, residual))
}

#[wasm_bindgen(js_name = maskEffect)]
pub fn mask_effect(inputs: &Array) -> Thrown<JsValue> {
    let given = tensors_in(inputs)?;
    let [Some(before), Some(after)] = &given[..] else { unreachable!("they are given") };
    let effect = analysis::mask_effect(before, after).map_err(throw)?;
    Ok(object([
        ("change", tensor_out(&effect.change)),
        ("freed", tensor_out(&effect.freed)),
        ("freedByHead", tensor_out(&effect.freed_by_head)),
        ("gains", plain(effect.gains)),
    ]))
}

/// `[distance, cosine]`
#[wasm_bindgen]
pub fn moved(inputs: &Array) -> Thrown<Array> {
    let given = tensors_in(inputs)?;
    let [Some(before), Some(after)] = &given[..] else { unreachable!("they are given") };
    let moved = analysis::moved(before, after).map_err(throw)?;
    Ok(Array::of2(&tensor_out(&moved.distance), &tensor_out(&moved.cosine)))
}

#[wasm_bindgen]
pub fn softmax(x: &JsValue, axis: isize) -> Thrown<JsValue> {
    result(ops::softmax(&tensor_in(x)?, axis))
}

#[wasm_bindgen(js_name = logSoftmax)]
pub fn log_softmax(x: &JsValue, axis: isize) -> Thrown<JsValue> {
    result(ops::log_softmax(&tensor_in(x)?, axis))
}

/// The inputs are x, and the weight and the bias where they are given.
#[wasm_bindgen(js_name = layerNorm)]
pub fn layer_norm(inputs: &Array, eps: f32, axis: isize) -> Thrown<JsValue> {
    let given = tensors_in(inputs)?;
    let [Some(x), weight, bias] = &given[..] else { unreachable!("x is given") };
    result(ops::layer_norm(x, weight.as_ref(), bias.as_ref(), eps, axis))
}

/// The inputs are x, and the weight where it is given.
#[wasm_bindgen(js_name = rmsNorm)]
pub fn rms_norm(inputs: &Array, eps: f32, axis: isize) -> Thrown<JsValue> {
    let given = tensors_in(inputs)?;
    let [Some(x), weight] = &given[..] else { unreachable!("x is given") };
    result(ops::rms_norm(x, weight.as_ref(), eps, axis))
}

/// The inputs are x, and the angles' cosines and sines.
#[wasm_bindgen]
pub fn rotary(inputs: &Array, interleaved: bool) -> Thrown<JsValue> {
    let given = tensors_in(inputs)?;
    let [Some(x), Some(cos), Some(sin)] = &given[..] else { unreachable!("they are given") };
    result(ops::rotary(x, cos, sin, interleaved))
}

#[wasm_bindgen]
pub fn activation(x: &JsValue, name: JsValue) -> Thrown<JsValue> {
    Ok(tensor_out(&ops::activation(&tensor_in(x)?, read(name)?)))
}
