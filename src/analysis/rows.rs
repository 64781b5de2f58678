//! One number for each row of weights.

use crate::error::{AttnError, Result};
use crate::tensor::Tensor;

/// The entropy of each row in nats, H = -Σ_j w ln w with 0 ln 0 = 0: `[..., n_q, n_k]` gives `[..., n_q]`. It is 0
/// where one key has all the weight and ln n where n keys share it evenly; a row that holds NaN gives NaN. Source:
/// section 3.3 of "What Does BERT Look At?" (Clark et al. 2019).
///
/// # Errors
/// `shape_mismatch` for fewer than two axes.
pub fn entropy(weights: &Tensor) -> Result<Tensor> {
    each_row(weights, &|_, row| nats(row.iter().map(|&weight| f64::from(weight))))
}

/// How many keys each row attends to in effect, exp(H) with H the row's [`entropy`]: `[..., n_q, n_k]` gives
/// `[..., n_q]`. It is n where n keys share the weight evenly, and 0 for a row of zeros. Source: the perplexity of a
/// distribution, "Perplexity: a measure of the difficulty of speech recognition tasks" (Jelinek et al. 1977).
///
/// # Errors
/// `shape_mismatch` for fewer than two axes.
pub fn effective_keys(weights: &Tensor) -> Result<Tensor> {
    each_row(weights, &|_, row| {
        if row.iter().all(|&weight| weight == 0.0) {
            return 0.0;
        }
        libm::exp(nats(row.iter().map(|&weight| f64::from(weight))))
    })
}

/// How far each row looks, Σ_j w |i + offset - j| in positions: `[..., n_q, n_k]` gives `[..., n_q]`. Query i stands at
/// position i + offset, so with n cached keys in front the offset is n. Source: "Analyzing the Structure of Attention
/// in a Transformer Language Model" (Vig and Belinkov 2019), there over all rows.
///
/// # Errors
/// `shape_mismatch` for fewer than two axes.
pub fn mean_distance(weights: &Tensor, offset: isize) -> Result<Tensor> {
    each_row(weights, &|query, row| {
        let position = query as isize + offset;
        row.iter().enumerate().map(|(key, &weight)| f64::from(weight) * position.abs_diff(key as isize) as f64).sum()
    })
}

pub(super) fn nats(weights: impl Iterator<Item = f64>) -> f64 {
    weights.filter(|&weight| weight != 0.0).fold(0.0, |sum, weight| sum - weight * weight.ln())
}

fn each_row(weights: &Tensor, number: &dyn Fn(usize, &[f32]) -> f64) -> Result<Tensor> {
    let [leading @ .., n_q, n_k] = &weights.shape[..] else {
        return Err(AttnError::shape("weights", &weights.shape, "[..., n_q, n_k]"));
    };
    let rows = weights.data.chunks_exact(*n_k).enumerate();
    let data = rows.map(|(at, row)| number(at % n_q, row) as f32).collect();
    Ok(Tensor { shape: [leading, &[*n_q]].concat(), data })
}
