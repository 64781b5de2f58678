//! What NumPy and PyTorch print: `tensor([[...]], device='cuda:0')`, `array([...])`, brackets alone, and rows of numbers as
//! `numpy.savetxt` writes them.

use attnscope::Tensor;

use crate::nested::{Between, Numbers, read as numbers};
use crate::scan::{Quoted, Scanner, expected_number, number};
use crate::source::{Budget, Source};
use crate::{Result, tensor};

pub(crate) fn read(source: Source<'_>, budget: &mut Budget) -> Result<Option<Tensor>> {
    let mut scanner = Scanner::of_file(source)?;
    scanner.at = start(scanner.text).unwrap_or(0);
    let has_call = call(&scanner.text[scanner.at..]).map(|length| scanner.at += length).is_some();
    if !has_call && scanner.peek() != Some(b'[') {
        return rows(&mut scanner, budget);
    }
    let Numbers { data, shape } = numbers(&mut scanner, Between::CommaOrSpace, budget)?;
    if has_call {
        // dtype, device, grad_fn, names=('N', 'C')
        let rest = &scanner.text[scanner.at..];
        let mut open = 1;
        let is_end = |c| {
            open += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            open == 0 || c == '[' || c == ']'
        };
        scanner.at += rest.find(is_end).unwrap_or(rest.len());
        scanner.expect(b')')?;
    }
    scanner.end()?;
    Ok(tensor(data, &shape))
}

/// Where a printed tensor starts: its call, or numbers in brackets, behind what may stand in front of them: a notebook's or Python's prompt,
/// and a name as in `x = `, `weights: `, or `Parameter containing:` of PyTorch. None for what is no printed tensor.
pub(crate) fn start(text: &str) -> Option<usize> {
    let mut rest = text.trim_ascii_start();
    // 1. Lines of what was asked.
    while rest.starts_with(">>>") || rest.starts_with("In [") {
        rest = rest.split_once('\n').map_or("", |(_, below)| below).trim_ascii_start();
    }
    // 2. A name ends at the call, at a sign, or at a space in front of brackets.
    let before_call = rest.find('(').and_then(|open| rest[..open].rfind(|c: char| c.is_ascii_whitespace()));
    let before_sign = rest.find([':', '=']).map(|sign| sign + 1);
    let is_name = |name: &str| !name.contains(['\n', '\t', ',', ';', '(', '"']);
    let starts = |text: &str| call(text).is_some() || is_row(text);
    let ends = [Some(0), before_call, before_sign, rest.find(" [")];
    let end = ends.into_iter().flatten().find(|&end| starts(&rest[end..]) && is_name(&rest[..end]))?;
    Some(text.len() - rest.len() + end)
}

/// Whether a text starts as numbers in brackets do.
pub(crate) fn is_row(text: &str) -> bool {
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
