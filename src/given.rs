//! Options, masks and words as another language gives them, read into the engine's types. A value that does not fit is
//! `invalid_option` with its place, what was found and what was expected.
//!
//! Not by serde, whose code for the same was a fifth of the engine's WebAssembly.

use crate::error::{AttnError, Result};

/// A value of another language.
pub trait Given: Sized {
    /// Whether there is none.
    fn is_absent(&self) -> bool;
    /// As true or false.
    fn flag(&self) -> Option<bool>;
    /// As a number.
    fn number(&self) -> Option<f64>;
    /// As a word.
    fn text(&self) -> Option<String>;
    /// As bytes.
    fn bytes(&self) -> Option<Vec<u8>>;
    /// As a list.
    fn items(&self) -> Option<Vec<Self>>;
    /// As an object, by name.
    fn entries(&self) -> Option<Vec<(String, Self)>>;
    /// As a message has it.
    fn shown(&self) -> String;
}

/// What is read from a [`Given`].
pub trait Read: Sized {
    /// # Errors
    /// A [`Misfit`] where the value is no such thing.
    fn read<G: Given>(given: &G) -> Fit<Self>;

    /// Whether a field of this type may be missing; then it stays as it is.
    const MAY_BE_MISSING: bool = false;
}

/// A place for what is read, whatever its type.
pub(crate) trait Field<G> {
    fn set(&mut self, given: &G) -> Fit<()>;
    fn may_be_missing(&self) -> bool;
}

impl<G: Given, T: Read> Field<G> for T {
    fn set(&mut self, given: &G) -> Fit<()> {
        *self = T::read(given)?;
        Ok(())
    }

    fn may_be_missing(&self) -> bool {
        T::MAY_BE_MISSING
    }
}

/// What fits, or else what did not.
pub type Fit<T> = std::result::Result<T, Box<Misfit>>;

/// A value that does not fit.
#[derive(Debug)]
pub struct Misfit {
    /// From the outermost name or index to the value, such as `headMask[1]`.
    place: String,
    found: String,
    expected: String,
}

impl Misfit {
    fn new(given: &impl Given, expected: &str) -> Box<Self> {
        Box::new(Self { place: String::new(), found: given.shown(), expected: expected.into() })
    }

    /// Seen from one level further out.
    pub(crate) fn within(mut self: Box<Self>, step: &str) -> Box<Self> {
        let dot = if self.place.is_empty() || self.place.starts_with('[') { "" } else { "." };
        self.place = [step, dot, &self.place].concat();
        self
    }

    fn error_of_options(mut self, also: &[&str]) -> Box<AttnError> {
        if self.found == UNKNOWN {
            also.iter().for_each(|name| self.expected.extend([", ", name]));
        }
        self.error("options")
    }

    fn error(self, outermost: &str) -> Box<AttnError> {
        let option = if self.place.is_empty() { outermost.into() } else { self.place };
        Box::new(AttnError::InvalidOption { option, found: self.found, expected: self.expected })
    }
}

/// What a whole argument is; `outermost` names it in a message.
///
/// # Errors
/// `invalid_option` where the value does not fit.
pub fn read<T: Read>(given: &impl Given, outermost: &str) -> Result<T> {
    T::read(given).map_err(|misfit| misfit.error(outermost))
}

/// An options object. `also` are options that others read, for the message alone.
///
/// # Errors
/// `invalid_option` where the value does not fit.
pub fn read_options<T: Read>(given: &impl Given, also: &[&str]) -> Result<T> {
    T::read(given).map_err(|misfit| misfit.error_of_options(also))
}

const UNKNOWN: &str = "an unknown option";

fn listed(names: &[String]) -> String {
    ["one of ", &names.join(", ")].concat()
}

fn whole(given: &impl Given, expected: &str) -> Fit<i64> {
    /// The largest that JavaScript's numbers count to.
    const LARGEST: f64 = (1u64 << 53) as f64;
    match given.number() {
        Some(number) if number.fract() == 0.0 && number.abs() <= LARGEST => Ok(number as i64),
        _ => Err(Misfit::new(given, expected)),
    }
}

impl Read for i64 {
    fn read<G: Given>(given: &G) -> Fit<Self> {
        whole(given, "a whole number")
    }
}

impl Read for i32 {
    fn read<G: Given>(given: &G) -> Fit<Self> {
        let expected = "a whole number from -2^31 to 2^31 - 1";
        whole(given, expected)?.try_into().map_err(|_| Misfit::new(given, expected))
    }
}

