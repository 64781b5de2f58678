//! Files of tensors: bytes in, tensors or a located error out, and back.
//!
//! Every number type becomes float32. A tensor without axes gets one of length 1; one that holds no numbers is left out.

mod element;
mod json;
mod nested;
mod npy;
mod npz;
mod pickle;
mod safetensors;
mod scan;
mod source;
mod table;
mod text;
mod torch;
mod zip;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use attnscope::{AttnError, Result, Tensor};

use scan::Quoted;
use source::{Budget, Source};

type Fault = Box<AttnError>;

/// A tensor and its name in the file.
type Named = (String, Tensor);

/// Where what is named stands in a list.
type Names<'a> = BTreeMap<&'a str, usize>;

/// The name of a tensor in a file that gives it none.
const BARE_NAME: &str = "tensor";

/// Where a fault lies; lines and columns count from 1.
enum Place {
    Byte(u64),
    Text { line: usize, column: usize },
}

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "FileFormat", rename_all = "lowercase"))]
pub enum Format {
    /// [safetensors](https://huggingface.co/docs/safetensors/index#format)
    Safetensors,
    /// One NumPy array, as [`numpy.save`](https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html) writes it.
    Npy,
    /// NumPy arrays by name, as `numpy.savez` and `numpy.savez_compressed` write them.
    Npz,
    /// What [`torch.save`](https://docs.pytorch.org/docs/stable/notes/serialization.html) writes, today's format and the older.
    /// Read only.
    #[cfg_attr(feature = "typescript", ts(rename = "pt"))]
    Torch,
    /// A matrix as [comma-separated](https://www.rfc-editor.org/rfc/rfc4180) numbers; read with semicolons too.
    Csv,
    /// A matrix as tab-separated numbers. Read only.
    Tsv,
    /// Nested arrays, alone or by name.
    Json,
    /// What NumPy and PyTorch print, with a prompt or a name in front or without. Read only.
    Text,
}

const FORMATS: [(&str, Format); 9] = [
    ("safetensors", Format::Safetensors),
    ("npy", Format::Npy),
    ("npz", Format::Npz),
    ("pt", Format::Torch),
    ("pth", Format::Torch),
    ("csv", Format::Csv),
    ("tsv", Format::Tsv),
    ("json", Format::Json),
    ("text", Format::Text),
];

impl FromStr for Format {
    type Err = Fault;

    /// # Errors
    /// `invalid_option` for a name that no format has.
    fn from_str(name: &str) -> Result<Self> {
        let known = FORMATS.iter().find(|(known, _)| *known == name);
        known
            .map(|(_, format)| *format)
            .ok_or_else(|| option(Quoted(name), "safetensors, npy, npz, pt, csv, tsv, json or text"))
    }
}

fn option(format: impl Display, expected: &str) -> Fault {
    Box::new(AttnError::InvalidOption { option: "format".into(), found: format.to_string(), expected: expected.into() })
}

impl Format {
    /// The format's name, such as `"safetensors"`.
    pub fn name(self) -> &'static str {
        FORMATS.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    #[cold]
    fn bad(self, place: Place, found: &dyn Display, expected: &dyn Display) -> Fault {
        let (offset, line, column) = match place {
            Place::Byte(offset) => (Some(offset), None, None),
            Place::Text { line, column } => (None, Some(line), Some(column)),
        };
        let (found, expected) = (found.to_string(), expected.to_string());
        Box::new(AttnError::BadFile { format: self.name().into(), offset, line, column, found, expected })
    }

    /// What is wrong with the whole of a file lies at its start.
    fn bad_whole(self, found: &dyn Display, expected: &dyn Display) -> Fault {
        let place = match self {
            Self::Safetensors | Self::Npy | Self::Npz | Self::Torch => Place::Byte(0),
            Self::Csv | Self::Tsv | Self::Json | Self::Text => Place::Text { line: 1, column: 1 },
        };
        self.bad(place, found, expected)
    }

    /// The format that bytes look like, by what they start with. A zip archive may yet be PyTorch's.
    fn of(bytes: &[u8]) -> Self {
        if zip::is_archive(bytes) {
            return if torch::is_archive(bytes) { Self::Torch } else { Self::Npz };
        }
        if bytes.starts_with(npy::MAGIC) {
            return Self::Npy;
        }
        // A length in eight bytes, the highest of them zero, then a JSON object. Before pickles, as which some lengths begin.
        if bytes.get(7..9) == Some(b"\0{") {
            return Self::Safetensors;
        }
        if let [0x80, 2..=5, ..] = bytes {
            return Self::Torch;
        }
        Self::of_text(&String::from_utf8_lossy(bytes))
    }

    fn of_text(text: &str) -> Self {
        let text = text.trim_start_matches('\u{feff}').trim_ascii_start();
        let line = text.lines().next().unwrap_or_default();
        // Not the first cell of a table, as the token [CLS] is.
        let is_json = text.starts_with(['{', '[']) && {
            let inner = text[1..].trim_ascii_start();
            inner.starts_with(['[', '{', ']', '}', '"', '\'']) || text::is_row(text)
        };
        if is_json && (text.starts_with('{') || text.contains(',')) {
            Self::Json
        } else if text::start(text).is_some() {
            Self::Text
        } else if line.contains('\t') {
            Self::Tsv
        } else if line.contains([',', ';']) {
            Self::Csv
        } else {
            Self::Text
        }
    }
}

