//! JSON: a nested array, or an object of arrays or of `{"shape": ..., "data": ...}` by name, as tensors of this package are written too.
//! Source: RFC 8259; NaN and Infinity also as Python's `json` and as this package write them

use attnscope::Tensor;

use crate::element::count;
use crate::nested::{Between, Numbers, read as numbers};
use crate::scan::{Scanner, number};
use crate::source::{Budget, Source};
use crate::{BARE_NAME, Named, Result, tensor};

const MAX_DEPTH: usize = 64;

pub(crate) fn read(source: Source<'_>, budget: &mut Budget) -> Result<Vec<Named>> {
    let mut scanner = Scanner::of_file(source)?;
    let mut found = Vec::new();
    match scanner.peek() {
        Some(b'[' | b'{') => value(&mut scanner, "", 0, budget, &mut found)?,
        _ => return Err(scanner.unexpected(&"an array or an object")),
    }
    scanner.end()?;
    Ok(found)
}

/// Tensors below `name`; text, numbers and lists of text are none.
fn value(
    scanner: &mut Scanner<'_>,
    name: &str,
    depth: usize,
    budget: &mut Budget,
    found: &mut Vec<Named>,
) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(scanner.bad(scanner.at, &"more objects", &format_args!("at most {MAX_DEPTH} inside each other")));
    }
    match scanner.peek() {
        Some(b'{') => {
            let start = scanner.at;
            if let Some(tensor) = shaped(scanner, budget)? {
                found.push((if name.is_empty() { BARE_NAME } else { name }.to_string(), tensor));
                return Ok(());
            }
            scanner.at = start;
            scanner.object(&mut |scanner, key, _| {
                let inner = if name.is_empty() { key } else { format!("{name}.{key}") };
                budget.take(inner.len() as u64)?;
                value(scanner, &inner, depth + 1, budget, found)
            })
        }
        Some(b'[') => {
            if is_list_of_text(scanner) {
                return Ok(());
            }
            let Numbers { data, shape } = numbers(scanner, Between::Comma, budget)?;
            let name = if name.is_empty() { BARE_NAME } else { name };
            found.extend(tensor(data, &shape).map(|tensor| (name.to_string(), tensor)));
            Ok(())
        }
        Some(b'"' | b'\'') => scanner.string().map(drop),
        _ => scanner.number().map(drop),
    }
}

/// `{"shape": [...], "data": [...]}`; None for any other object.
fn shaped(scanner: &mut Scanner<'_>, budget: &mut Budget) -> Result<Option<Tensor>> {
    let start = scanner.at;
    let (mut shape, mut data) = (None, None);
    scanner.expect(b'{')?;
    while shape.is_none() || data.is_none() {
        if scanner.peek() != Some(b'"') {
            return Ok(None);
        }
        let name = scanner.string()?;
        scanner.expect(b':')?;
        match (&name[..], scanner.peek()) {
            ("shape", Some(b'[')) => {
                let Ok(axes) = scanner.wholes(b'[', b']') else { return Ok(None) };
                shape = Some(axes);
            }
            ("data", Some(b'[')) if !is_list_of_text(scanner) => {
                data = Some(numbers(scanner, Between::Comma, budget)?.data);
            }
            ("data", Some(b'{')) => {
                let Some(numbers) = numbered(scanner) else { return Ok(None) };
                budget.take(4 * numbers.len() as u64)?;
                data = Some(numbers);
            }
            _ => return Ok(None),
        }
        scanner.accept(b',');
    }
    let (Some(shape), Some(data), true) = (shape, data, scanner.accept(b'}')) else { return Ok(None) };
    if count(&shape) != Some(data.len() as u64) {
        let expected = format!("as many as shape {shape:?} says");
        return Err(scanner.bad(start, &format_args!("{} numbers", data.len()), &expected));
    }
    Ok(tensor(data, &shape))
}

/// `{"0": ..., "1": ...}`, as JSON.stringify writes a Float32Array; None for any other object.
fn numbered(scanner: &mut Scanner<'_>) -> Option<Vec<f32>> {
    let mut numbers = Vec::new();
    let entry = &mut |scanner: &mut Scanner<'_>, key: String, at| {
        let number = scanner.number()?;
        if key != numbers.len().to_string() {
            return Err(scanner.bad(at, &key, &numbers.len()));
        }
        numbers.push(number);
        Ok(())
    };
    scanner.object(entry).ok().map(|()| numbers)
}

/// Steps over a list of text, such as tokens. Numbers written as text are no such list.
fn is_list_of_text(scanner: &mut Scanner<'_>) -> bool {
    let start = scanner.at;
    let mut has_text = false;
    scanner.accept(b'[');
    while scanner.peek() == Some(b'"') {
        let Ok(text) = scanner.string() else { break };
        has_text |= number(&text).is_none();
        if !scanner.accept(b',') {
            if has_text && scanner.accept(b']') {
                return true;
            }
            break;
        }
    }
    scanner.at = start;
    false
}

/// Text in double quotes.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => quoted += &format!("\\u{:04x}", c as u32),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Nested arrays by name.
pub(crate) fn write(tensors: &[Named]) -> Vec<u8> {
    let entries: Vec<String> = tensors
        .iter()
        .map(|(name, tensor)| {
            let mut text = quote(name) + ":";
            nest(&tensor.shape, &tensor.data, &mut text);
            text
        })
        .collect();
    format!("{{{}}}\n", entries.join(",")).into_bytes()
}

fn nest(shape: &[usize], data: &[f32], text: &mut String) {
    let [axis, inner @ ..] = shape else {
        return text.push_str(&cell(data[0]));
    };
    for (i, part) in data.chunks(data.len() / axis).enumerate() {
        text.push(if i == 0 { '[' } else { ',' });
        nest(inner, part, text);
    }
    text.push(']');
}

/// JSON has no word for NaN and infinity; these are the package's.
fn cell(number: f32) -> String {
    if number.is_finite() {
        format!("{number:?}")
    } else if number.is_nan() {
        "\"NaN\"".into()
    } else {
        format!("\"{}Infinity\"", if number < 0.0 { "-" } else { "" })
    }
}
