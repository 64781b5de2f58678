//! Sizes and options, each checked once, here, with their defaults.

use crate::error::{AttnError, Result};
use crate::given::{read_fields, words};
use crate::text::number;

/// The fill of a hidden score in much teaching code; with it a row whose keys are all hidden becomes uniform.
pub const MASK_FILL: f32 = -1e9;
/// PyTorch's default for LayerNorm.
pub const LAYER_NORM_EPS: f32 = 1e-5;
/// The base of the angles of rotary positions (Su et al. 2021, section 3.2.2).
const ROPE_BASE: f64 = 10_000.0;

/// What a row gives whose scores are all -infinity: one with nothing allowed, when that is the fill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "snake_case"))]
pub enum EmptyRow {
    /// NaN, as `softmax` of -infinity alone gives.
    #[default]
    Nan,
    /// Zeros, as PyTorch's fused attention gives.
    Zero,
}

words!(EmptyRow: Nan, Zero);

/// The non-linearity between the two layers of a feed-forward network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "snake_case"))]
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
    /// x sigmoid(1.702 x), as in CLIP
    QuickGelu,
}

words!(Activation: Relu, Gelu, GeluTanh, Silu, QuickGelu);

/// The normalisation of a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "snake_case"))]
pub enum NormKind {
    /// LayerNorm (Ba et al. 2016): mean 0, variance 1, then weight and bias.
    #[default]
    Layer,
    /// RMSNorm (Zhang & Sennrich 2019): root mean square 1, then the weight; no mean, no bias.
    Rms,
}

words!(NormKind: Layer, Rms);

/// How a module knows where a token stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "snake_case"))]
pub enum Positions {
    /// Not at all.
    #[default]
    None,
    /// Queries and keys are turned by an angle for each position (Su et al. 2021, RoPE).
    Rope,
    /// Sines and cosines are added to the input (Vaswani et al. 2017, section 3.5).
    Sinusoidal,
    /// A row for each position, `positions.weight` `[maxLength, d_model]`, is added to the input.
    Learned,
}

words!(Positions: None, Rope, Sinusoidal, Learned);

/// How weights are drawn: `linear`, each projection as an `nn.Linear`, or `torch`, as `torch.nn.MultiheadAttention` draws them; a block of
/// `torch` also drops numbers in training in the order of PyTorch's layers with `batch_first=True`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "snake_case"))]
pub enum Init {
    /// In the order query, key, value, out.
    #[default]
    Linear,
    /// The output projection, then Xavier-uniform query, key and value; biases of zero.
    Torch,
}

words!(Init: Linear, Torch);

/// The sizes of multi-head attention, after `torch.nn.MultiheadAttention` with free head sizes.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "camelCase"))]
pub struct MultiHeadAttentionOptions {
    /// Width of the inputs of the query and of the output.
    pub d_model: usize,
    /// Number of heads.
    pub n_heads: usize,
    /// Width of a head's query and key; default dModel / nHeads.
    pub d_k: Option<usize>,
    /// Width of a head's value; default dModel / nHeads.
    pub d_v: Option<usize>,
    /// Width of the key's input; default dModel.
    pub k_dim: Option<usize>,
    /// Width of the value's input; default dModel.
    pub v_dim: Option<usize>,
    /// Heads of key and value, which groups of query heads share; must divide nHeads, default nHeads.
    pub n_kv_heads: Option<usize>,
    /// Whether the projections of query, key and value have a bias; default true.
    pub bias: bool,
    /// Whether the output projection has a bias; default as `bias`.
    pub out_bias: Option<bool>,
    /// Whether the result is LayerNorm(output + x); default false.
    pub residual_norm: bool,
    /// Add a learned key and value, `bias_k` and `bias_v`, behind the others; never hidden; default false.
    pub bias_kv: bool,
    /// Add a key and a value of zeros behind the others; never hidden; default false.
    pub add_zero_attn: bool,
    /// The factor of the scores; default 1 / sqrt(dK).
    pub scale: Option<f32>,
    /// RMSNorm of each head's query and key, `query_norm.weight` and `key_norm.weight`, as in Qwen3; default false.
    pub qk_norm: bool,
    /// That norm's epsilon; default 1e-6.
    pub qk_norm_eps: f32,
    /// "rope" turns queries and keys by their position; default "none".
    pub positions: Positions,
    /// The base of the angles; default 10000.
    pub rope_base: f64,
    /// How many of a head's numbers are turned, the first ones; even, default dK.
    pub rotary_dim: Option<usize>,
    /// Turn neighbours (0, 1), (2, 3), ... together instead of the two halves; default false.
    pub rope_interleaved: bool,
    /// How the weights are drawn; default "linear".
    pub init: Init,
    /// The seed of PyTorch's generator that the weights are drawn from.
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub seed: Option<i64>,
}

