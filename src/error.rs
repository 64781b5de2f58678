//! What can go wrong, each with a stable code and the details a program needs.

/// The engine's result. The error is kept small behind a pointer, for it is handed on at almost every step.
pub type Result<T> = std::result::Result<T, Box<AttnError>>;

use std::fmt::{Display, Formatter};

use crate::plain::Plain;
use crate::text::Listed;

/// The stable name of an error. Some are raised only by the JavaScript side; all are named here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "snake_case"))]
#[allow(missing_docs)]
pub enum ErrorCode {
    InvalidTensor,
    ShapeMismatch,
    NotDivisible,
    InvalidOption,
    MaskShape,
    NoSuchStage,
    TooLarge,
    BadStateDict,
    BadFile,
    NoEngine,
    Disposed,
    EngineCrashed,
    GpuUnavailable,
    GpuLost,
}

impl ErrorCode {
    /// The code as JavaScript sees it, such as `"not_divisible"`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidTensor => "invalid_tensor",
            Self::ShapeMismatch => "shape_mismatch",
            Self::NotDivisible => "not_divisible",
            Self::InvalidOption => "invalid_option",
            Self::MaskShape => "mask_shape",
            Self::NoSuchStage => "no_such_stage",
            Self::TooLarge => "too_large",
            Self::BadStateDict => "bad_state_dict",
            Self::BadFile => "bad_file",
            Self::NoEngine => "no_engine",
            Self::Disposed => "disposed",
            Self::EngineCrashed => "engine_crashed",
            Self::GpuUnavailable => "gpu_unavailable",
            Self::GpuLost => "gpu_lost",
        }
    }
}

impl Display for ErrorCode {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Every refusal of the engine. The message names the argument, what was found and what was expected;
/// as a plain value, an error is its details.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum AttnError {
    InvalidTensor {
        argument: String,
        found: String,
        expected: String,
    },
    ShapeMismatch {
        argument: String,
        found: Vec<usize>,
        expected: String,
    },
    NotDivisible {
        d_model: usize,
        n_heads: usize,
    },
    InvalidOption {
        option: String,
        found: String,
        expected: String,
    },
    MaskShape {
        mask: Vec<usize>,
        scores: Vec<usize>,
        expected: String,
    },
    NoSuchStage {
        stage: String,
        layer: usize,
        available: Vec<String>,
    },
    TooLarge {
        needed: u64,
        max_bytes: u64,
    },
    BadStateDict {
        entry: String,
        found: String,
        expected: String,
    },
    BadFile {
        format: String,
        offset: Option<u64>,
        line: Option<usize>,
        column: Option<usize>,
        found: String,
        expected: String,
    },
}

impl std::error::Error for AttnError {}

/// What an error knows, by name.
type Details<'a> = [(&'static str, Detail<'a>)];

