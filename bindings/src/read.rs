//! JavaScript values as serde asks for them. A value that does not fit is `invalid_option` with its place, what was found and
//! what was expected.
//!
//! serde-wasm-bindgen reads them too, but says no place; wrapped in serde_path_to_error to do so, it took a fifth of the engine.

use attnscope::AttnError;
use attnscope_boundary::{Thrown, throw};
use js_sys::{Array, ArrayBuffer, Object, Uint8Array};
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, Unexpected, Visitor};
use wasm_bindgen::prelude::*;

/// An options object. `also` are the options that the package reads itself, for the message alone.
pub fn options<'de, T: Deserialize<'de>>(value: JsValue, also: &[&str]) -> Thrown<T> {
    let value = if value.is_undefined() || value.is_null() { Object::new().into() } else { value };
    T::deserialize(Value(value)).map_err(|problem| problem.thrown("options", also))
}

/// A mask's rule, or a word of a few.
pub fn read<'de, T: Deserialize<'de>>(value: JsValue) -> Thrown<T> {
    T::deserialize(Value(value)).map_err(|problem| problem.thrown("value", &[]))
}

/// A value that does not fit.
#[derive(Debug)]
struct Problem {
    /// From the outermost name or index to the value.
    path: Vec<String>,
    found: Option<String>,
    expected: String,
}

impl Problem {
    fn new(found: Option<String>, expected: impl Into<String>) -> Self {
        Self { path: Vec::new(), found, expected: expected.into() }
    }

    /// Seen from one level further out, where `value` lies under `name`.
    fn within(mut self, name: String, value: &JsValue) -> Self {
        self.found.get_or_insert_with(|| shown(value));
        self.path.insert(0, name);
        self
    }

    fn thrown(self, outermost: &str, also: &[&str]) -> JsValue {
        let mut option = String::new();
        for step in &self.path {
            let is_index = step.starts_with(|c: char| c.is_ascii_digit());
            match (is_index, option.is_empty()) {
                (true, _) => option.extend(["[", step, "]"]),
                (false, true) => option.push_str(step),
                (false, false) => option.extend([".", step]),
            }
        }
        if option.is_empty() {
            option.push_str(outermost);
        }
        let mut expected = self.expected;
        if expected.starts_with("one of ") && self.path.len() == 1 {
            also.iter().for_each(|name| expected.extend([", ", name]));
        }
        throw(AttnError::InvalidOption { option, found: self.found.unwrap_or_default(), expected })
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.expected)
    }
}

impl std::error::Error for Problem {}

impl de::Error for Problem {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::new(None, message.to_string())
    }
    fn invalid_type(_: Unexpected, expected: &dyn Expected) -> Self {
        Self::new(None, in_words(&expected.to_string()))
    }
    fn invalid_value(_: Unexpected, expected: &dyn Expected) -> Self {
        Self::new(None, in_words(&expected.to_string()))
    }
    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let problem = Self::new(Some("an unknown option".into()), listed(expected));
        Self { path: vec![field.into()], ..problem }
    }
    fn missing_field(field: &'static str) -> Self {
        Self { path: vec![field.into()], ..Self::new(Some("undefined".into()), "a value") }
    }
    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(None, listed(expected))
    }
}

fn listed(names: &[&str]) -> String {
    format!("one of {}", names.join(", "))
}

fn in_words(expected: &str) -> &str {
    match expected {
        "usize" => "a whole number of at least 0",
        "f32" | "f64" => "a number",
        other => other,
    }
}

/// A value as a message has it.
fn shown(value: &JsValue) -> String {
    if let Some(text) = value.as_string() {
        return format!("\"{text}\"");
    }
    if let Some(number) = value.as_f64() {
        return number.to_string();
    }
    let debugged = format!("{value:?}");
    debugged.trim_start_matches("JsValue(").trim_end_matches(')').into()
}

/// A number, also from a list of 64-bit ones.
fn number(value: &JsValue) -> Option<f64> {
    value.as_f64().or_else(|| i64::try_from(value.clone()).ok().map(|whole| whole as f64))
}

/// The largest that JavaScript's numbers count to.
const LARGEST_WHOLE: f64 = (1u64 << 53) as f64;

struct Value(JsValue);

