//! Bytes with their place in a file, and how much may be made of them.

use std::fmt::Display;

use attnscope::AttnError;

use crate::{Fault, Format, Place, Result};

/// A file's bytes, or those of a member of it, knowing where they lie so that an error can say.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub format: Format,
    pub bytes: &'a [u8],
    start: u64,
    packed: bool,
}

impl<'a> Source<'a> {
    pub fn new(format: Format, bytes: &'a [u8]) -> Self {
        Self { format, bytes, start: 0, packed: false }
    }

    /// A member of this file. Of one that was packed only the start has a place in the file.
    pub fn member<'b>(&self, bytes: &'b [u8], start: u64, packed: bool) -> Source<'b> {
        Source { format: self.format, bytes, start, packed }
    }

    /// A part of these bytes that is read by itself.
    pub fn part(&self, at: u64, size: u64, what: &str) -> Result<Self> {
        let start = if self.packed { self.start } else { self.start + at };
        Ok(Self { bytes: self.take(at, size, what)?, start, ..*self })
    }

    pub fn bad(&self, at: u64, found: &dyn Display, expected: &dyn Display) -> Fault {
        let offset = if self.packed { self.start } else { self.start + at };
        self.format.bad(Place::Byte(offset), found, expected)
    }

    /// The bytes of `what`, which start at `at`; refused where they are not all there.
    pub fn take(&self, at: u64, size: u64, what: &str) -> Result<&'a [u8]> {
        let there = self.bytes.len() as u64;
        match at.checked_add(size) {
            Some(end) if end <= there => Ok(&self.bytes[at as usize..end as usize]),
            _ => {
                let left = there.saturating_sub(at);
                Err(self.bad(at.min(there), &format_args!("{left} bytes"), &format_args!("{size} bytes of {what}")))
            }
        }
    }
}

/// What reading may allocate. It is asked before the allocation.
pub(crate) struct Budget {
    max_bytes: u64,
    used: u64,
}

impl Budget {
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes: max_bytes as u64, used: 0 }
    }

    pub fn take(&mut self, bytes: u64) -> Result<()> {
        self.used = self.used.saturating_add(bytes);
        if self.used <= self.max_bytes { Ok(()) } else { Err(self.spent()) }
    }

    /// Room for as many float32 numbers.
    pub fn numbers(&mut self, count: u64) -> Result<Vec<f32>> {
        self.take(count.saturating_mul(4))?;
        let mut numbers = Vec::new();
        numbers.try_reserve_exact(count as usize).map_err(|_| self.spent())?;
        Ok(numbers)
    }

    fn spent(&self) -> Fault {
        Box::new(AttnError::TooLarge { needed: self.used, max_bytes: self.max_bytes })
    }
}
