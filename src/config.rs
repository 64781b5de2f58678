//! Sizes and options, each checked once, here. The defaults of the whole project live in this file.

use serde::{Deserialize, Serialize};

use crate::error::{AttnError, Result};

/// The fill of a hidden score in much teaching code; with it a row whose keys are all hidden becomes uniform.
pub const MASK_FILL: f32 = -1e9;
/// PyTorch's default for LayerNorm.
pub const LAYER_NORM_EPS: f32 = 1e-5;

/// What a row with nothing allowed gives when the fill is -infinity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum EmptyRow {
    /// NaN, as `softmax` of -infinity alone gives.
    #[default]
    Nan,
    /// Zeros, as PyTorch's fused attention gives.
    Zero,
}

/// The non-linearity between the two layers of a feed-forward network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// max(0, x)
    #[default]
    Relu,
    /// x Φ(x), with the exact error function
    Gelu,
    /// GELU's tanh approximation, as in GPT-2
    GeluTanh,
    /// x sigmoid(x)
    Silu,
}

/// The sizes of multi-head attention, after `torch.nn.MultiheadAttention` with free head sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MultiHeadAttentionOptions {
    /// Width of the inputs of the query and of the output.
    pub d_model: usize,
    /// Number of heads.
    pub n_heads: usize,
    /// Width of a head's query and key; default dModel / nHeads.
    #[serde(default)]
    pub d_k: Option<usize>,
    /// Width of a head's value; default dModel / nHeads.
    #[serde(default)]
    pub d_v: Option<usize>,
    /// Width of the key's input; default dModel.
    #[serde(default)]
    pub k_dim: Option<usize>,
    /// Width of the value's input; default dModel.
    #[serde(default)]
    pub v_dim: Option<usize>,
    /// Heads of key and value, which groups of query heads share; must divide nHeads, default nHeads.
    #[serde(default)]
    pub n_kv_heads: Option<usize>,
    /// Whether the projections of query, key and value have a bias; default true.
    #[serde(default = "yes")]
    pub bias: bool,
    /// Whether the output projection has a bias; default as `bias`.
    #[serde(default)]
    pub out_bias: Option<bool>,
    /// Whether the result is LayerNorm(output + x); default false.
    #[serde(default)]
    pub residual_norm: bool,
    /// The seed of PyTorch's generator that the weights are drawn from.
    #[serde(default)]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub seed: Option<i64>,
}

fn yes() -> bool {
    true
}

impl MultiHeadAttentionOptions {
    /// Self-attention with biases and dModel / nHeads numbers a head.
    pub fn new(d_model: usize, n_heads: usize) -> Self {
        Self {
            d_model,
            n_heads,
            d_k: None,
            d_v: None,
            k_dim: None,
            v_dim: None,
            n_kv_heads: None,
            bias: true,
            out_bias: None,
            residual_norm: false,
            seed: None,
        }
    }

    /// Whether a module can be made of these sizes.
    ///
    /// # Errors
    /// `not_divisible` where dModel / nHeads is needed and not whole, `invalid_option` for a size that is none.
    pub fn check(&self) -> Result<()> {
        self.sizes().map(drop)
    }

    pub(crate) fn sizes(&self) -> Result<HeadSizes> {
        positive("dModel", self.d_model)?;
        positive("nHeads", self.n_heads)?;
        let share = || {
            if self.d_model.is_multiple_of(self.n_heads) {
                Ok(self.d_model / self.n_heads)
            } else {
                Err(AttnError::NotDivisible { d_model: self.d_model, n_heads: self.n_heads })
            }
        };
        let sizes = HeadSizes {
            d_model: self.d_model,
            n_heads: self.n_heads,
            n_kv_heads: positive("nKvHeads", self.n_kv_heads.unwrap_or(self.n_heads))?,
            d_k: positive("dK", self.d_k.map_or_else(share, Ok)?)?,
            d_v: positive("dV", self.d_v.map_or_else(share, Ok)?)?,
            k_dim: positive("kDim", self.k_dim.unwrap_or(self.d_model))?,
            v_dim: positive("vDim", self.v_dim.unwrap_or(self.d_model))?,
        };
        if !sizes.n_heads.is_multiple_of(sizes.n_kv_heads) {
            let expected = format!("a divisor of nHeads {}", self.n_heads);
            return Err(AttnError::option("nKvHeads", sizes.n_kv_heads, &expected));
        }
        Ok(sizes)
    }
}

/// The sizes of a module, all known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadSizes {
    pub d_model: usize,
    pub n_heads: usize,
    pub n_kv_heads: usize,
    pub d_k: usize,
    pub d_v: usize,
    pub k_dim: usize,
    pub v_dim: usize,
}

/// What the weights of a module may take: 1 GiB. More is refused before it is asked for.
pub(crate) const MAX_WEIGHT_BYTES: u64 = 1 << 30;

/// Far above what fits in memory, far below what overflows when multiplied into a shape.
const LARGEST_SIZE: usize = 1 << 24;

fn positive(option: &str, value: usize) -> Result<usize> {
    if (1..=LARGEST_SIZE).contains(&value) {
        Ok(value)
    } else {
        Err(AttnError::option(option, value, "a whole number from 1 to 16777216"))
    }
}

