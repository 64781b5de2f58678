//! Lists as text.

use std::fmt::{Display, Formatter, Result};

/// Numbers in brackets, as `{:?}` writes them, but without what makes that of any width, precision and base: 3 kB of WebAssembly.
pub(crate) struct Listed<'a, T>(pub &'a [T]);

impl<T: Display> Display for Listed<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("[")?;
        for (at, number) in self.0.iter().enumerate() {
            f.write_str(if at > 0 { ", " } else { "" })?;
            number.fmt(f)?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_written_as_rust_writes_them() {
        for list in [vec![], vec![1], vec![2, 30, 4]] {
            assert_eq!(Listed(&list).to_string(), format!("{list:?}"));
        }
    }
}