impl Value {
    fn unfit<'de, T>(&self, visitor: impl Visitor<'de>) -> Result<T, Problem> {
        let problem: Problem = de::Error::invalid_type(Unexpected::Other(""), &visitor);
        Err(Problem { found: Some(shown(&self.0)), ..problem })
    }

    fn list(&self) -> Option<Array> {
        (Array::is_array(&self.0) || ArrayBuffer::is_view(&self.0)).then(|| Array::from(&self.0))
    }
}

/// Each kind of value has its one visit, so that no visitor is compiled for the others.
impl<'de> Deserializer<'de> for Value {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.unfit(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.0.as_bool() {
            Some(flag) => visitor.visit_bool(flag),
            None => self.unfit(visitor),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match number(&self.0) {
            Some(whole) if whole.fract() == 0.0 && (0.0..=LARGEST_WHOLE).contains(&whole) => {
                visitor.visit_u64(whole as u64)
            }
            _ => self.unfit(visitor),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match number(&self.0) {
            Some(whole) if whole.fract() == 0.0 && whole.abs() <= LARGEST_WHOLE => visitor.visit_i64(whole as i64),
            _ => self.unfit(visitor),
        }
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match number(&self.0) {
            Some(number) => visitor.visit_f64(number),
            None => self.unfit(visitor),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.0.dyn_ref::<Uint8Array>() {
            Some(bytes) => visitor.visit_byte_buf(bytes.to_vec()),
            None => self.unfit(visitor),
        }
    }

    /// A list, or a typed array of whatever kind.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.list() {
            Some(list) => visitor.visit_seq(Items { list: &list, next: 0 }),
            None => self.unfit(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        match self.0.dyn_ref::<Object>() {
            Some(object) if self.list().is_none() => {
                visitor.visit_map(Entries { entries: Object::entries(object), next: 0 })
            }
            _ => Err(Problem::new(Some(shown(&self.0)), "an object")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        if self.0.is_undefined() || self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    /// A variant is a word, or an object with the one name that says which it is.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        let entries = self.0.dyn_ref::<Object>().map(Object::entries).filter(|entries| entries.length() == 1);
        let (name, content) = match (self.0.as_string(), entries) {
            (Some(name), _) => (name, JsValue::UNDEFINED),
            (None, Some(entries)) => entry(&entries, 0),
            (None, None) => return Err(Problem::new(Some(shown(&self.0)), listed(variants))),
        };
        visitor.visit_enum(Variant { name, content }).map_err(|mut problem| {
            problem.found.get_or_insert_with(|| shown(&self.0));
            problem
        })
    }

    // What no option holds.
    serde::forward_to_deserialize_any! {
        i8 i16 u8 u16 u32 char str string bytes unit unit_struct newtype_struct tuple tuple_struct map identifier ignored_any
    }
}

fn entry(entries: &Array, at: u32) -> (String, JsValue) {
    let pair: Array = entries.get(at).unchecked_into();
    (pair.get(0).as_string().unwrap_or_default(), pair.get(1))
}

struct Items<'a> {
    list: &'a Array,
    next: u32,
}

impl<'de> de::SeqAccess<'de> for Items<'_> {
    type Error = Problem;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Problem> {
        if self.next == self.list.length() {
            return Ok(None);
        }
        let (at, value) = (self.next.to_string(), self.list.get(self.next));
        self.next += 1;
        seed.deserialize(Value(value.clone())).map(Some).map_err(|problem| problem.within(at, &value))
    }
}

struct Entries {
    entries: Array,
    next: u32,
}

impl<'de> de::MapAccess<'de> for Entries {
    type Error = Problem;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Problem> {
        if self.next == self.entries.length() {
            return Ok(None);
        }
        seed.deserialize(entry(&self.entries, self.next).0.into_deserializer()).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Problem> {
        let (name, value) = entry(&self.entries, self.next);
        self.next += 1;
        seed.deserialize(Value(value.clone())).map_err(|problem| problem.within(name, &value))
    }
}

struct Variant {
    name: String,
    content: JsValue,
}

impl<'de> de::EnumAccess<'de> for Variant {
    type Error = Problem;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Problem> {
        Ok((seed.deserialize(self.name.clone().into_deserializer())?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant {
    type Error = Problem;

    fn unit_variant(self) -> Result<(), Problem> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Problem> {
        seed.deserialize(Value(self.content.clone())).map_err(|problem| problem.within(self.name, &self.content))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Problem> {
        self.struct_variant(&[], visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Problem> {
        let content = Value(self.content.clone());
        content.deserialize_struct("", &[], visitor).map_err(|problem| problem.within(self.name, &self.content))
    }
}