read_fields!(MultiHeadAttentionOptions::new(d_model, n_heads): d_k, d_v, k_dim, v_dim, n_kv_heads, bias, out_bias,
    residual_norm, bias_kv, add_zero_attn, scale, qk_norm, qk_norm_eps, positions, rope_base, rotary_dim, rope_interleaved, init, seed);

/// The epsilon of the norm of queries and keys, Qwen3's.
const QK_NORM_EPS: f32 = 1e-6;

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
            bias_kv: false,
            add_zero_attn: false,
            scale: None,
            qk_norm: false,
            qk_norm_eps: QK_NORM_EPS,
            positions: Positions::None,
            rope_base: ROPE_BASE,
            rotary_dim: None,
            rope_interleaved: false,
            init: Init::Linear,
            seed: None,
        }
    }

    /// Whether a module can be made of these sizes, its weights within `max_bytes`.
    ///
    /// # Errors
    /// `not_divisible` where dModel / nHeads is needed and not whole, `invalid_option` for a size that is none, `too_large`.
    pub fn check(&self, max_bytes: usize) -> Result<()> {
        fits(self.sizes()?.weights(), max_bytes)
    }

    pub(crate) fn sizes(&self) -> Result<HeadSizes> {
        positive("dModel", self.d_model)?;
        positive("nHeads", self.n_heads)?;
        let share = || {
            if self.d_model.is_multiple_of(self.n_heads) {
                Ok(self.d_model / self.n_heads)
            } else {
                Err(Box::new(AttnError::NotDivisible { d_model: self.d_model, n_heads: self.n_heads }))
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
        finite("scale", self.scale.unwrap_or(0.0))?;
        epsilon("qkNormEps", self.qk_norm_eps)?;
        if !matches!(self.positions, Positions::None | Positions::Rope) {
            return Err(AttnError::option("positions", "positions added to the input", "\"none\" or \"rope\""));
        }
        if !(self.rope_base > 0.0 && self.rope_base.is_finite()) {
            return Err(AttnError::option("ropeBase", number(self.rope_base), "a finite number above 0"));
        }
        if self.positions == Positions::Rope || self.rotary_dim.is_some() {
            self.rotary_dim(sizes.d_k)?;
        }
        Ok(sizes)
    }

    /// How many of a head's numbers are turned.
    pub(crate) fn rotary_dim(&self, d_k: usize) -> Result<usize> {
        let dim = self.rotary_dim.unwrap_or(d_k);
        if dim == 0 || dim > d_k || !dim.is_multiple_of(2) {
            return Err(AttnError::option("rotaryDim", dim, &format!("an even number from 2 to dK {d_k}")));
        }
        Ok(dim)
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

impl HeadSizes {
    /// How many numbers the projections hold.
    fn weights(&self) -> u64 {
        let [d_model, n_heads, n_kv_heads, d_k, d_v, k_dim, v_dim] =
            [self.d_model, self.n_heads, self.n_kv_heads, self.d_k, self.d_v, self.k_dim, self.v_dim]
                .map(|size| size as u64);
        let query_and_out = n_heads.saturating_mul(d_k + d_v).saturating_mul(d_model);
        let key = n_kv_heads.saturating_mul(d_k).saturating_mul(k_dim);
        let value = n_kv_heads.saturating_mul(d_v).saturating_mul(v_dim);
        query_and_out.saturating_add(key).saturating_add(value)
    }
}

fn fits(numbers: u64, max_bytes: usize) -> Result<()> {
    // Each once as it is in the state dict, once in the order of the kernels' tiles.
    let needed = numbers.saturating_mul(8);
    if needed > max_bytes as u64 { Err(AttnError::too_large(needed, max_bytes)) } else { Ok(()) }
}

/// Far above what fits in memory, far below what overflows when multiplied into a shape.
const LARGEST_SIZE: usize = 1 << 24;

fn epsilon(option: &str, value: f32) -> Result<()> {
    match value {
        0.0.. if value.is_finite() => Ok(()),
        _ => Err(AttnError::option(option, number(value), "a finite number of at least 0")),
    }
}

fn finite(option: &str, value: f32) -> Result<()> {
    if value.is_finite() { Ok(()) } else { Err(AttnError::option(option, number(value), "a finite number")) }
}

fn positive(option: &str, value: usize) -> Result<usize> {
    if (1..=LARGEST_SIZE).contains(&value) {
        Ok(value)
    } else {
        Err(AttnError::option(option, value, "a whole number from 1 to 16777216"))
    }
}

/// The sizes of a transformer block, or of a stack of them.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "camelCase"))]
pub struct TransformerOptions {
    /// Width of the tokens.
    pub d_model: usize,
    /// Number of heads of each attention.
    pub n_heads: usize,
    /// Number of blocks; absent for a single block.
    pub n_layers: Option<usize>,
    /// Width of the feed-forward network's middle; default 4 dModel.
    pub d_ff: Option<usize>,
    /// Its non-linearity; default "relu".
    pub activation: Activation,
    /// Normalise before attention and feed-forward instead of after; default false.
    pub norm_first: bool,
    /// The norms' epsilon; default 1e-5.
    pub eps: f32,
    /// The norms' kind; default "layer".
    pub norm: NormKind,
    /// One more norm, `norm`, behind the last block of a stack; default false.
    pub final_norm: bool,
    /// Multiply the hidden layer by the activation of a second one, `gate`; default false (Shazeer 2020).
    pub gated: bool,
    /// Feed the feed-forward network from the block's input, beside attention instead of behind it, as in GPT-NeoX; default false.
    pub parallel: bool,
    /// Whether projections, feed-forward and LayerNorm have biases; default true.
    pub bias: bool,
    /// Whether the projections of query, key and value have a bias; default as `bias`.
    pub qkv_bias: Option<bool>,
    /// Width of a head's query, key and value; default dModel / nHeads.
    pub d_k: Option<usize>,
    /// Heads of key and value, which groups of query heads share; must divide nHeads, default nHeads.
    pub n_kv_heads: Option<usize>,
    /// The factor of the scores; default 1 / sqrt(dK).
    pub scale: Option<f32>,
    /// RMSNorm of each head's query and key, with the norms' epsilon, as in Qwen3; default false.
    pub qk_norm: bool,
    /// How tokens know where they stand; default "none".
    pub positions: Positions,
    /// The base of RoPE's angles; default 10000.
    pub rope_base: f64,
    /// How many of a head's numbers RoPE turns; even, default dK.
    pub rotary_dim: Option<usize>,
    /// RoPE turns neighbours together instead of the two halves; default false.
    pub rope_interleaved: bool,
    /// The rows of learned positions; default 512.
    pub max_length: usize,
    /// In training, the probability that a number behind attention, in the feed-forward network and behind it is dropped; default 0.
    pub dropout: f64,
    /// In training, the probability that an attention weight is dropped; default 0.
    pub attention_dropout: f64,
    /// How the weights are drawn; default "linear".
    pub init: Init,
    /// The seed of PyTorch's generator that the weights are drawn from.
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub seed: Option<i64>,
}

read_fields!(TransformerOptions::new(d_model, n_heads): n_layers, d_ff, activation, norm_first, eps, norm, final_norm, gated,
    parallel, bias, qkv_bias, d_k, n_kv_heads, scale, qk_norm, positions, rope_base, rotary_dim, rope_interleaved, max_length,
    dropout, attention_dropout, init, seed);

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
            norm: NormKind::Layer,
            final_norm: false,
            gated: false,
            parallel: false,
            bias: true,
            qkv_bias: None,
            d_k: None,
            n_kv_heads: None,
            scale: None,
            qk_norm: false,
            positions: Positions::None,
            rope_base: ROPE_BASE,
            rotary_dim: None,
            rope_interleaved: false,
            max_length: 512,
            dropout: 0.0,
            attention_dropout: 0.0,
            init: Init::Linear,
            seed: None,
        }
    }

    /// Whether a module can be made of these sizes, its weights within `max_bytes`; with `cross` each block attends twice.
    ///
    /// # Errors
    /// `not_divisible` where the heads do not divide dModel, `invalid_option` for a size that is none, `too_large`.
    pub fn check(&self, cross: bool, max_bytes: usize) -> Result<()> {
        let (n_layers, d_ff) = self.sizes()?;
        let attention = self.attention().sizes()?.weights();
        let feed_forward = (self.d_model as u64).saturating_mul(if self.gated { 3 } else { 2 } * d_ff as u64);
        let block = attention.saturating_mul(if cross { 2 } else { 1 }).saturating_add(feed_forward);
        let learned =
            if self.positions == Positions::Learned { self.max_length as u64 * self.d_model as u64 } else { 0 };
        fits(block.saturating_mul(n_layers as u64).saturating_add(learned), max_bytes)
    }

    /// (n_layers, d_ff)
    pub(crate) fn sizes(&self) -> Result<(usize, usize)> {
        epsilon("eps", self.eps)?;
        for (name, p) in [("dropout", self.dropout), ("attentionDropout", self.attention_dropout)] {
            if !(0.0..=1.0).contains(&p) {
                return Err(AttnError::option(name, number(p), "a probability from 0 to 1"));
            }
        }
        if self.parallel && !self.norm_first {
            return Err(AttnError::option("parallel", true, "true only with normFirst"));
        }
        if self.final_norm && self.n_layers.is_none() {
            return Err(AttnError::option("finalNorm", true, "true only with nLayers"));
        }
        self.attention().sizes()?;
        positive("maxLength", self.max_length)?;
        Ok((positive("nLayers", self.n_layers.unwrap_or(1))?, positive("dFf", self.d_ff.unwrap_or(4 * self.d_model))?))
    }

    /// The attention of each block.
    pub(crate) fn attention(&self) -> MultiHeadAttentionOptions {
        MultiHeadAttentionOptions {
            d_k: self.d_k,
            d_v: self.d_k,
            n_kv_heads: self.n_kv_heads,
            bias: self.qkv_bias.unwrap_or(self.bias),
            out_bias: Some(self.bias),
            scale: self.scale,
            qk_norm: self.qk_norm,
            qk_norm_eps: self.eps,
            positions: if self.positions == Positions::Rope { Positions::Rope } else { Positions::None },
            rope_base: self.rope_base,
            rotary_dim: self.rotary_dim,
            rope_interleaved: self.rope_interleaved,
            init: self.init,
            ..MultiHeadAttentionOptions::new(self.d_model, self.n_heads)
        }
    }
}

