//! `engine.analysis`.

use attnscope::analysis;
use js_sys::Array;
use wasm_bindgen::prelude::*;

use crate::read::options;
use crate::{RawAttention, limit, optional_mask, result};
use attnscope_boundary::{Thrown, object, plain, tensor_in, tensor_out, tensors_in, throw};

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

#[wasm_bindgen(js_name = labelHeads)]
pub fn label_heads(
    weights: &JsValue,
    tokens: Option<Vec<i32>>,
    mask: JsValue,
    offset: isize,
    max_bytes: f64,
) -> Thrown<JsValue> {
    let (weights, mask) = (tensor_in(weights)?, optional_mask(mask)?);
    let labels = analysis::label_heads(&weights, tokens.as_deref(), mask.as_ref(), offset, limit(max_bytes));
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
    Ok(object(&[
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
impl RawAttention {
    pub fn ablate(&self, inputs: &Array, mask: JsValue, settings: JsValue, max_bytes: f64) -> Thrown<JsValue> {
        let given = tensors_in(inputs)?;
        let [Some(x), key, value] = &given[..] else { unreachable!("x is given") };
        let (mask, options) = (optional_mask(mask)?, options(settings, &["key", "value", "mask"])?);
        let (key, value, mask) = (key.as_ref(), value.as_ref(), mask.as_ref());
        result(analysis::ablate(&self.0, x, key, value, mask, &options, limit(max_bytes)))
    }
}
