//! The exponential of numbers that are not above 0, as a softmax takes it, four at a time.

use std::f32::consts::LOG2_E;

use super::lanes::Lanes;

/// Below, e^x is less than half of the smallest float32.
pub(crate) const LOWEST: f32 = -104.0;

const LN_2_HIGH: f32 = 355.0 / 512.0;
const LN_2_LOW: f32 = -2.121_944_4e-4;
/// What 2^n is too large by until the end, so that it is normal down to n = -150.
const STEP: i32 = 24;
/// A number with this added is rounded to a whole one, which stands with the bias of exponents in the lowest bits.
const ROUND: f32 = 12_582_912.0 + (127 + STEP) as f32;
/// e^r = 1 + r + r² (c4 + r (c3 + ...)) within 3.1e-9 of it for |r| <= ln 2 / 2, by Remez's exchange.
const TERMS: [f32; 5] = [1.381_454e-3, 8.368_745e-3, 4.166_839e-2, 1.666_652_1e-1, 4.999_999_3e-1];

static NUMBERS: [f32; 12] = [
    LOWEST,
    LOG2_E,
    ROUND,
    -LN_2_HIGH,
    -LN_2_LOW,
    TERMS[0],
    TERMS[1],
    TERMS[2],
    TERMS[3],
    TERMS[4],
    1.0,
    1.0 / (1 << STEP) as f32,
];

/// The numbers that [`Exponential::of`] needs, in registers.
pub(crate) struct Exponential([Lanes; NUMBERS.len()]);

impl Exponential {
    /// Takes them from memory, out of sight of compilers, for a browser's makes a constant anew wherever it is used: that was a third
    /// of the time.
    #[inline(always)]
    pub fn new() -> Self {
        Self(std::hint::black_box(&NUMBERS).map(Lanes::splat))
    }

    /// e^x for x <= 0. Within 2 units in the last place where the result is normal, and within the smallest float32 where it is not;
    /// 0 from -104 down, NaN for NaN.
    ///
    /// x = n ln 2 + r with |r| <= ln 2 / 2, and e^x = 2^n e^r (Cody & Waite 1980).
    #[inline(always)]
    pub fn of(&self, x: Lanes) -> Lanes {
        let Self([lowest, log2_e, round, minus_ln_2_high, minus_ln_2_low, c0, c1, c2, c3, c4, one, step]) = *self;
        let is_zero = x.at_most(lowest);
        let x = x.without(is_zero);
        // 1. n and r, ln 2 in two parts so that n times the first is exact.
        let rounded = x.mul_add(log2_e, round);
        let n = rounded.sub(round);
        let r = n.mul_add(minus_ln_2_low, n.mul_add(minus_ln_2_high, x));
        // 2. e^r, in pairs of terms, for a processor computes them side by side (Estrin 1960).
        let square = r.mul(r);
        let [first, second] = [c1.mul_add(r, c2), c3.mul_add(r, c4)];
        let tail = c0.mul_add(square, first).mul_add(square, second);
        let power = tail.mul_add(square, r).add(one);
        // 3. Times 2^n, in two steps. What is to be 0 is made so between them: a product that vanishes takes several times as long.
        power.mul(rounded.power_of_two()).without(is_zero).mul(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exp_of(x: f32) -> f32 {
        Exponential::new().of(Lanes::splat(x)).to_array()[0]
    }

    /// The error of one value in units of the last place, of the smallest float32 where the result is subnormal.
    fn error(x: f32) -> f64 {
        let expected = f64::from(x).exp();
        let unit = f64::from((expected as f32).max(f32::MIN_POSITIVE)).log2().floor().exp2() * 2f64.powi(-23);
        ((f64::from(exp_of(x)) - expected) / unit).abs()
    }

    /// Every 47th float32 from -104 to 0, so that each binade is met in many places.
    #[test]
    fn within_two_units_in_the_last_place() {
        let mut worst = (0.0, 0.0);
        for bits in (0..103.9f32.to_bits()).step_by(47) {
            let x = -f32::from_bits(bits);
            if error(x) > worst.0 {
                worst = (error(x), x);
            }
        }
        println!("exp: at most {:.3} units, at {}", worst.0, worst.1);
        assert!(worst.0 <= 2.0, "{worst:?}");
    }

    #[test]
    fn edges() {
        assert_eq!(exp_of(0.0), 1.0);
        assert_eq!(exp_of(-0.0), 1.0);
        assert_eq!([exp_of(f32::NEG_INFINITY), exp_of(-1e9), exp_of(-104.0), exp_of(f32::MIN)], [0.0; 4]);
        assert!(exp_of(f32::NAN).is_nan());
    }
}