impl Read for usize {
    fn read<G: Given>(given: &G) -> Fit<Self> {
        match whole(given, "a whole number of at least 0")? {
            ..0 => Err(Misfit::new(given, "a whole number of at least 0")),
            number => number.try_into().map_err(|_| Misfit::new(given, "a whole number below 2^32")),
        }
    }
}

impl Read for f64 {
    fn read<G: Given>(given: &G) -> Fit<Self> {
        given.number().ok_or_else(|| Misfit::new(given, "a number"))
    }
}

impl Read for f32 {
    fn read<G: Given>(given: &G) -> Fit<Self> {
        let number = f64::read(given)?;
        let nearest = number as f32;
        let is_beyond = number.is_finite() && (nearest.is_infinite() || (nearest == 0.0 && number != 0.0));
        if is_beyond { Err(Misfit::new(given, "a number that float32 holds")) } else { Ok(nearest) }
    }
}

impl Read for bool {
    fn read<G: Given>(given: &G) -> Fit<Self> {
        given.flag().ok_or_else(|| Misfit::new(given, "a boolean"))
    }
}

impl Read for Vec<u8> {
    fn read<G: Given>(given: &G) -> Fit<Self> {
        given.bytes().ok_or_else(|| Misfit::new(given, "bytes"))
    }
}

impl<T: Read> Read for Vec<T> {
    fn read<G: Given>(given: &G) -> Fit<Self> {
        let mut list = Self::new();
        read_items(given, &mut |item| T::read(item).map(|item| list.push(item)))?;
        Ok(list)
    }
}

/// The same code for lists of any type.
fn read_items<G: Given>(given: &G, read: &mut dyn FnMut(&G) -> Fit<()>) -> Fit<()> {
    let items = given.items().ok_or_else(|| Misfit::new(given, "a list"))?;
    items.iter().enumerate().try_for_each(|(at, item)| read(item).map_err(|misfit| misfit.within(&format!("[{at}]"))))
}

impl<T: Read> Read for Box<T> {
    fn read<G: Given>(given: &G) -> Fit<Self> {
        T::read(given).map(Self::new)
    }
}

impl<T: Read> Read for Option<T> {
    fn read<G: Given>(given: &G) -> Fit<Self> {
        if given.is_absent() { Ok(None) } else { T::read(given).map(Some) }
    }

    const MAY_BE_MISSING: bool = true;
}

/// The fields of an object. Their names are the Rust fields', in JavaScript's spelling.
pub(crate) struct Fields<G>(Vec<(String, G)>);

impl<G: Given> Fields<G> {
    /// Refuses what is no object, and a name that is none of `names`.
    pub fn of(given: &G, names: &[&str]) -> Fit<Self> {
        let entries = given.entries().ok_or_else(|| Misfit::new(given, "an object"))?;
        let is_known = |given: &String| names.iter().any(|name| is_camel_case(given, name));
        match entries.iter().find(|(name, _)| !is_known(name)) {
            Some((name, _)) => {
                let names: Vec<String> = names.iter().map(|name| camel_case(name)).collect();
                Err(Box::new(Misfit { place: name.clone(), found: UNKNOWN.into(), expected: listed(&names) }))
            }
            None => Ok(Self(entries)),
        }
    }

    /// Reads what is given into the fields of these names. The first of them are needed, the others stay as they are where they are
    /// not given.
    pub fn fill(&self, names: &[&str], needed: usize, fields: &mut [&mut dyn Field<G>]) -> Fit<()> {
        // Most passes are given no options.
        let most = if self.0.is_empty() { needed } else { names.len() };
        for (at, (name, field)) in names.iter().zip(fields).take(most).enumerate() {
            match self.0.iter().find(|(given, _)| is_camel_case(given, name)) {
                Some((given, value)) => field.set(value).map_err(|misfit| misfit.within(given))?,
                None if at >= needed || field.may_be_missing() => {}
                None => {
                    return Err(Box::new(Misfit {
                        place: camel_case(name),
                        found: "undefined".into(),
                        expected: "a value".into(),
                    }));
                }
            }
        }
        Ok(())
    }
}

/// Which variant, and its content: it is a word, or an object with the one name that says which it is.
pub(crate) fn variant<G: Given>(given: &G, names: &[&str], spell: fn(&str) -> String) -> Fit<(usize, Option<G>)> {
    let names: Vec<String> = names.iter().map(|name| spell(name)).collect();
    let named = match (given.text(), given.entries().map(<[_; 1]>::try_from)) {
        (Some(name), _) => Some((name, None)),
        (None, Some(Ok([(name, content)]))) => Some((name, Some(content))),
        _ => None,
    };
    named
        .and_then(|(name, content)| Some((names.iter().position(|known| *known == name)?, content)))
        .ok_or_else(|| Misfit::new(given, &listed(&names)))
}

