//! Rotary positions of a row, in place.

/// Turns pairs of the row's first numbers, pair p by the angle with this cosine and sine: `(x, y)` becomes
/// `(x cos - y sin, x sin + y cos)`. The pairs are `(p, p + pairs)`, or neighbours `(2p, 2p + 1)` where `interleaved`
/// (Su et al. 2021, "RoFormer"; <https://onnx.ai/onnx/operators/onnx__RotaryEmbedding.html>).
pub fn rotate_row(row: &mut [f32], cos: &[f32], sin: &[f32], interleaved: bool) {
    let pairs = cos.len();
    for (pair, (cos, sin)) in cos.iter().zip(sin).enumerate() {
        let [left, right] = pair_at(pair, pairs, interleaved);
        let (x, y) = (row[left], row[right]);
        row[left] = x * cos - y * sin;
        row[right] = x * sin + y * cos;
    }
}

/// Where the two numbers of a pair lie.
pub fn pair_at(pair: usize, pairs: usize, interleaved: bool) -> [usize; 2] {
    if interleaved { [2 * pair, 2 * pair + 1] } else { [pair, pair + pairs] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_turn_of_either_kind_leaves_the_rest_alone() {
        let mut row = [1.0, 2.0, 3.0, 4.0, 5.0];
        rotate_row(&mut row, &[0.0, 1.0], &[1.0, 0.0], false);
        assert_eq!(row, [-3.0, 2.0, 1.0, 4.0, 5.0]);
        let mut row = [1.0, 2.0, 3.0, 4.0, 5.0];
        rotate_row(&mut row, &[0.0, 1.0], &[1.0, 0.0], true);
        assert_eq!(row, [-2.0, 1.0, 3.0, 4.0, 5.0]);
    }
}
