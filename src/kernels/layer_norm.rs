//! Layer normalisation of a row, in place.

/// row = (row - mean) / sqrt(variance + eps) * weight + bias, the variance over n, not n - 1
/// (<https://docs.pytorch.org/docs/stable/generated/torch.nn.LayerNorm.html>).
pub fn layer_norm_row(row: &mut [f32], weight: &[f32], bias: Option<&[f32]>, eps: f32) {
    let (mean, variance) = moments(row);
    let scale = 1.0 / (variance + f64::from(eps)).sqrt();
    for (x, weight) in row.iter_mut().zip(weight) {
        *x = ((f64::from(*x) - mean) * scale) as f32 * weight;
    }
    if let Some(bias) = bias {
        row.iter_mut().zip(bias).for_each(|(x, bias)| *x += bias);
    }
}

/// Mean and variance in two passes of float64, so that a large mean costs no digits.
pub fn moments(row: &[f32]) -> (f64, f64) {
    let n = row.len() as f64;
    let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
    let variance = row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
    (mean, variance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_row_gives_the_bias() {
        let mut row = [3.0; 8];
        layer_norm_row(&mut row, &[2.0; 8], Some(&[0.5; 8]), 1e-5);
        assert_eq!(row, [0.5; 8]);
    }

    #[test]
    fn a_large_mean_costs_no_digits() {
        let mut row = [10_000.0, 10_001.0, 10_002.0, 10_003.0];
        layer_norm_row(&mut row, &[1.0; 4], None, 0.0);
        let expected = [-1.341_640_8, -0.447_213_6, 0.447_213_6, 1.341_640_8];
        for (ours, expected) in row.iter().zip(expected) {
            assert!((ours - expected).abs() < 1e-6);
        }
    }
}
