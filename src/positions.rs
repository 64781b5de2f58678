//! Tables of positions: the angles of rotary positions, and sines and cosines to be added.

use crate::recipe::Rotation;
use crate::tensor::Tensor;

/// `base` to an exponent, right to some units in the last place: far finer than the float32 that is made of it, and 2 kB of WebAssembly less
/// than a power that is right to one.
pub(crate) fn power(base: f64, exponent: f64) -> f64 {
    libm::exp(exponent * base.ln())
}

/// Row i turns pair p by `i / base^(2 p / dim)` (Su et al. 2021, section 3.2.2).
pub(crate) fn rotation(n: usize, dim: usize, base: f64, interleaved: bool) -> Rotation {
    let pairs = dim / 2;
    let turns: Vec<f64> = (0..pairs).map(|pair| power(base, -2.0 * pair as f64 / dim as f64)).collect();
    let angle = |at: usize| (at / pairs) as f64 * turns[at % pairs];
    let table = |of: fn(f64) -> f64| Tensor {
        shape: vec![n, pairs],
        data: (0..n * pairs).map(|at| of(angle(at)) as f32).collect(),
    };
    Rotation { cos: table(f64::cos), sin: table(f64::sin), interleaved }
}

/// `[n, d_model]`: in row i, columns 2 p and 2 p + 1 are the sine and cosine of `i / 10000^(2 p / d_model)`
/// (Vaswani et al. 2017, section 3.5).
pub fn sinusoidal(n: usize, d_model: usize) -> Tensor {
    let number = |at: usize| {
        let (i, c) = ((at / d_model) as f64, at % d_model);
        let angle = i * power(10_000.0, -((c - c % 2) as f64) / d_model as f64);
        (if c % 2 == 0 { angle.sin() } else { angle.cos() }) as f32
    };
    Tensor { shape: vec![n, d_model], data: (0..n * d_model).map(number).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_is_0_1_0_1_and_the_next_turns_by_one() {
        let table = sinusoidal(2, 4);
        assert_eq!(table.data[..4], [0.0, 1.0, 0.0, 1.0]);
        assert_eq!(table.data[4..], [1f32.sin(), 1f32.cos(), 0.01f32.sin(), 0.01f32.cos()]);
    }

    #[test]
    fn the_first_pair_turns_by_one_radian_a_position() {
        let rotation = rotation(3, 4, 10_000.0, false);
        assert_eq!(rotation.cos.data, [1.0, 1.0, 1f32.cos(), 0.01f32.cos(), 2f32.cos(), 0.02f32.cos()]);
    }
}
