//! Values across the wall: tensors as copies, options as typed objects.

use attnscope::{AttnError, Tensor};
use js_sys::{Array, Float32Array, Object, Reflect};
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, Visitor};
use wasm_bindgen::prelude::*;

use crate::error::throw;

pub type Thrown<T> = Result<T, JsValue>;

/// `{ data: Float32Array, shape: number[] }`, copied.
pub fn tensor_in(value: &JsValue) -> Thrown<Tensor> {
    let data: Float32Array = Reflect::get(value, &"data".into())?.unchecked_into();
    let shape: Vec<usize> = serde_wasm_bindgen::from_value(Reflect::get(value, &"shape".into())?)?;
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

/// An options object. A name that the type does not have, or a value that does not fit, is `invalid_option` with the name.
/// `also` are the options that the package reads itself, for the message alone.
pub fn options<T: DeserializeOwned>(value: JsValue, also: &[&str]) -> Thrown<T> {
    let value = if value.is_undefined() || value.is_null() { Object::new().into() } else { value };
    if !value.is_object() {
        return Err(invalid("options", &value, "an object"));
    }
    let fields = fields_of::<T>();
    let given = Object::keys(value.unchecked_ref::<Object>());
    for name in given.iter().filter_map(|name| name.as_string()) {
        if !fields.contains(&&name[..]) {
            let expected = format!("one of {}", [fields, also].concat().join(", "));
            let found = "an unknown option".into();
            return Err(throw(AttnError::InvalidOption { option: name, found, expected }));
        }
    }
    read(value)
}

/// A tagged object, such as a mask's rule, or a word of a few.
pub fn read<T: DeserializeOwned>(value: JsValue) -> Thrown<T> {
    let deserializer = serde_wasm_bindgen::Deserializer::from(value.clone());
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let path = error.path().to_string();
        let message = error.inner().to_string();
        // serde says "missing field `x`", or "... found ..., expected ...".
        if let Some((_, missing)) = message.split_once("missing field `") {
            return invalid(missing.trim_end_matches('`'), &JsValue::UNDEFINED, "a value");
        }
        let expected = message.split_once("expected ").map_or(&message[..], |(_, expected)| expected);
        let expected = match expected {
            "usize" => "a whole number of at least 0",
            "f32" => "a number",
            other => other,
        };
        if path == "." {
            return invalid("value", &value, expected);
        }
        let mut steps = path.split(['.', '[']).map(|step| step.trim_end_matches(']'));
        let found = steps.try_fold(value.clone(), |at, name| Reflect::get(&at, &name.into()));
        invalid(&path, &found.unwrap_or(JsValue::UNDEFINED), expected)
    })
}

fn invalid(option: &str, found: &JsValue, expected: &str) -> JsValue {
    let text = || found.as_string().map(|text| format!("\"{text}\""));
    let number = || found.as_f64().map(|number| number.to_string());
    let other = || format!("{found:?}").replace("JsValue(", "").trim_end_matches(')').into();
    let found = text().or_else(number).unwrap_or_else(other);
    throw(AttnError::InvalidOption { option: option.into(), found, expected: expected.into() })
}

/// The field names that serde knows of a struct. serde-wasm-bindgen reads only those, so an unknown one would pass unseen.
fn fields_of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    // It ends in an error as soon as the names are known; that is its whole purpose.
    let _ = T::deserialize(Fields(&mut fields));
    fields
}

struct Fields<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("only structs have fields"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        Err(de::Error::custom("the names are known"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// A plain object of a Rust value.
pub fn plain<T: serde::Serialize>(value: &T) -> JsValue {
    let serializer = serde_wasm_bindgen::Serializer::json_compatible();
    value.serialize(&serializer).unwrap_or(JsValue::UNDEFINED)
}