/// The sizes of a transformer block, or of a stack of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TransformerOptions {
    /// Width of the tokens.
    pub d_model: usize,
    /// Number of heads of each attention.
    pub n_heads: usize,
    /// Number of blocks; absent for a single block.
    #[serde(default)]
    pub n_layers: Option<usize>,
    /// Width of the feed-forward network's middle; default 4 dModel.
    #[serde(default)]
    pub d_ff: Option<usize>,
    /// Its non-linearity; default "relu".
    #[serde(default)]
    pub activation: Activation,
    /// Normalise before attention and feed-forward instead of after; default false.
    #[serde(default)]
    pub norm_first: bool,
    /// LayerNorm's epsilon; default 1e-5.
    #[serde(default = "layer_norm_eps")]
    pub eps: f32,
    /// The seed of PyTorch's generator that the weights are drawn from.
    #[serde(default)]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub seed: Option<i64>,
}

fn layer_norm_eps() -> f32 {
    LAYER_NORM_EPS
}

impl TransformerOptions {
    /// One post-norm block with ReLU and dFf = 4 dModel.
    pub fn new(d_model: usize, n_heads: usize) -> Self {
        Self {
            d_model,
            n_heads,
            n_layers: None,
            d_ff: None,
            activation: Activation::Relu,
            norm_first: false,
            eps: LAYER_NORM_EPS,
            seed: None,
        }
    }

    /// Whether a module can be made of these sizes.
    ///
    /// # Errors
    /// `not_divisible` where the heads do not divide dModel, `invalid_option` for a size that is none.
    pub fn check(&self) -> Result<()> {
        MultiHeadAttentionOptions::new(self.d_model, self.n_heads).check()?;
        self.sizes().map(drop)
    }

    /// (n_layers, d_ff)
    pub(crate) fn sizes(&self) -> Result<(usize, usize)> {
        if !(self.eps >= 0.0 && self.eps.is_finite()) {
            return Err(AttnError::option("eps", self.eps, "a finite number of at least 0"));
        }
        positive("dModel", self.d_model)?;
        let n_layers = positive("nLayers", self.n_layers.unwrap_or(1))?;
        let d_ff = positive("dFf", self.d_ff.unwrap_or(4 * self.d_model))?;
        let (wide, layers) = (self.d_model as u64, n_layers as u64);
        let weights = wide.saturating_mul(4 * wide + 2 * d_ff as u64);
        let needed = weights.saturating_mul(4).saturating_mul(layers);
        if needed > MAX_WEIGHT_BYTES {
            return Err(AttnError::TooLarge { needed, max_bytes: MAX_WEIGHT_BYTES });
        }
        Ok((n_layers, d_ff))
    }
}

/// How one pass through a module attends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ForwardOptions {
    /// Hide every key after the query; default false.
    pub is_causal: bool,
    /// What a hidden score becomes; default -1e9, -Infinity for the exact form.
    pub mask_fill: f32,
    /// What a row with nothing allowed gives when maskFill is -Infinity; default "nan".
    pub empty_row: EmptyRow,
    /// Whether the weights are returned; default true.
    pub need_weights: bool,
    /// Whether the weights are returned as their mean over the heads; default false.
    pub average_weights: bool,
    /// Whether every stage is kept; default false.
    pub trace: bool,
    /// A factor for each head's context; 0 switches a head off.
    pub head_mask: Option<Vec<f32>>,
}

impl Default for ForwardOptions {
    fn default() -> Self {
        Self {
            is_causal: false,
            mask_fill: MASK_FILL,
            empty_row: EmptyRow::Nan,
            need_weights: true,
            average_weights: false,
            trace: false,
            head_mask: None,
        }
    }
}

/// How scaled dot-product attention attends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ScaledDotProductOptions {
    /// Hide every key after the query; default false.
    pub is_causal: bool,
    /// The factor of the scores; default 1 / sqrt(d_k).
    pub scale: Option<f32>,
    /// softcap * tanh(scaled / softcap) before the mask; default 0, which is off.
    pub softcap: f32,
    /// What a hidden score becomes; default -1e9, -Infinity for the exact form.
    pub mask_fill: f32,
    /// What a row with nothing allowed gives when maskFill is -Infinity; default "nan".
    pub empty_row: EmptyRow,
    /// Whether the weights are returned; default true.
    pub need_weights: bool,
    /// Whether every stage is kept; default false.
    pub trace: bool,
}

impl Default for ScaledDotProductOptions {
    fn default() -> Self {
        Self {
            is_causal: false,
            scale: None,
            softcap: 0.0,
            mask_fill: MASK_FILL,
            empty_row: EmptyRow::Nan,
            need_weights: true,
            trace: false,
        }
    }
}

impl ScaledDotProductOptions {
    pub(crate) fn check(&self) -> Result<()> {
        if self.softcap >= 0.0 && self.softcap.is_finite() {
            Ok(())
        } else {
            Err(AttnError::option("softcap", self.softcap, "a finite number of at least 0 (0 is off)"))
        }
    }
}

/// What a pass that runs again from the mask on does with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct RemaskOptions {
    /// Hide every key after the query; default false.
    pub is_causal: bool,
    /// What a hidden score becomes; default -1e9, -Infinity for the exact form.
    pub mask_fill: f32,
    /// What a row with nothing allowed gives when maskFill is -Infinity; default "nan".
    pub empty_row: EmptyRow,
}

impl Default for RemaskOptions {
    fn default() -> Self {
        Self { is_causal: false, mask_fill: MASK_FILL, empty_row: EmptyRow::Nan }
    }
}
