//! Softmax of a row, in place.

use super::exp::exp;
use super::lanes::Lanes;

/// row = exp(row - max) / sum. NaN or +infinity anywhere makes the row NaN, as in PyTorch
/// (<https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html>); so does -infinity everywhere.
pub fn softmax_row(row: &mut [f32]) {
    // 1. The maximum, so that no exponential overflows.
    let max = largest(row);
    // 2. The exponentials, their sum, and each one's share.
    shares(row, max);
}

// Both go four at a time; what is left is filled up with -infinity, whose share is 0.

// Each once in the binary: what a call costs is little beside a row.

/// The largest number of a row; NaN where one is NaN, -infinity for an empty row.
#[inline(never)]
pub(crate) fn largest(row: &[f32]) -> f32 {
    let (fours, rest) = row.as_chunks::<4>();
    let mut last = [f32::NEG_INFINITY; 4];
    last[..rest.len()].copy_from_slice(rest);
    let (mut max, mut strange) = (load(&last), load(&last).unordered(load(&last)));
    for four in fours {
        strange = strange.unordered(load(four));
        max = max.max(load(four));
    }
    if strange.has_bits() { f32::NAN } else { max.largest() }
}

/// row = exp(row - max) / sum
#[inline(never)]
pub(crate) fn shares(row: &mut [f32], max: f32) {
    let (fours, rest) = row.as_chunks_mut::<4>();
    let mut last = [f32::NEG_INFINITY; 4];
    last[..rest.len()].copy_from_slice(rest);
    let mut sum = powers(fours, max);
    if !rest.is_empty() {
        sum = sum.add(powers(std::slice::from_mut(&mut last), max));
    }
    let sum = Lanes::splat(sum.sum());
    fours.iter_mut().chain([&mut last]).for_each(|four| store(load(four).div(sum), four));
    rest.copy_from_slice(&last[..rest.len()]);
}

/// Each number becomes exp(number - max); gives their sum, lane by lane.
#[inline(never)]
fn powers(fours: &mut [[f32; 4]], max: f32) -> Lanes {
    let max = Lanes::splat(max);
    let mut sum = Lanes::splat(0.0);
    for four in fours {
        let power = exp(load(four).sub(max));
        sum = sum.add(power);
        store(power, four);
    }
    sum
}

fn load(four: &[f32; 4]) -> Lanes {
    // SAFETY: there are four.
    unsafe { Lanes::load(four.as_ptr()) }
}

fn store(lanes: Lanes, four: &mut [f32; 4]) {
    // SAFETY: there are four.
    unsafe { lanes.store(four.as_mut_ptr()) }
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
            let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            for ((ours, x), expected) in ours.iter().zip(&row).zip(reference(&row)) {
                // x - max is rounded before its exponential is taken.
                let bound = 1e-6 + f64::from(max - x) * f64::from(f32::EPSILON);
                prop_assert!((f64::from(*ours) - expected).abs() <= bound * expected + 1e-38);
            }
        }
    }

    #[test]
    fn edges() {
        let softmax = |mut row: Vec<f32>| {
            softmax_row(&mut row);
            row
        };
        for n in 1..10 {
            assert_eq!(softmax(vec![-1e9; n]), vec![1.0 / n as f32; n]);
            assert!(softmax(vec![f32::NEG_INFINITY; n]).iter().all(|x| x.is_nan()));
            for at in 0..n {
                let with = |x| (0..n).map(|i| if i == at { x } else { 0.0 }).collect();
                assert!(softmax(with(f32::NAN)).iter().all(|x| x.is_nan()));
                assert!(softmax(with(f32::INFINITY))[at].is_nan());
            }
        }
        assert_eq!(softmax(vec![1e30, 1e30]), [0.5; 2]);
        assert_eq!(softmax(vec![f32::NEG_INFINITY, 0.0]), [0.0, 1.0]);
    }
}
