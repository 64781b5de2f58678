//! What NumPy and PyTorch print: `tensor([[...]], device='cuda:0')`, `array([...])`, brackets alone, and rows of numbers as
//! `numpy.savetxt` writes them.

use attnscope::Tensor;

use crate::nested::{Between, Numbers, read as numbers};
use crate::scan::{Quoted, Scanner, expected_number, number};
use crate::source::{Budget, Source};
use crate::{Result, tensor};

/// What PyTorch prints in front of a parameter.
const PARAMETER: &str = "Parameter containing:";

pub(crate) fn read(source: Source<'_>, budget: &mut Budget) -> Result<Option<Tensor>> {
    let mut scanner = Scanner::of_file(source)?;
    scanner.peek();
    if scanner.text[scanner.at..].starts_with(PARAMETER) {
        scanner.at += PARAMETER.len();
    }
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
    text.starts_with(PARAMETER) || call(text).is_some()
}

/// The length of `tensor(`, `np.array(` and the like at the start of a text.
fn call(text: &str) -> Option<usize> {
    let inner = text.trim_ascii_start();
    let name = inner.find('(')?;
    let is_name = name > 0 && inner[..name].chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
    is_name.then_some(text.len() - inner.len() + name + 1)
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