/// Tensors of a file by name, in the file's order. The format is found from the bytes where none is given.
///
/// In nested dicts, lists and objects a name is the way to the tensor, keys and positions between dots; a tensor alone is
/// called `"tensor"`. What is no tensor (an epoch, a list of tokens, a table's labels) is left out. A pickle can run nothing.
///
/// # Errors
/// `bad_file` with the place of what is wrong: the byte, or line and column (in tables the column counts cells), or the path in
/// nested arrays. `too_large` where the tensors and what is inflated for them need more than `max_bytes`; sizes are checked
/// before anything is allocated.
pub fn read_tensors(bytes: &[u8], format: Option<Format>, max_bytes: usize) -> Result<Vec<(String, Tensor)>> {
    let mut budget = Budget::new(max_bytes);
    let mut format = format.unwrap_or_else(|| Format::of(bytes));
    let source = Source::new(format, bytes);
    if bytes.is_empty() {
        return Err(source.bad(0, &"no bytes", &"a file"));
    }
    let alone = |tensor: Option<Tensor>| tensor.map(|tensor| (BARE_NAME.to_string(), tensor)).into_iter().collect();
    let tensors = match format {
        Format::Safetensors => safetensors::read(source, &mut budget)?,
        Format::Npy => alone(npy::read(source, &mut budget)?),
        Format::Torch if !zip::is_archive(bytes) => torch::read_legacy(source, &mut budget)?,
        Format::Npz | Format::Torch => {
            let zip = zip::Zip::open(source, &mut budget)?;
            if format == Format::Torch || torch::pickle_name(&zip).is_some() {
                format = Format::Torch;
                torch::read_zip(Source::new(format, bytes), &zip, &mut budget)?
            } else {
                npz::read(&zip, &mut budget)?
            }
        }
        Format::Csv | Format::Tsv => alone(table::read(source, &mut budget)?),
        Format::Json => json::read(source, &mut budget)?,
        Format::Text => alone(text::read(source, &mut budget)?),
    };
    if tensors.is_empty() {
        return Err(format.bad_whole(&"no tensor", &"at least one that holds numbers"));
    }
    let mut names = Names::new();
    if let Some((name, _)) = tensors.iter().find(|(name, _)| names.insert(name, 0).is_some()) {
        let found = format_args!("two tensors named {}", Quoted(name));
        return Err(format.bad_whole(&found, &"names that differ"));
    }
    Ok(tensors)
}

/// A file of tensors: safetensors, npz and json hold any number, npy one, csv one matrix.
///
/// # Errors
/// `invalid_option` for a format that is only read, or that does not hold as many tensors; `shape_mismatch` for a table of what
/// is no matrix; `invalid_tensor` for a name given twice, or one that the format cannot hold.
pub fn write_tensors(tensors: &[(String, Tensor)], format: Format) -> Result<Vec<u8>> {
    let mut names = Names::new();
    for (name, _) in tensors {
        let is_taken = names.insert(name, 0).is_some();
        let (found, expected) = match format {
            _ if is_taken => ("a name that is taken", "names that differ"),
            Format::Npz if name.len() >= zip::LONGEST_NAME => {
                ("a longer name", "a name of less than 65000 bytes in npz")
            }
            Format::Safetensors if name == safetensors::METADATA => ("a name that safetensors keeps", "another name"),
            _ => continue,
        };
        let (found, expected) = (found.into(), expected.into());
        return Err(Box::new(AttnError::InvalidTensor { argument: name.clone(), found, expected }));
    }
    let one = || match tensors {
        [(name, tensor)] => Ok((name, tensor)),
        _ => Err(option(format.name(), "npz, json or safetensors for other than one tensor")),
    };
    match format {
        Format::Safetensors => Ok(safetensors::write(tensors)),
        Format::Npy => Ok(npy::write(one()?.1)),
        Format::Npz if tensors.len() <= zip::MOST_MEMBERS => Ok(npz::write(tensors)),
        Format::Npz => Err(option("npz", "safetensors or json for more than 65000 tensors")),
        Format::Csv => match one()? {
            (_, matrix) if matrix.shape.len() == 2 => Ok(table::write(matrix)),
            (name, other) => Err(Box::new(AttnError::ShapeMismatch {
                argument: name.clone(),
                found: other.shape.clone(),
                expected: "a matrix of two axes".into(),
            })),
        },
        Format::Json => Ok(json::write(tensors)),
        _ => Err(option(format.name(), "safetensors, npy, npz, csv or json")),
    }
}

/// A tensor of the numbers read; None where there are none.
fn tensor(data: Vec<f32>, shape: &[u64]) -> Option<Tensor> {
    let shape = if shape.is_empty() { vec![1] } else { shape.iter().map(|&axis| axis as usize).collect() };
    Tensor::new(data, shape).ok()
}
