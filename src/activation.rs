//! The feed-forward network's non-linearities, one number at a time.

use crate::config::Activation;

/// The activation of `x`, as PyTorch defines it: `torch.relu`, `torch.nn.GELU` with `approximate` "none" or "tanh", `torch.nn.SiLU`
/// (<https://docs.pytorch.org/docs/stable/generated/torch.nn.GELU.html>).
pub fn activate(activation: Activation, x: f32) -> f32 {
    let wide = f64::from(x);
    match activation {
        // NaN stays NaN, unlike with f32::max.
        Activation::Relu => {
            if x < 0.0 {
                0.0
            } else {
                x
            }
        }
        Activation::Gelu => (0.5 * wide * (1.0 + libm::erf(wide * std::f64::consts::FRAC_1_SQRT_2))) as f32,
        Activation::GeluTanh => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (wide + 0.044_715 * wide.powi(3));
            (0.5 * wide * (1.0 + inner.tanh())) as f32
        }
        Activation::Silu => (wide / (1.0 + libm::exp(-wide))) as f32,
        Activation::QuickGelu => (wide / (1.0 + libm::exp(-1.702 * wide))) as f32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of PyTorch at 1, -2 and 0.
    #[test]
    fn known_values() {
        for (activation, expected) in [
            (Activation::Relu, [1.0, 0.0, 0.0]),
            (Activation::Gelu, [0.841_344_7, -0.045_500_26, 0.0]),
            (Activation::GeluTanh, [0.841_192, -0.045_402_306, 0.0]),
            (Activation::Silu, [0.731_058_6, -0.238_405_84, 0.0]),
            (Activation::QuickGelu, [0.845_795_8, -0.064_341_52, 0.0]),
        ] {
            for (x, expected) in [1.0, -2.0, 0.0].into_iter().zip(expected) {
                assert!((activate(activation, x) - expected).abs() < 1e-6, "{activation:?}({x})");
            }
        }
    }

    #[test]
    fn nan_stays_nan() {
        use Activation::{Gelu, GeluTanh, QuickGelu, Relu, Silu};
        for activation in [Relu, Gelu, GeluTanh, Silu, QuickGelu] {
            assert!(activate(activation, f32::NAN).is_nan());
        }
    }
}
