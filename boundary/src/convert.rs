//! Values across the wall: tensors as copies, options as typed objects.

use attnscope::{Plain, Tensor};
use js_sys::{Array, Float32Array, Object, Reflect};
use wasm_bindgen::prelude::*;

use crate::error::throw;

/// A result whose error is what JavaScript throws.
pub type Thrown<T> = Result<T, JsValue>;

/// `{ data: Float32Array, shape: number[] }`, copied.
pub fn tensor_in(value: &JsValue) -> Thrown<Tensor> {
    let data: Float32Array = Reflect::get(value, &"data".into())?.unchecked_into();
    let shape: Array = Reflect::get(value, &"shape".into())?.unchecked_into();
    // The package made the tensor, so its axes are whole numbers.
    let shape = shape.iter().map(|axis| axis.as_f64().unwrap_or_default() as usize).collect();
    Tensor::new(data.to_vec(), shape).map_err(throw)
}

/// Several, of some of which there may be none; together, so that those before one that is refused are dropped at one place.
pub fn tensors_in(values: &[&JsValue]) -> Thrown<Vec<Option<Tensor>>> {
    let is_absent = |value: &JsValue| value.is_undefined() || value.is_null();
    values.iter().map(|value| if is_absent(value) { Ok(None) } else { tensor_in(value).map(Some) }).collect()
}

/// `{ data, shape }`, copied.
pub fn tensor_out(tensor: &Tensor) -> JsValue {
    tensor_of(Float32Array::from(&tensor.data[..]), &tensor.shape)
}

/// `{ data, shape }` of numbers that are copied already.
pub fn tensor_of(data: Float32Array, shape: &[usize]) -> JsValue {
    object(&[("data", data.into()), ("shape", list(shape).into())])
}

/// A list of numbers.
pub fn list(numbers: &[usize]) -> Array {
    numbers.iter().map(|&number| JsValue::from(number)).collect()
}

/// A plain object with these properties.
pub fn object(entries: &[(&str, JsValue)]) -> JsValue {
    let object = Object::new();
    for (name, value) in entries {
        // Setting a property of a plain object does not fail.
        let _ = Reflect::set(&object, &(*name).into(), value);
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
            Plain::Object(fields) => {
                let object = Object::new();
                for (name, value) in fields {
                    // Setting a property of a plain object does not fail.
                    let _ = Reflect::set(&object, &name.into(), &given(value));
                }
                object.into()
            }
        }
    }
    given(value.into())
}

/// Bytes from JavaScript's numbers, which may be larger than any address here.
pub fn limit(max_bytes: f64) -> usize {
    max_bytes as usize
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

/// `[name, tensor]` pairs of a state dict.
pub fn dict_out(dict: Vec<(String, Tensor)>) -> Array {
    dict.into_iter().map(|(name, tensor)| Array::of2(&name.into(), &tensor_out(&tensor))).collect()
}
