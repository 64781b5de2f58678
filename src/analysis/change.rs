//! What differs between two passes: where a mask sent the weight it freed, and how far each output moved.

use super::same_shape;
use crate::error::Result;
use crate::plain::Plain;
use crate::tensor::Tensor;

/// The most cells that [`MaskEffect::gains`] lists.
const MOST_GAINS: usize = 10;

/// What a mask did to the weights.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[cfg_attr(feature = "typescript", ts(rename_all = "camelCase"))]
pub struct MaskEffect {
    /// after - before of each cell, `[..., n_q, n_k]`
    #[cfg_attr(feature = "typescript", ts(type = "Tensor"))]
    pub change: Tensor,
    /// The weight that each row lost, `[..., n_q]`
    #[cfg_attr(feature = "typescript", ts(type = "Tensor"))]
    pub freed: Tensor,
    /// The sum of it over each head's rows, `[..., heads]`; `[1]` for weights `[n_q, n_k]`
    #[cfg_attr(feature = "typescript", ts(type = "Tensor"))]
    pub freed_by_head: Tensor,
    /// The cells that gained the most, at most 10, the greatest gain first
    pub gains: Vec<CellChange>,
}

/// One cell before and after.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct CellChange {
    /// Its place, such as `[head, query, key]`.
    pub index: Vec<usize>,
    /// Its weight before.
    pub before: f32,
    /// Its weight after.
    pub after: f32,
    /// after - before
    pub change: f32,
}

impl From<CellChange> for Plain {
    fn from(cell: CellChange) -> Self {
        Self::Object(vec![
            ("index", cell.index.into()),
            ("before", cell.before.into()),
            ("after", cell.after.into()),
            ("change", cell.change.into()),
        ])
    }
}

/// What a mask freed and where it went, from the weights without it and with it, both `[..., n_q, n_k]`. A row's freed
/// weight is Σ_j max(before - after, 0); where both rows sum to 1 that is their total variation distance, from 0 to 1,
/// and just what the other keys of the row gained. A row that holds NaN, such as one with nothing allowed, gives NaN,
/// and so does its head's sum.
///
/// # Errors
/// `shape_mismatch` where the shapes differ or have fewer than two axes.
pub fn mask_effect(before: &Tensor, after: &Tensor) -> Result<MaskEffect> {
    let shape = same_shape(before, after, "[..., n_q, n_k]")?;
    let (heads, [n_q, n_k]) = (&shape[..shape.len() - 2], [shape[shape.len() - 2], shape[shape.len() - 1]]);
    let change: Vec<f32> = before.data.iter().zip(&after.data).map(|(before, after)| after - before).collect();
    // Not `max`, which would hide a NaN.
    let lost = |(&before, &after): (&f32, &f32)| {
        if after >= before { 0.0 } else { f64::from(before) - f64::from(after) }
    };
    let rows = before.data.chunks_exact(n_k).zip(after.data.chunks_exact(n_k));
    let freed: Vec<f64> = rows.map(|(before, after)| before.iter().zip(after).map(lost).sum()).collect();

    // The few that gained most, largest first; of equals the first.
    let mut gaining: Vec<usize> = Vec::new();
    for cell in (0..change.len()).filter(|&cell| change[cell] > 0.0) {
        let at = gaining.partition_point(|&held| change[held] >= change[cell]);
        if at < MOST_GAINS {
            gaining.insert(at, cell);
            gaining.truncate(MOST_GAINS);
        }
    }
    let gains = gaining.into_iter().map(|cell| CellChange {
        index: index_of(cell, shape),
        before: before.data[cell],
        after: after.data[cell],
        change: change[cell],
    });
    Ok(MaskEffect {
        gains: gains.collect(),
        freed_by_head: Tensor {
            shape: if heads.is_empty() { vec![1] } else { heads.to_vec() },
            data: freed.chunks_exact(n_q).map(|rows| rows.iter().sum::<f64>() as f32).collect(),
        },
        freed: Tensor {
            shape: shape[..shape.len() - 1].to_vec(),
            data: freed.iter().map(|&freed| freed as f32).collect(),
        },
        change: Tensor { shape: shape.to_vec(), data: change },
    })
}

fn index_of(cell: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    shape.iter().zip(&mut index).rev().fold(cell, |rest, (&axis, place)| {
        *place = rest % axis;
        rest / axis
    });
    index
}

/// How far each row moved.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Moved {
    /// The Euclidean distance, `[..., n]`, in the units of the outputs
    #[cfg_attr(feature = "typescript", ts(type = "Tensor"))]
    pub distance: Tensor,
    /// The cosine of the angle, `[..., n]`: 1 is the same direction, -1 the opposite; NaN where a row is all zeros
    #[cfg_attr(feature = "typescript", ts(type = "Tensor"))]
    pub cosine: Tensor,
}

/// How far each output moved, both `[..., n, d]`: the distance sqrt(Σ (after - before)²) of each row, and the cosine
/// before · after / (|before| |after|).
///
/// # Errors
/// `shape_mismatch` where the shapes differ or have fewer than two axes.
pub fn moved(before: &Tensor, after: &Tensor) -> Result<Moved> {
    let shape = same_shape(before, after, "[..., n, d]")?;
    let rows = |number: fn(&[f32], &[f32]) -> f64| {
        let pairs = before.data.chunks_exact(before.width()).zip(after.data.chunks_exact(after.width()));
        let data = pairs.map(|(before, after)| number(before, after) as f32).collect();
        Tensor { shape: shape[..shape.len() - 1].to_vec(), data }
    };
    Ok(Moved {
        distance: rows(distance),
        cosine: rows(|before, after| dot(before, after) / (dot(before, before) * dot(after, after)).sqrt()),
    })
}

pub(super) fn distance(before: &[f32], after: &[f32]) -> f64 {
    let squares = before.iter().zip(after).map(|(&before, &after)| (f64::from(after) - f64::from(before)).powi(2));
    squares.sum::<f64>().sqrt()
}

fn dot(left: &[f32], right: &[f32]) -> f64 {
    left.iter().zip(right).map(|(&left, &right)| f64::from(left) * f64::from(right)).sum()
}
