//! What NumPy and PyTorch print: `tensor([[...]], device='cuda:0')`, `array([...])`, brackets alone, and rows of numbers as
//! `numpy.savetxt` writes them.

use attnscope::Tensor;

use crate::nested::{Between, Numbers, read as numbers};
use crate::scan::{Quoted, Scanner, expected_number, number};
use crate::source::{Budget, Source};
use crate::{Result, tensor};

pub(crate) fn read(source: Source<'_>, budget: &mut Budget) -> Result<Option<Tensor>> {
    let mut scanner = Scanner::of_file(source)?;
    scanner.at = heading(scanner.text).unwrap_or(0);
    let has_call = call(&scanner.text[scanner.at..]).map(|length| scanner.at += length).is_some();
    if !has_call && scanner.peek() != Some(b'[') {
        return rows(&mut scanner, budget);
    }
    let Numbers { data, shape } = numbers(&mut scanner, Between::CommaOrSpace, budget)?;
    if has_call {
        // dtype, device, grad_fn
        let rest = &scanner.text[scanner.at..];
        scanner.at = match (rest.find('['), rest.rfind(')')) {
            (Some(second), _) => scanner.at + second,
            (None, Some(close)) => scanner.at + close + 1,
            (None, None) => scanner.text.len(),
        };
        if !rest.contains(')') {
            return Err(scanner.unexpected(&"\")\""));
        }
    }
    scanner.end()?;
    Ok(tensor(data, &shape))
}

/// Whether a text starts as a printed tensor does.
pub(crate) fn is_printed(text: &str) -> bool {
    heading(text).is_some() || call(text).is_some()
}

/// The length of what stands in front of a printed tensor: a notebook's or Python's prompt, and what it is called, as in `x = `,
/// `weights: `, or `Parameter containing:` of PyTorch. None where nothing does.
fn heading(text: &str) -> Option<usize> {
    let mut rest = text.trim_ascii_start();
    // 1. Lines of what was asked.
    let mut is_asked = false;
    while rest.starts_with(">>>") || rest.starts_with("In [") {
        rest = rest.split_once('\n').map_or("", |(_, below)| below).trim_ascii_start();
        is_asked = true;
    }
    if is_asked && (call(rest).is_some() || is_row(rest)) {
        return Some(text.len() - rest.len());
    }
    // 2. What the answer is called: up to the call, or to a sign or a space in front of brackets.
    let before_call = rest.find('(').and_then(|open| rest[..open].rfind(|c: char| c.is_ascii_whitespace()));
    let before_row = rest.find([':', '=']).map(|sign| sign + 1);
    let is_name = |end: usize| !rest[..end].contains(['\n', '\t', ',', ';', '(', '"']);
    let end = before_call
        .filter(|&end| call(&rest[end..]).is_some())
        .or(before_row.filter(|&end| call(&rest[end..]).is_some() || is_row(&rest[end..])))
        .or(rest.find(" [").filter(|&end| is_row(&rest[end..])))?;
    is_name(end).then_some(text.len() - rest.len() + end)
}

/// Whether a text starts as numbers in brackets do.
fn is_row(text: &str) -> bool {
    let row = text.trim_ascii_start().strip_prefix('[').map(|row| row.trim_ascii_start());
    row.is_some_and(|row| {
        let end = row.find(|c: char| c.is_ascii_whitespace() || c == ',' || c == ']').unwrap_or(row.len());
        row.starts_with('[') || number(&row[..end]).is_some()
    })
}

/// The length of `tensor(`, `np.array(` and the like at the start of a text.
fn call(text: &str) -> Option<usize> {
    let inner = text.trim_ascii_start();
    let (name, arguments) = inner.split_once('(')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
    // As of `np.float32(0.5)`.
    let is_number = || arguments.trim_ascii_end().strip_suffix(')').is_some_and(|word| number(word).is_some());
    let is_known = name.ends_with("tensor")
        || name.ends_with("array")
        || arguments.trim_ascii_start().starts_with('[')
        || is_number();
    (is_name && is_known).then_some(text.len() - arguments.len())
}

/// A row of numbers each line; a line that starts with # is a remark.
fn rows(scanner: &mut Scanner<'_>, budget: &mut Budget) -> Result<Option<Tensor>> {
    let (mut data, mut n_rows, mut width) = (Vec::new(), 0, 0);
    let mut start = 0;
    for line in scanner.text.split_inclusive('\n') {
        let mut cells = 0;
        if !line.starts_with('#') {
            for word in line.split_ascii_whitespace() {
                let at = start + (word.as_ptr() as usize - line.as_ptr() as usize);
                let cell = number(word).ok_or_else(|| scanner.bad(at, &Quoted(word), &expected_number(word)))?;
                budget.take(4)?;
                data.push(cell);
                cells += 1;
            }
        }
        if cells > 0 {
            if n_rows > 0 && cells != width {
                return Err(scanner.bad(
                    start,
                    &format_args!("a row of {cells}"),
                    &format_args!("{width}, as the first"),
                ));
            }
            (n_rows, width) = (n_rows + 1, cells);
        }
        start += line.len();
    }
    Ok(tensor(data, &[n_rows, width]))
}
