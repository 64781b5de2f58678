//! Numbers in nested brackets, as JSON, NumPy and PyTorch write them.

use crate::Result;
use crate::scan::{Quoted, Scanner, expected_number, number};
use crate::source::Budget;

/// How deep brackets may nest.
const MAX_DEPTH: usize = 64;

/// Whether a comma must stand between two values, or white space is enough.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Between {
    Comma,
    CommaOrSpace,
}

/// The numbers and their shape, which is empty for a bare number.
pub(crate) struct Numbers {
    pub data: Vec<f32>,
    pub shape: Vec<u64>,
}

/// Reads one array, or a bare number. A ragged one is refused with the path of what differs.
pub(crate) fn read(scanner: &mut Scanner<'_>, between: Between, budget: &mut Budget) -> Result<Numbers> {
    let mut open = Open { data: vec![], lengths: vec![], counts: vec![], is_flat: false };
    loop {
        scanner.peek();
        let at = scanner.at;
        if scanner.accept(b'[') {
            if open.counts.len() == MAX_DEPTH {
                return Err(scanner.bad(at, &"more brackets", &format_args!("at most {MAX_DEPTH} inside each other")));
            }
            if open.is_flat && open.counts.len() == open.lengths.len() {
                return Err(scanner.bad(at, &format_args!("an array at {}", open.path()), &"a number, as before"));
            }
            open.counts.push(0);
            // An empty array closes here, so that its fault is named.
            if scanner.peek() != Some(b']') {
                continue;
            }
        } else {
            open.number(scanner, budget)?;
        }
        // After a value: close what ends here, then go on to the next.
        loop {
            let Some(&count) = open.counts.last() else {
                return Ok(Numbers { data: open.data, shape: open.lengths });
            };
            scanner.peek();
            let at = scanner.at;
            if scanner.accept(b']') {
                open.counts.pop();
                let level = open.counts.len();
                let expected = open.lengths.get(level).copied().unwrap_or(0);
                if count == 0 || (expected != 0 && expected != count) {
                    let found = format!("an array of {count} at {}", open.path());
                    let first =
                        if expected == 0 { "at least one number".into() } else { format!("{expected}, as the first") };
                    return Err(scanner.bad(at, &found, &first));
                }
                open.lengths[level] = count;
                if let Some(outer) = open.counts.last_mut() {
                    *outer += 1;
                }
                continue;
            }
            let has_comma = scanner.accept(b',');
            if scanner.peek().is_none() || (between == Between::Comma && !has_comma) {
                return Err(scanner.unexpected(&"\",\" or \"]\""));
            }
            if has_comma && scanner.peek() == Some(b']') && between == Between::CommaOrSpace {
                continue;
            }
            break;
        }
    }
}

struct Open {
    data: Vec<f32>,
    /// The length of each axis, outermost first; 0 where it is not known yet.
    lengths: Vec<u64>,
    /// How many values each open bracket holds so far.
    counts: Vec<u64>,
    /// Whether a number was met, so that the number of axes is known.
    is_flat: bool,
}

impl Open {
    fn number(&mut self, scanner: &mut Scanner<'_>, budget: &mut Budget) -> Result<()> {
        let at = scanner.at;
        let text;
        let found = match scanner.peek() {
            Some(b'"') => {
                text = scanner.string()?;
                &text
            }
            _ => scanner.word(),
        };
        let Some(cell) = number(found) else {
            if found.is_empty() {
                return Err(scanner.unexpected(&"a number"));
            }
            let found_at = format_args!("{} at {}", Quoted(found), self.path());
            return Err(scanner.bad(at, &found_at, &expected_number(found)));
        };
        if !self.is_flat {
            self.is_flat = true;
            self.lengths = vec![0; self.counts.len()];
        } else if self.counts.len() != self.lengths.len() {
            return Err(scanner.bad(at, &format_args!("a number at {}", self.path()), &"an array, as before"));
        }
        budget.take(4)?;
        self.data.push(cell);
        if let Some(count) = self.counts.last_mut() {
            *count += 1;
        }
        Ok(())
    }

    /// Where the next value belongs, such as `[2][5]`.
    fn path(&self) -> String {
        if self.counts.is_empty() {
            return "the top".into();
        }
        self.counts.iter().map(|count| format!("[{count}]")).collect()
    }
}