/// How one pass through a module attends.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "camelCase"))]
pub struct ForwardOptions {
    /// Hide every key after the query; default false.
    pub is_causal: bool,
    /// What a hidden score becomes; default -1e9, -Infinity for the exact form.
    pub mask_fill: f32,
    /// What a row gives whose scores are all -Infinity, as with nothing allowed when maskFill is -Infinity; default "nan".
    pub empty_row: EmptyRow,
    /// Whether the weights are returned; default true.
    pub need_weights: bool,
    /// Whether the weights are returned as their mean over the heads; default false.
    pub average_weights: bool,
    /// Whether every stage is kept; default false.
    pub trace: bool,
    /// A factor for each head's context; 0 switches a head off.
    #[cfg_attr(feature = "typescript", ts(type = "ArrayLike<number> | null"))]
    pub head_mask: Option<Vec<f32>>,
    /// Drop numbers with the module's probabilities, drawn from a generator; default false.
    pub training: bool,
}

read_fields!(ForwardOptions::default(): is_causal, mask_fill, empty_row, need_weights, average_weights, trace, head_mask,
    training);

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
            training: false,
        }
    }
}

/// How scaled dot-product attention attends.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "camelCase"))]
pub struct ScaledDotProductOptions {
    /// Hide every key after the query; default false.
    pub is_causal: bool,
    /// The factor of the scores; default 1 / sqrt(d_k).
    pub scale: Option<f32>,
    /// softcap * tanh(scaled / softcap) before the mask; default 0, which is off.
    pub softcap: f32,
    /// What a hidden score becomes; default -1e9, -Infinity for the exact form.
    pub mask_fill: f32,
    /// What a row gives whose scores are all -Infinity, as with nothing allowed when maskFill is -Infinity; default "nan".
    pub empty_row: EmptyRow,
    /// Whether the weights are returned; default true.
    pub need_weights: bool,
    /// Whether every stage is kept; default false.
    pub trace: bool,
    /// How many keys are real, for each batch entry; the rest is padding, hidden. The last query stands at the last real key.
    #[cfg_attr(feature = "typescript", ts(type = "ArrayLike<number> | ArrayLike<bigint> | null"))]
    pub kv_lengths: Option<Vec<usize>>,
}

