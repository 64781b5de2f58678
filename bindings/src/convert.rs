//! Values across the wall: tensors as copies, options as typed objects.

use attnscope::Tensor;
use js_sys::{Array, Float32Array, Object, Reflect};
use wasm_bindgen::prelude::*;

use crate::error::throw;

pub type Thrown<T> = Result<T, JsValue>;

/// `{ data: Float32Array, shape: number[] }`, copied.
pub fn tensor_in(value: &JsValue) -> Thrown<Tensor> {
    let data: Float32Array = Reflect::get(value, &"data".into())?.unchecked_into();
    let shape: Array = Reflect::get(value, &"shape".into())?.unchecked_into();
    // The package made the tensor, so its axes are whole numbers.
    let shape = shape.iter().map(|axis| axis.as_f64().unwrap_or_default() as usize).collect();
    Tensor::new(data.to_vec(), shape).map_err(throw)
}

pub fn optional_tensor(value: &JsValue) -> Thrown<Option<Tensor>> {
    if value.is_undefined() || value.is_null() { Ok(None) } else { tensor_in(value).map(Some) }
}

pub fn tensor_out(tensor: &Tensor) -> JsValue {
    object(&[
        ("data", Float32Array::from(&tensor.data[..]).into()),
        ("shape", tensor.shape.iter().map(|&axis| JsValue::from(axis)).collect::<Array>().into()),
    ])
}

pub fn object(entries: &[(&str, JsValue)]) -> JsValue {
    let object = Object::new();
    for (name, value) in entries {
        // Setting a property of a plain object does not fail.
        let _ = Reflect::set(&object, &(*name).into(), value);
    }
    object.into()
}

/// A plain object of a Rust value.
pub fn plain<T: serde::Serialize>(value: &T) -> JsValue {
    let serializer = serde_wasm_bindgen::Serializer::json_compatible();
    value.serialize(&serializer).unwrap_or(JsValue::UNDEFINED)
}
