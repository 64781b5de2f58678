//! Multi-head attention with every number in sight.
//!
//! ```text
//! x ──┬─ W_Q ─ query ─┐
//!     ├─ W_K ─ key ───┴─ scores ─ scaled ─ masked ─ weights ─┐
//!     └─ W_V ─ value ────────────────────────────────────────┴─ context ─ concat ─ W_O ─ output
//! ```
//!
//! A pass is a recipe: each stage declares what it is made from. The recipe is run once with fast kernels, and the
//! [`Trace`] it leaves can open any cell of any stage as arithmetic ([`Trace::explain`]) or run again from the mask
//! on ([`Trace::remask`]). Every pass can also be planned first and run under watch ([`Plan::run`]). Everything is row-major float32; rows are queries, columns are keys.
//!
//! ```
//! use attnscope::{ForwardOptions, Mask, MultiHeadAttention, MultiHeadAttentionOptions, Tensor, torch::Generator};
//!
//! let mut generator = Generator::new(42);
//! let x = Tensor::new(generator.randn(6 * 8), vec![6, 8])?;
//! let mha = MultiHeadAttention::new(&MultiHeadAttentionOptions::new(8, 2), &mut generator, 1 << 30)?;
//! let trace = mha.forward(&x, None, None, Some(&Mask::Causal), &ForwardOptions::default(), 1 << 30)?;
//! assert_eq!(trace.weights(0)?.unwrap().shape, [2, 6, 6]);
//! # Ok::<(), Box<attnscope::AttnError>>(())
//! ```

mod activation;
pub mod analysis;
mod attention;
mod bias;
mod changed;
mod config;
mod error;
mod explain;
pub mod families;
pub mod given;
pub mod gpu_plan;
mod mask;
mod mask_code;
mod multi_head_attention;
pub mod ops;
pub mod outline;
mod parameters;
mod plain;
mod positions;
mod recipe;
mod run;
mod state_dict;
mod tensor;
mod text;
pub mod torch;
mod trace;
mod transformer;

pub use attention::{QueryKeyValue, plan_attention, scaled_dot_product_attention};
pub use attnscope_kernels as kernels;
pub use config::{
    Activation, EmptyRow, ForwardOptions, Init, LAYER_NORM_EPS, MultiHeadAttentionOptions, NormKind, Positions,
    RemaskOptions, ScaledDotProductOptions, TransformerOptions,
};
pub use error::{AttnError, ErrorCode, Result};
pub use explain::{Explanation, Operation, Term};
pub use mask::{MAX_MASK_DEPTH, Mask, MaskAxes, MaskSize, ResolvedMask};
pub use mask_code::TorchConvention;
pub use multi_head_attention::MultiHeadAttention;
pub use plain::Plain;
pub use positions::sinusoidal;
pub use state_dict::StateDict;
pub use tensor::Tensor;
pub use trace::{HandedOut, InPlace, Plan, Stage, StageInfo, Trace};
pub use transformer::{Memory, Transformer};

/// The kernels this build runs: `"relaxed-simd"`, `"simd128"` or `"scalar"`.
pub fn kernel_name() -> &'static str {
    kernels::NAME
}