/// The fields of a variant: none are looked for where it has none.
pub(crate) fn fields_of<G: Given>(content: Option<G>, names: &[&str]) -> Fit<Fields<G>> {
    match content {
        _ if names.is_empty() => Ok(Fields(vec![])),
        Some(content) => Fields::of(&content, names),
        None => Err(Box::new(Misfit { place: String::new(), found: "undefined".into(), expected: "an object".into() })),
    }
}

/// `d_model` as `dModel`, `SlidingWindow` as `slidingWindow`.
pub(crate) fn camel_case(name: &str) -> String {
    camel_case_letters(name).collect()
}

fn is_camel_case(spelt: &str, name: &str) -> bool {
    camel_case_letters(name).eq(spelt.chars())
}

fn camel_case_letters(name: &str) -> impl Iterator<Item = char> {
    let mut before = None;
    name.chars().filter_map(move |letter| {
        let spelt = match before {
            None => letter.to_ascii_lowercase(),
            Some('_') => letter.to_ascii_uppercase(),
            Some(_) => letter,
        };
        before = Some(letter);
        (letter != '_').then_some(spelt)
    })
}

/// `GeluTanh` as `gelu_tanh`.
pub(crate) fn snake_case(name: &str) -> String {
    let mut spelt = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !spelt.is_empty() {
            spelt.push('_');
        }
        spelt.push(letter.to_ascii_lowercase());
    }
    spelt
}

/// Reads an options object, into one with its defaults; the first fields must be given.
macro_rules! read_fields {
    ($type:ident::$new:ident($($needed:ident),*): $($field:ident),*) => {
        impl $crate::given::Read for $type {
            fn read<G: $crate::given::Given>(given: &G) -> $crate::given::Fit<Self> {
                const NEEDED: &[&str] = &[$(stringify!($needed)),*];
                const NAMES: &[&str] = &[$(stringify!($needed),)* $(stringify!($field)),*];
                let fields = $crate::given::Fields::of(given, NAMES)?;
                $(let $needed = Default::default();)*
                let mut read = Self::$new($($needed),*);
                // Without `..`: a field that is not listed does not compile.
                let Self { $($needed,)* $($field),* } = &mut read;
                fields.fill(NAMES, NEEDED.len(), &mut [$($needed,)* $($field),*])?;
                Ok(read)
            }
        }
    };
}

/// Reads one word of a few, and gives it.
macro_rules! words {
    ($type:ident: $($variant:ident),*) => {
        $crate::given::words!($type, $crate::given::snake_case, $($variant stringify!($variant)),*);
    };
    ($type:ident, $spell:expr, $($variant:ident $name:expr),*) => {
        impl $crate::given::Read for $type {
            fn read<G: $crate::given::Given>(given: &G) -> $crate::given::Fit<Self> {
                const NAMES: &[&str] = &[$($name),*];
                const VARIANTS: &[$type] = &[$($type::$variant),*];
                let (at, _) = $crate::given::variant(given, NAMES, $spell)?;
                Ok(VARIANTS[at])
            }
        }

        impl From<$type> for $crate::plain::Plain {
            fn from(value: $type) -> Self {
                $spell(match value { $($type::$variant => $name),* }).into()
            }
        }
    };
}

/// Reads one variant of a few, each with its fields.
macro_rules! read_variants {
    ($type:ident: $($variant:ident { $($field:ident),* }),*) => {
        impl $crate::given::Read for $type {
            fn read<G: $crate::given::Given>(given: &G) -> $crate::given::Fit<Self> {
                #[derive(Clone, Copy)]
                enum Kind { $($variant),* }
                const NAMES: &[&str] = &[$(stringify!($variant)),*];
                const KINDS: &[Kind] = &[$(Kind::$variant),*];
                let (at, content) = $crate::given::variant(given, NAMES, $crate::given::camel_case)?;
                const FIELDS: &[&[&str]] = &[$(&[$(stringify!($field)),*]),*];
                let mut read = match KINDS[at] {
                    $(Kind::$variant => Self::$variant { $($field: Default::default()),* },)*
                };
                let fields: &mut [&mut dyn $crate::given::Field<G>] = match &mut read {
                    $(Self::$variant { $($field),* } => &mut [$($field),*],)*
                };
                $crate::given::fields_of(content, FIELDS[at])
                    .and_then(|given| given.fill(FIELDS[at], fields.len(), fields))
                    .map_err(|misfit| misfit.within(&$crate::given::camel_case(NAMES[at])))?;
                Ok(read)
            }
        }
    };
}

pub(crate) use {read_fields, read_variants, words};
