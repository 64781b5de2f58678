//! Biases by distance: ALiBi's slopes and T5's buckets.

use crate::error::{AttnError, Result};
use crate::positions::power;

/// Slopes 2^(-8 (h + 1) / n) for a power of two n; in between, those of the next lower power and every other of the next higher.
pub(crate) fn alibi_slope(head: usize, heads: usize) -> f32 {
    let slope = |head: usize, heads: usize| power(2.0, -8.0 * (head + 1) as f64 / heads as f64) as f32;
    let lower = if heads.is_power_of_two() { heads } else { heads.next_power_of_two() / 2 };
    if head < lower { slope(head, lower) } else { slope(2 * (head - lower), 2 * lower) }
}

/// How many distances have a bucket of their own.
pub(crate) fn exact_distances(buckets: usize, bidirectional: bool) -> usize {
    buckets / if bidirectional { 4 } else { 2 }
}

pub(crate) fn check_buckets(
    buckets: usize,
    heads: usize,
    table: &[u8],
    bidirectional: bool,
    max_distance: usize,
) -> Result<()> {
    let exact = exact_distances(buckets, bidirectional);
    let cells = (buckets as u64).saturating_mul(heads as u64).saturating_mul(4);
    if exact == 0 || max_distance <= exact || table.is_empty() || table.len() as u64 != cells {
        return Err(AttnError::option(
            "relative",
            format!("{buckets} buckets, maxDistance {max_distance}, {} numbers", table.len() / 4),
            "a table [buckets, heads], at least 2 buckets for each direction, maxDistance above half of those",
        ));
    }
    Ok(())
}

/// T5's bucket of a key's distance from its query: near ones one by one, far ones by the logarithm, in float32 as there.
pub(crate) fn bucket(ahead: i64, buckets: usize, bidirectional: bool, max_distance: usize) -> usize {
    let (direction, first, distance) = match bidirectional {
        true => (buckets / 2, if ahead > 0 { buckets / 2 } else { 0 }, ahead.unsigned_abs()),
        false => (buckets, 0, ahead.min(0).unsigned_abs()),
    };
    let exact = exact_distances(buckets, bidirectional);
    if distance < exact as u64 {
        return first + distance as usize;
    }
    let share = (distance as f32 / exact as f32).ln() / (max_distance as f64 / exact as f64).ln() as f32;
    first + (exact + (share * (direction - exact) as f32) as usize).min(direction - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alibi_slopes_are_the_papers() {
        let slopes: Vec<f32> = (0..8).map(|head| alibi_slope(head, 8)).collect();
        assert_eq!(slopes, [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015_625, 0.007_812_5, 0.003_906_25]);
        assert_eq!(alibi_slope(2, 3), 0.0625_f32.powf(0.5));
    }
}
