//! Softmax of a row, in place.

use super::exp::Exponential;
use super::lanes::Lanes;

/// row = exp(row - max) / sum. NaN or +infinity anywhere makes the row NaN, as in PyTorch
/// (<https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html>); so does -infinity everywhere.
pub fn softmax_row(row: &mut [f32]) {
    if !row.is_empty() {
        // 1. The maximum, so that no exponential overflows.
        let max = largest(row, 1.0);
        // 2. The exponentials, their sum, and each one's share.
        make_shares(row, row.len(), &mut [Counted { start: 0, end: row.len(), factor: 1.0, max, sum: 0.0 }]);
    }
}

/// The numbers of a row that have shares; those of the others are 0.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counted {
    /// The first.
    pub start: usize,
    /// Behind the last.
    pub end: usize,
    /// What they are still to be multiplied by.
    pub factor: f32,
    /// The largest of them, multiplied.
    pub max: f32,
    /// Of their exponentials, once these are known.
    pub sum: f32,
}

// Both go four at a time; what is left is filled up with what changes nothing. And both are there once, with the registers to
// themselves.

/// The largest of row · factor, -infinity for an empty row. Where one is NaN, anything; their exponentials are NaN all the same.
#[inline(never)]
pub(crate) fn largest(row: &[f32], factor: f32) -> f32 {
    let (fours, rest) = row.as_chunks::<4>();
    let (factors, mut max) = (Lanes::splat(factor), Lanes::splat(f32::NEG_INFINITY));
    for four in fours {
        max = max.max(load(four).mul(factors));
    }
    if !rest.is_empty() {
        max = max.max(scaled(rest, factor));
    }
    max.largest()
}

/// Rows of so many numbers become shares: exp(row · factor - max) / sum. Gives whether none is NaN. Some rows side by side take less
/// time than one after the other, which leave a processor waiting.
#[inline(never)]
pub(crate) fn make_shares(rows: &mut [f32], width: usize, counted: &mut [Counted]) -> bool {
    let exp = Exponential::new();
    // 1. The exponentials and their sums.
    for (row, counted) in rows.chunks_exact_mut(width).zip(&mut *counted) {
        counted.sum = powers(&mut row[counted.start..counted.end], counted.factor, counted.max, &exp);
    }
    // 2. Each one's share.
    let mut are_numbers = true;
    for (row, &mut Counted { start, end, sum, .. }) in rows.chunks_exact_mut(width).zip(counted) {
        // What is NaN makes all of its row so.
        let hidden = if sum.is_nan() { sum } else { 0.0 };
        are_numbers &= !sum.is_nan();
        row[..start].fill(hidden);
        row[end..].fill(hidden);
        let (fours, rest) = row[start..end].as_chunks_mut::<4>();
        rest.iter_mut().for_each(|power| *power /= sum);
        let sum = Lanes::splat(sum);
        fours.iter_mut().for_each(|four| store(load(four).div(sum), four));
    }
    are_numbers
}

/// row = exp(row · factor - max); gives the sum.
#[inline(always)]
fn powers(row: &mut [f32], factor: f32, max: f32, exp: &Exponential) -> f32 {
    let (fours, rest) = row.as_chunks_mut::<4>();
    let (factors, max) = (Lanes::splat(factor), Lanes::splat(max));
    let mut sum = Lanes::splat(0.0);
    for four in fours {
        let power = exp.of(load(four).mul(factors).sub(max));
        sum = sum.add(power);
        store(power, four);
    }
    if !rest.is_empty() {
        let power = exp.of(scaled(rest, factor).sub(max));
        sum = sum.add(power);
        rest.iter_mut().zip(power.to_array()).for_each(|(to, power)| *to = power);
    }
    sum.sum()
}

/// Up to three numbers times a factor, filled up with -infinity.
fn scaled(rest: &[f32], factor: f32) -> Lanes {
    Lanes::of(std::array::from_fn(|i| rest.get(i).map_or(f32::NEG_INFINITY, |x| x * factor)))
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
