//! Values across the wall: tensors as copies, options as typed objects.

use attnscope::families::{Kind, Target};
use attnscope::{AttnError, Plain, Tensor};
use js_sys::{Array, Float32Array, Object, Reflect};
use wasm_bindgen::prelude::*;

use crate::error::throw;

/// A result whose error is what JavaScript throws.
pub type Thrown<T> = Result<T, JsValue>;

#[wasm_bindgen]
extern "C" {
    /// `{ data: Float32Array, shape: number[] }`. Properties by name would be looked up with names that are decoded every time.
    type JsTensor;
    #[wasm_bindgen(method, getter)]
    fn data(this: &JsTensor) -> Vec<f32>;
    #[wasm_bindgen(method, getter)]
    fn shape(this: &JsTensor) -> Vec<usize>;
    #[wasm_bindgen(method, setter)]
    fn set_data(this: &JsTensor, data: &Float32Array);
    #[wasm_bindgen(method, setter)]
    fn set_shape(this: &JsTensor, shape: &Array);
}

/// A tensor that the package made, copied.
pub fn tensor_in(value: &JsValue) -> Thrown<Tensor> {
    let tensor: &JsTensor = value.unchecked_ref();
    Tensor::new(tensor.data(), tensor.shape()).map_err(throw)
}

/// Those of a list, some of which may be none; together, so that those before one that is refused are dropped at one place.
pub fn tensors_in(values: &Array) -> Thrown<Vec<Option<Tensor>>> {
    let is_absent = |value: &JsValue| value.is_undefined() || value.is_null();
    values.iter().map(|value| if is_absent(&value) { Ok(None) } else { tensor_in(&value).map(Some) }).collect()
}

/// `{ data, shape }`, copied.
pub fn tensor_out(tensor: &Tensor) -> JsValue {
    tensor_of(Float32Array::from(&tensor.data[..]), &tensor.shape)
}

/// `{ data, shape }` of numbers that are copied already.
pub fn tensor_of(data: Float32Array, shape: &[usize]) -> JsValue {
    let tensor: JsTensor = Object::new().unchecked_into();
    tensor.set_data(&data);
    tensor.set_shape(&list(shape));
    tensor.into()
}

/// A list of numbers.
pub fn list(numbers: &[usize]) -> Array {
    numbers.iter().map(|&number| JsValue::from(number)).collect()
}

/// A plain object with these properties.
pub fn object<'a>(entries: impl IntoIterator<Item = (&'a str, JsValue)>) -> JsValue {
    let object = Object::new();
    for (name, value) in entries {
        // Setting a property of a plain object does not fail.
        let _ = Reflect::set(&object, &name.into(), &value);
    }
    object.into()
}

/// A value of JavaScript.
pub fn plain(value: impl Into<Plain>) -> JsValue {
    fn given(value: Plain) -> JsValue {
        match value {
            Plain::Null => JsValue::NULL,
            Plain::Number(number) => number.into(),
            Plain::Text(text) => text.into(),
            Plain::List(list) => list.into_iter().map(given).collect::<Array>().into(),
            Plain::Object(fields) => object(fields.into_iter().map(|(name, value)| (name, given(value)))),
        }
    }
    given(value.into())
}

/// Bytes from JavaScript's numbers, which may be larger than any address here.
pub fn limit(max_bytes: f64) -> usize {
    max_bytes as usize
}

/// How many numbers are asked for, where they fit.
pub fn count(size: f64, max_bytes: f64) -> Thrown<usize> {
    let needed = 4.0 * size;
    if needed <= max_bytes && size <= f64::from(u32::MAX) {
        Ok(size as usize)
    } else {
        Err(throw(Box::new(AttnError::TooLarge { needed: needed as u64, max_bytes: max_bytes as u64 })))
    }
}

/// A state dict of `[name, tensor]` pairs.
pub fn dict_in(entries: &Array) -> Thrown<Vec<(String, Tensor)>> {
    entries
        .iter()
        .map(|entry| {
            let entry: Array = entry.unchecked_into();
            Ok((entry.get(0).as_string().unwrap_or_default(), tensor_in(&entry.get(1))?))
        })
        .collect()
}

/// `[kind, is_decoder, n_heads, [name, shape] of each parameter, turns_neighbours]`, the kind by its number.
pub fn target_out(target: &Target) -> Array {
    let shapes: Array = target.shapes.iter().map(|(name, shape)| Array::of2(&name.into(), &list(shape))).collect();
    let Target { kind, is_decoder, n_heads, turns_neighbours, .. } = *target;
    Array::of5(&(kind as u32).into(), &is_decoder.into(), &n_heads.into(), &shapes, &turns_neighbours.into())
}

/// What [`target_out`] gave.
pub fn target_in(target: &Array) -> Target {
    let number = |value: JsValue| value.as_f64().unwrap_or_default() as usize;
    let shapes = target.get(3).unchecked_into::<Array>().into_iter().map(|entry| {
        let entry: Array = entry.unchecked_into();
        let shape = entry.get(1).unchecked_into::<Array>().iter().map(number).collect();
        (entry.get(0).as_string().unwrap_or_default(), shape)
    });
    Target {
        kind: Kind::ALL[number(target.get(0))],
        is_decoder: target.get(1).is_truthy(),
        n_heads: number(target.get(2)),
        turns_neighbours: target.get(4).is_truthy(),
        shapes: shapes.collect(),
    }
}

/// `[name, tensor]` pairs of a state dict.
pub fn dict_out(dict: Vec<(String, Tensor)>) -> Array {
    dict.into_iter().map(|(name, tensor)| Array::of2(&name.into(), &tensor_out(&tensor))).collect()
}
