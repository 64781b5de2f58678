//! The loops. Those with a fast version have a plain reference beside it, and their tests in the same file.

pub mod attention;
mod exp;
mod lanes;
pub mod layer_norm;
pub mod matmul;
pub mod matrix;
pub mod rms_norm;
pub mod rotary;
pub mod softmax;
pub mod threads;

/// Which build of them this is: `"relaxed-simd"`, `"simd128"` or `"scalar"`.
pub const NAME: &str = lanes::NAME;
