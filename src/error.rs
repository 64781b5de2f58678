//! What can go wrong, each with a stable code and the details a program needs.

/// The engine's result. The error is kept small behind a pointer, for it is handed on at almost every step.
pub type Result<T> = std::result::Result<T, Box<AttnError>>;

use std::fmt::Display;

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
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Every refusal of the engine. The message names the argument, what was found and what was expected;
/// as a plain value, an error is its details.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum AttnError {
    #[error("{argument}: found {found}, expected {expected}")]
    InvalidTensor { argument: String, found: String, expected: String },
    #[error("{argument}: found shape {}, expected {expected}", Listed(found))]
    ShapeMismatch { argument: String, found: Vec<usize>, expected: String },
    #[error("dModel {d_model} is not divisible by nHeads {n_heads}; choose sizes that divide, or give dK and dV")]
    NotDivisible { d_model: usize, n_heads: usize },
    #[error("option {option}: found {found}, expected {expected}")]
    InvalidOption { option: String, found: String, expected: String },
    #[error("the mask of shape {} does not fit scores of shape {}; expected {expected}", Listed(mask), Listed(scores))]
    MaskShape { mask: Vec<usize>, scores: Vec<usize>, expected: String },
    #[error("stage {stage} of layer {layer} was not kept; available: {}", available.join(", "))]
    NoSuchStage { stage: String, layer: usize, available: Vec<String> },
    #[error("the call needs {needed} bytes, more than maxBytes {max_bytes}")]
    TooLarge { needed: u64, max_bytes: u64 },
    #[error("state dict entry {entry}: found {found}, expected {expected}")]
    BadStateDict { entry: String, found: String, expected: String },
    #[error("{format} file{}: found {found}, expected {expected}", place(*offset, *line, *column))]
    BadFile {
        format: String,
        offset: Option<u64>,
        line: Option<usize>,
        column: Option<usize>,
        found: String,
        expected: String,
    },
}

fn place(offset: Option<u64>, line: Option<usize>, column: Option<usize>) -> String {
    let mut place = String::new();
    for (name, at) in [("byte", offset), ("line", line.map(|at| at as u64)), ("column", column.map(|at| at as u64))] {
        if let Some(at) = at {
            place.extend([", ", name, " ", &at.to_string()]);
        }
    }
    place
}

impl From<AttnError> for Plain {
    fn from(error: AttnError) -> Self {
        use AttnError::*;
        let mut details = Details(Vec::new());
        match &error {
            InvalidTensor { argument, found, expected } => {
                details.texts(["argument", "found"], [argument, found], expected)
            }
            ShapeMismatch { argument, found, expected } => {
                details.text("argument", argument);
                details.sizes("found", found);
                details.text("expected", expected);
            }
            InvalidOption { option, found, expected } => details.texts(["option", "found"], [option, found], expected),
            MaskShape { mask, scores, expected } => {
                details.sizes("mask", mask);
                details.sizes("scores", scores);
                details.text("expected", expected);
            }
            BadStateDict { entry, found, expected } => details.texts(["entry", "found"], [entry, found], expected),
            BadFile { format, offset, line, column, found, expected } => {
                details.text("format", format);
                let [line, column] = [line, column].map(|at| at.map(|at| at as u64));
                for (name, at) in [("offset", *offset), ("line", line), ("column", column)] {
                    if let Some(at) = at {
                        details.number(name, at);
                    }
                }
                details.text("found", found);
                details.text("expected", expected);
            }
            NotDivisible { d_model, n_heads } => {
                details.number("dModel", *d_model as u64);
                details.number("nHeads", *n_heads as u64);
            }
            NoSuchStage { stage, layer, available } => {
                details.text("stage", stage);
                details.number("layer", *layer as u64);
                details.0.push(("available", available.clone().into()));
            }
            TooLarge { needed, max_bytes } => {
                details.number("needed", *needed);
                details.number("maxBytes", *max_bytes);
            }
        }
        Self::Object(details.0)
    }
}

struct Details(Vec<(&'static str, Plain)>);

impl Details {
    fn text(&mut self, name: &'static str, text: &str) {
        self.0.push((name, Plain::Text(text.into())));
    }

    fn texts(&mut self, names: [&'static str; 2], texts: [&str; 2], expected: &str) {
        self.text(names[0], texts[0]);
        self.text(names[1], texts[1]);
        self.text("expected", expected);
    }

    fn number(&mut self, name: &'static str, number: u64) {
        self.0.push((name, number.into()));
    }

    fn sizes(&mut self, name: &'static str, sizes: &[usize]) {
        self.0.push((name, sizes.to_vec().into()));
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
