//! Root-mean-square normalisation of a row, in place.

/// row = row / sqrt(mean(row²) + eps) * weight
/// (<https://docs.pytorch.org/docs/stable/generated/torch.nn.RMSNorm.html>; Zhang & Sennrich 2019).
pub fn rms_norm_row(row: &mut [f32], weight: &[f32], eps: f32) {
    let scale = 1.0 / (mean_square(row) + f64::from(eps)).sqrt();
    for (x, weight) in row.iter_mut().zip(weight) {
        *x = (f64::from(*x) * scale) as f32 * weight;
    }
}

/// In float64, where no float32's square overflows.
pub fn mean_square(row: &[f32]) -> f64 {
    row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / row.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_stays() {
        let mut row = [3.0, 4.0];
        rms_norm_row(&mut row, &[1.0, 2.0], 0.0);
        let root = 12.5_f32.sqrt();
        assert_eq!(row, [3.0 / root, 8.0 / root]);
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        let mut row = [1e30, -1e30];
        rms_norm_row(&mut row, &[1.0; 2], 1e-6);
        assert_eq!(row, [1.0, -1.0]);
    }
}
