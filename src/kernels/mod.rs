//! The loops: a plain reference beside each fast version, tests in the same file.

pub mod activation;
pub mod attention;
pub(crate) mod exp;
pub mod lanes;
pub mod layer_norm;
pub mod matmul;
pub mod rms_norm;
pub mod rotary;
pub mod softmax;
