//! The exponential of numbers that are not above 0, as a softmax takes it, four at a time.

use super::lanes::Lanes;

/// Below, e^x is less than half of the smallest float32.
pub(crate) const LOWEST: f32 = -104.0;

/// e^x for x <= 0. Within 2 units in the last place where the result is normal, and within the smallest float32 where it is not; 0
/// from -104 down, NaN for NaN.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2, and e^x = 2^n e^r (Cody & Waite 1980). The polynomial for e^r is that of the Cephes
/// library (S. Moshier), as avx_mathfun has it.
#[inline(always)]
pub(crate) fn exp(x: Lanes) -> Lanes {
    const LN_2_HIGH: f32 = 355.0 / 512.0;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const STEP: i32 = 24;
    const TAIL: [f32; 5] = [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];

    // Products that vanish take processors several times as long: what would be 0 is computed as something else.
    let is_zero = x.at_most(Lanes::splat(LOWEST));
    let x = x.without(is_zero);
    // 1. n and r, ln 2 in two parts so that n times the first is exact.
    let n = x.mul(Lanes::splat(std::f32::consts::LOG2_E)).nearest();
    let r = n.mul_add(Lanes::splat(-LN_2_HIGH), x);
    let r = n.mul_add(Lanes::splat(-LN_2_LOW), r);
    // 2. e^r = 1 + r + r² (1/2 + r/6 + ...).
    let tail = TAIL.iter().fold(Lanes::splat(1.987_569_1e-4), |sum, &term| sum.mul_add(r, Lanes::splat(term)));
    let power = tail.mul_add(r.mul(r), r).add(Lanes::splat(1.0));
    // 3. Times 2^n in two steps, for n below -126.
    power.mul(n.power_of_two::<STEP>()).mul(Lanes::splat(1.0 / (1 << STEP) as f32)).without(is_zero)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exp_of(x: f32) -> f32 {
        exp(Lanes::splat(x)).to_array()[0]
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