enum Detail<'a> {
    Text(&'a str),
    Texts(&'a [String]),
    Number(u64),
    Sizes(&'a [usize]),
    /// A part of a place in a file, and what messages call it.
    Place(&'static str, Option<u64>),
}

use Detail::{Number, Place, Sizes, Text, Texts};

impl AttnError {
    /// Hands over the message, with details where their names stand in braces, and the details.
    fn told(&self, tell: &mut dyn FnMut(&str, &Details)) {
        match self {
            Self::InvalidTensor { argument, found, expected } => tell(
                "{argument}: found {found}, expected {expected}",
                &[("argument", Text(argument)), ("found", Text(found)), ("expected", Text(expected))],
            ),
            Self::ShapeMismatch { argument, found, expected } => tell(
                "{argument}: found shape {found}, expected {expected}",
                &[("argument", Text(argument)), ("found", Sizes(found)), ("expected", Text(expected))],
            ),
            Self::NotDivisible { d_model, n_heads } => tell(
                "dModel {dModel} is not divisible by nHeads {nHeads}; choose sizes that divide, or give dK and dV",
                &[("dModel", Number(*d_model as u64)), ("nHeads", Number(*n_heads as u64))],
            ),
            Self::InvalidOption { option, found, expected } => tell(
                "option {option}: found {found}, expected {expected}",
                &[("option", Text(option)), ("found", Text(found)), ("expected", Text(expected))],
            ),
            Self::MaskShape { mask, scores, expected } => tell(
                "the mask of shape {mask} does not fit scores of shape {scores}; expected {expected}",
                &[("mask", Sizes(mask)), ("scores", Sizes(scores)), ("expected", Text(expected))],
            ),
            Self::NoSuchStage { stage, layer, available } => tell(
                "stage {stage} of layer {layer} was not kept; available: {available}",
                &[("stage", Text(stage)), ("layer", Number(*layer as u64)), ("available", Texts(available))],
            ),
            Self::TooLarge { needed, max_bytes } => tell(
                "the call needs {needed} bytes, more than maxBytes {maxBytes}",
                &[("needed", Number(*needed)), ("maxBytes", Number(*max_bytes))],
            ),
            Self::BadStateDict { entry, found, expected } => tell(
                "state dict entry {entry}: found {found}, expected {expected}",
                &[("entry", Text(entry)), ("found", Text(found)), ("expected", Text(expected))],
            ),
            Self::BadFile { format, offset, line, column, found, expected } => tell(
                "{format} file{offset}{line}{column}: found {found}, expected {expected}",
                &[
                    ("format", Text(format)),
                    ("offset", Place("byte", *offset)),
                    ("line", Place("line", line.map(|line| line as u64))),
                    ("column", Place("column", column.map(|column| column as u64))),
                    ("found", Text(found)),
                    ("expected", Text(expected)),
                ],
            ),
        }
    }
}

impl Display for AttnError {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let mut told = String::new();
        self.told(&mut |message, details| {
            for (at, part) in message.split(['{', '}']).enumerate() {
                match details.iter().find(|(name, _)| at % 2 == 1 && *name == part) {
                    Some((_, detail)) => told.push_str(&detail.text()),
                    None => told.push_str(part),
                }
            }
        });
        f.write_str(&told)
    }
}

impl From<AttnError> for Plain {
    fn from(error: AttnError) -> Self {
        let mut plain = Vec::new();
        error.told(&mut |_, details| {
            plain.extend(details.iter().filter_map(|(name, detail)| Some((*name, detail.plain()?))))
        });
        Self::Object(plain)
    }
}

impl Detail<'_> {
    fn text(&self) -> String {
        match *self {
            Text(text) => text.into(),
            Texts(texts) => texts.join(", "),
            Number(number) => number.to_string(),
            Sizes(sizes) => Listed(sizes).to_string(),
            Place(name, at) => at.map_or_else(String::new, |at| [", ", name, " ", &at.to_string()].concat()),
        }
    }

    /// None for what is not known.
    fn plain(&self) -> Option<Plain> {
        match *self {
            Text(text) => Some(Plain::Text(text.into())),
            Texts(texts) => Some(texts.to_vec().into()),
            Number(number) => Some(number.into()),
            Sizes(sizes) => Some(sizes.to_vec().into()),
            Place(_, at) => at.map(Plain::from),
        }
    }
}

impl AttnError {
    /// The stable code of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::InvalidTensor { .. } => ErrorCode::InvalidTensor,
            Self::ShapeMismatch { .. } => ErrorCode::ShapeMismatch,
            Self::NotDivisible { .. } => ErrorCode::NotDivisible,
            Self::InvalidOption { .. } => ErrorCode::InvalidOption,
            Self::MaskShape { .. } => ErrorCode::MaskShape,
            Self::NoSuchStage { .. } => ErrorCode::NoSuchStage,
            Self::TooLarge { .. } => ErrorCode::TooLarge,
            Self::BadStateDict { .. } => ErrorCode::BadStateDict,
            Self::BadFile { .. } => ErrorCode::BadFile,
        }
    }

    #[cold]
    pub(crate) fn option(option: &str, found: impl Display, expected: &str) -> Box<Self> {
        fn of(option: &str, found: &dyn Display, expected: &str) -> Box<AttnError> {
            Box::new(AttnError::InvalidOption {
                option: option.into(),
                found: found.to_string(),
                expected: expected.into(),
            })
        }
        of(option, &found, expected)
    }

    #[cold]
    pub(crate) fn shape(argument: &str, found: &[usize], expected: impl Into<String>) -> Box<Self> {
        Box::new(Self::ShapeMismatch { argument: argument.into(), found: found.to_vec(), expected: expected.into() })
    }

    #[cold]
    pub(crate) fn too_large(needed: u64, max_bytes: usize) -> Box<Self> {
        Box::new(Self::TooLarge { needed, max_bytes: max_bytes as u64 })
    }
}
