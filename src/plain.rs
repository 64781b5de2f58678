//! What crosses into another language beside tensors: errors, explanations, labels, as plain values.

/// A value of any language.
#[derive(Debug, Clone, PartialEq)]
pub enum Plain {
    /// None.
    Null,
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Plain>),
    /// An object, its fields by name.
    Object(Vec<(&'static str, Plain)>),
}

impl From<f64> for Plain {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<f32> for Plain {
    fn from(number: f32) -> Self {
        Self::Number(number.into())
    }
}

impl From<usize> for Plain {
    fn from(number: usize) -> Self {
        Self::Number(number as f64)
    }
}

/// JavaScript's whole numbers end at 2^53; beyond, the nearest one says enough.
impl From<u64> for Plain {
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

impl From<String> for Plain {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<Plain>> From<Vec<T>> for Plain {
    fn from(list: Vec<T>) -> Self {
        Self::List(list.into_iter().map(T::into).collect())
    }
}

impl<T: Into<Plain>> From<Option<T>> for Plain {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, T::into)
    }
}
