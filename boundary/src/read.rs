//! JavaScript values as the engine reads them.

use attnscope::Mask;
use attnscope::given::{self, Given, Read};
use js_sys::{Array, ArrayBuffer, Object, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::convert::Thrown;
use crate::error::throw;

/// An options object. `also` are the options that the package reads itself, for the message alone.
pub fn options<T: Read>(value: JsValue, also: &[&str]) -> Thrown<T> {
    let value = if value.is_undefined() || value.is_null() { Object::new().into() } else { value };
    given::read_options(&Value(value), also).map_err(throw)
}

/// A mask's rule, or a word of a few.
pub fn read<T: Read>(value: JsValue) -> Thrown<T> {
    given::read(&Value(value), "value").map_err(throw)
}

/// A mask, where there is one.
pub fn optional_mask(rule: JsValue) -> Thrown<Option<Mask>> {
    if rule.is_undefined() || rule.is_null() { Ok(None) } else { read(rule).map(Some) }
}

/// How much of a value a message shows, in bytes.
const LONGEST: usize = 100;

struct Value(JsValue);

impl Given for Value {
    fn is_absent(&self) -> bool {
        self.0.is_undefined() || self.0.is_null()
    }

    fn flag(&self) -> Option<bool> {
        self.0.as_bool()
    }

    /// Also from a list of 64-bit numbers.
    fn number(&self) -> Option<f64> {
        self.0.as_f64().or_else(|| i64::try_from(self.0.clone()).ok().map(|whole| whole as f64))
    }

    fn text(&self) -> Option<String> {
        self.0.as_string()
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        self.0.dyn_ref::<Uint8Array>().map(Uint8Array::to_vec)
    }

    /// A list, or a typed array of whatever kind.
    fn items(&self) -> Option<Vec<Self>> {
        let is_list = Array::is_array(&self.0) || ArrayBuffer::is_view(&self.0);
        is_list.then(|| Array::from(&self.0).iter().map(Self).collect())
    }

    fn entries(&self) -> Option<Vec<(String, Self)>> {
        let object =
            self.0.dyn_ref::<Object>().filter(|_| !Array::is_array(&self.0) && !ArrayBuffer::is_view(&self.0))?;
        let entry = |pair: JsValue| {
            let pair: Array = pair.unchecked_into();
            (pair.get(0).as_string().unwrap_or_default(), Self(pair.get(1)))
        };
        Some(Object::entries(object).iter().map(entry).collect())
    }

    fn shown(&self) -> String {
        if self.entries().is_some_and(|entries| entries.len() > 1) {
            return "an object".into();
        }
        let debugged = format!("{:?}", self.0);
        let value = debugged.strip_prefix("JsValue(").and_then(|inside| inside.strip_suffix(')')).unwrap_or(&debugged);
        let end = (0..=LONGEST).rfind(|&at| value.is_char_boundary(at)).unwrap_or(0);
        if end < value.len() { [&value[..end], "…"].concat() } else { value.into() }
    }
}
