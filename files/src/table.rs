//! CSV and TSV: rows of numbers, with or without a header row and a column of labels, which are left out. Source: RFC 4180

use std::fmt::Display;

use attnscope::Tensor;
use csv_core::{ReadFieldResult, Reader, ReaderBuilder};

use crate::scan::{Quoted, expected_number, number};
use crate::source::{Budget, Source};
use crate::{Format, Place, Result, tensor};

pub(crate) fn read(source: Source<'_>, budget: &mut Budget) -> Result<Option<Tensor>> {
    let text = source.bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(source.bytes);
    let delimiter = match source.format {
        Format::Tsv => b'\t',
        _ => delimiter(text),
    };
    let survey = Survey::of(Cells::new(text, delimiter));
    let (has_header, has_labels) = (survey.has_header(), survey.has_labels());
    let bad = |cell: &Cell<'_>, found: &dyn Display, expected: &dyn Display| {
        Err(source.format.bad(Place::Text { line: cell.line, column: cell.column }, found, expected))
    };

    let (mut data, mut n_rows, mut width, mut filled) = (Vec::new(), 0, 0, 0);
    let mut cells = Cells::new(text, delimiter);
    while let Some(cell) = cells.next() {
        if has_header && cell.row == 1 {
            continue;
        }
        if !(has_labels && cell.column == 1) {
            let Some(number) = cell.number() else {
                let text = cell.text();
                let found: &dyn Display = if text.is_empty() { &"an empty cell" } else { &Quoted(&text) };
                return bad(&cell, found, &expected_number(&text));
            };
            budget.take(4)?;
            data.push(number);
            filled += 1;
        }
        if cell.is_last {
            if n_rows > 0 && filled != width {
                return bad(&cell, &format_args!("a row of {filled} numbers"), &format_args!("{width}, as the first"));
            }
            (n_rows, width, filled) = (n_rows + 1, filled, 0);
        }
    }
    Ok(tensor(data, &[n_rows, width]))
}

/// What tells a header row and a column of labels from numbers.
#[derive(Default)]
struct Survey {
    rows: usize,
    /// The first row's cells without the first, and how many of them are words.
    heads: usize,
    head_words: usize,
    /// How many of them are their own position, from 0 or from 1.
    counted: [usize; 2],
    has_empty_corner: bool,
    has_first_word: bool,
    /// First cells that are no numbers, below the first row.
    labels: usize,
}

impl Survey {
    fn of(mut cells: Cells<'_>) -> Self {
        let mut survey = Self::default();
        while let Some(cell) = cells.next() {
            let number = cell.number();
            match (cell.row, cell.column) {
                (1, 1) => {
                    survey.has_empty_corner = cell.text.is_empty();
                    survey.has_first_word = cell.is_word();
                }
                (1, column) => {
                    survey.heads += 1;
                    survey.head_words += usize::from(cell.is_word());
                    for (first, counted) in survey.counted.iter_mut().enumerate() {
                        *counted += usize::from(number == Some((column - 2 + first) as f32));
                    }
                }
                (_, 1) => survey.labels += usize::from(number.is_none()),
                _ => {}
            }
            survey.rows = cell.row;
        }
        survey
    }

    /// A header has an empty corner as pandas leaves it, or begins with a word and goes on with words mostly, or counting 0, 1, 2.
    fn has_header(&self) -> bool {
        let counts = self.heads > 2 && self.counted.contains(&self.heads);
        let goes_on = self.heads == 0 || 2 * self.head_words > self.heads || counts;
        self.has_empty_corner || (self.has_first_word && goes_on)
    }

    fn has_labels(&self) -> bool {
        let has_header = self.has_header();
        let labels = self.labels + usize::from(!has_header && self.has_first_word);
        self.heads > 0 && (self.has_empty_corner || 2 * labels > self.rows - usize::from(has_header))
    }
}

/// A semicolon where it separates numbers, which then may have decimal commas, or where it is the more frequent.
fn delimiter(text: &[u8]) -> u8 {
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let times = |delimiter: u8| line.iter().filter(|&&byte| byte == delimiter).count();
    let is_number = |cell: &[u8]| Cell { text: cell, delimiter: b';', ..Cell::default() }.number().is_some();
    let semicolons = times(b';');
    let separates = semicolons > times(b',') || line.split(|&byte| byte == b';').skip(1).all(is_number);
    if semicolons > 0 && separates { b';' } else { b',' }
}

#[derive(Default)]
struct Cell<'a> {
    text: &'a [u8],
    delimiter: u8,
    /// Its line in the file; its row and its place in the row, from 1.
    line: usize,
    row: usize,
    column: usize,
    is_last: bool,
}

impl Cell<'_> {
    fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.text)
    }

    /// Neither a number nor one with a slip in it.
    fn is_word(&self) -> bool {
        let begins_as_number = |text: &[u8]| {
            let digits = text.trim_ascii_start();
            digits
                .strip_prefix(b"-")
                .or(digits.strip_prefix(b"+"))
                .unwrap_or(digits)
                .first()
                .is_some_and(u8::is_ascii_digit)
        };
        self.number().is_none() && !begins_as_number(self.text)
    }

    fn number(&self) -> Option<f32> {
        let text = std::str::from_utf8(self.text).ok()?.trim_ascii();
        if self.delimiter == b',' { number(text) } else { number(&text.replace(',', ".")) }
    }
}

struct Cells<'a> {
    reader: Reader,
    rest: &'a [u8],
    delimiter: u8,
    buffer: Vec<u8>,
    row: usize,
    column: usize,
}

impl<'a> Cells<'a> {
    fn new(rest: &'a [u8], delimiter: u8) -> Self {
        let reader = ReaderBuilder::new().delimiter(delimiter).build();
        Self { reader, rest, delimiter, buffer: vec![0; 64], row: 1, column: 0 }
    }

    fn next(&mut self) -> Option<Cell<'_>> {
        let mut filled = 0;
        loop {
            let (result, read, written) = self.reader.read_field(self.rest, &mut self.buffer[filled..]);
            let has_newline = self.rest[..read].last() == Some(&b'\n');
            self.rest = &self.rest[read..];
            filled += written;
            match result {
                // With nothing left to read, the next call gives what is there as a cell.
                ReadFieldResult::InputEmpty => {}
                ReadFieldResult::OutputFull => self.buffer.resize(2 * self.buffer.len(), 0),
                ReadFieldResult::End => return None,
                ReadFieldResult::Field { record_end: is_last } => {
                    let line = self.reader.line() as usize - usize::from(is_last && has_newline);
                    let (row, column) = (self.row, self.column + 1);
                    (self.row, self.column) = if is_last { (row + 1, 0) } else { (row, column) };
                    let text = &self.buffer[..filled];
                    return Some(Cell { text, delimiter: self.delimiter, line, row, column, is_last });
                }
            }
        }
    }
}

pub(crate) fn write(tensor: &Tensor) -> Vec<u8> {
    let mut text = String::new();
    for row in tensor.data.chunks(tensor.shape[1]) {
        let cells: Vec<String> = row.iter().map(|number| format!("{number:?}")).collect();
        text += &cells.join(",");
        text.push('\n');
    }
    text.into_bytes()
}
