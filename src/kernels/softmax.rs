//! Softmax of a row, in place.

/// row = exp(row - max) / sum. NaN or +infinity anywhere makes the row NaN, as in PyTorch
/// (<https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html>).
pub fn softmax_row(row: &mut [f32]) {
    // 1. The maximum, so that no exponential overflows.
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    // 2. The exponentials and their sum.
    let mut sum = 0.0;
    for x in row.iter_mut() {
        *x = (*x - max).exp();
        sum += *x;
    }
    // 3. Each one's share.
    for x in row.iter_mut() {
        *x /= sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reference(row: &[f32]) -> Vec<f64> {
        let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let exps: Vec<f64> = row.iter().map(|&x| (f64::from(x) - f64::from(max)).exp()).collect();
        let sum: f64 = exps.iter().sum();
        exps.iter().map(|e| e / sum).collect()
    }

    proptest! {
        #[test]
        fn agrees_with_float64(row in prop::collection::vec(-90f32..90.0, 1..200)) {
            let mut ours = row.clone();
            softmax_row(&mut ours);
            for (ours, expected) in ours.iter().zip(reference(&row)) {
                prop_assert!((f64::from(*ours) - expected).abs() <= 2e-6);
            }
        }
    }

    #[test]
    fn edges() {
        let softmax = |mut row: Vec<f32>| {
            softmax_row(&mut row);
            row
        };
        assert_eq!(softmax(vec![-1e9; 4]), [0.25; 4]);
        assert_eq!(softmax(vec![1e30, 1e30]), [0.5; 2]);
        assert_eq!(softmax(vec![f32::NEG_INFINITY, 0.0]), [0.0, 1.0]);
        assert!(softmax(vec![f32::NEG_INFINITY; 3]).iter().all(|x| x.is_nan()));
        assert!(softmax(vec![f32::NAN, 0.0]).iter().all(|x| x.is_nan()));
        assert!(softmax(vec![f32::INFINITY, 0.0])[0].is_nan());
    }
}
