//! What the views show, and researchers ask, of attention weights.
//!
//! Weights are `[..., n_q, n_k]`: row i is query i, column j is key j. They may come from anywhere: rows need not sum
//! exactly to 1, and what is asked of a row is asked of its numbers as they are, unless a function says otherwise. Sums
//! are in float64, but for the products of `rollout`.

mod ablation;
mod change;
mod labels;
mod rollout;
mod rows;

pub use ablation::ablate;
pub use change::{CellChange, MaskEffect, Moved, mask_effect, moved};
pub use labels::{HeadLabel, HeadPattern, PatternScores, label_heads, label_heads_allowed};
pub use rollout::rollout;
pub use rows::{effective_keys, entropy, mean_distance};

use crate::error::{AttnError, Result};
use crate::tensor::Tensor;
use crate::text::Listed;

/// The shape of the two, `[..., n, width]`.
fn same_shape<'a>(before: &'a Tensor, after: &Tensor, expected: &str) -> Result<&'a [usize]> {
    if before.shape.len() < 2 {
        return Err(AttnError::shape("before", &before.shape, expected));
    }
    if after.shape != before.shape {
        return Err(AttnError::shape("after", &after.shape, format!("the shape of before, {}", Listed(&before.shape))));
    }
    Ok(&before.shape)
}