read_fields!(ScaledDotProductOptions::default(): is_causal, scale, softcap, mask_fill, empty_row, need_weights, trace,
    kv_lengths);

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
            kv_lengths: None,
        }
    }
}

impl ScaledDotProductOptions {
    pub(crate) fn check(&self) -> Result<()> {
        finite("scale", self.scale.unwrap_or(0.0))?;
        if self.softcap >= 0.0 && self.softcap.is_finite() {
            Ok(())
        } else {
            Err(AttnError::option("softcap", number(self.softcap), "a finite number of at least 0 (0 is off)"))
        }
    }
}

/// What a pass that runs again from the mask on does with it.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "camelCase"))]
pub struct RemaskOptions {
    /// Hide every key after the query; default false.
    pub is_causal: bool,
    /// What a hidden score becomes; default -1e9, -Infinity for the exact form.
    pub mask_fill: f32,
    /// What a row gives whose scores are all -Infinity, as with nothing allowed when maskFill is -Infinity; default "nan".
    pub empty_row: EmptyRow,
}

read_fields!(RemaskOptions::default(): is_causal, mask_fill, empty_row);

impl Default for RemaskOptions {
    fn default() -> Self {
        Self { is_causal: false, mask_fill: MASK_FILL, empty_row: EmptyRow::Nan }
    }
}
