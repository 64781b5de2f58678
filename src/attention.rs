//! Scaled dot-product attention and multi-head attention ("Attention Is All You Need", Vaswani et al. 2017, section 3.2).

use std::sync::Arc;

use crate::config::{
    EmptyRow, ForwardOptions, HeadSizes, LAYER_NORM_EPS, MAX_WEIGHT_BYTES, MultiHeadAttentionOptions,
    ScaledDotProductOptions,
};
use crate::error::{AttnError, Result};
use crate::mask::{Mask, ResolvedMask};
use crate::recipe::{LayerNorm, Linear, Made, Recipe, StepId};
use crate::state_dict::{Parameters, StateDict};
use crate::tensor::Tensor;
use crate::torch::Generator;
use crate::trace::{Returns, Stage, Trace, resolve};

/// How the scores become the context.
pub(crate) struct Attend {
    pub scale: f32,
    pub softcap: f32,
    pub mask: Option<Arc<ResolvedMask>>,
    pub mask_fill: f32,
    pub empty_row: EmptyRow,
    pub head_mask: Option<Vec<f32>>,
}

/// softmax(query · keyᵀ · scale + mask) · value, each pass a stage. Gives the context's step.
pub(crate) fn attend(
    recipe: &mut Recipe,
    layer: usize,
    [query, key, value]: [StepId; 3],
    how: Attend,
    side_by_side: bool,
) -> StepId {
    let [batch, heads, n_q, _] = recipe.shape(query)[..] else { unreachable!("queries are cut into heads") };
    let (n_k, d_v) = (recipe.shape(value)[2], recipe.shape(value)[3]);
    let matrix = vec![batch, heads, n_q, n_k];

    // 1. Every query meets every key.                                          [batch, heads, n_q, n_k]
    let scores = recipe.push(layer, Stage::Scores, matrix.clone(), Made::Dot { query, key });
    // 2. The scale keeps the softmax from saturating as d_k grows.
    let mut last = recipe.push(layer, Stage::Scaled, matrix.clone(), Made::Scaled { from: scores, factor: how.scale });
    // 3. A soft limit, where one is asked for.
    if how.softcap > 0.0 {
        last = recipe.push(layer, Stage::Capped, matrix.clone(), Made::Softcap { from: last, cap: how.softcap });
    }
    // 4. What a query may not see is filled.
    let masked = Made::Masked { from: last, mask: how.mask, fill: how.mask_fill };
    let masked = recipe.push(layer, Stage::Masked, matrix.clone(), masked);
    // 5. Each row becomes shares that sum to 1.
    let softmax = Made::Softmax { from: masked, zero_empty_rows: how.empty_row == EmptyRow::Zero };
    let weights = recipe.push(layer, Stage::Weights, matrix, softmax);
    // 6. The shares mix the values.                                            [batch, heads, n_q, d_v]
    let context = Made::Context { weights, value, head_mask: how.head_mask };
    let shape = [batch, heads, n_q, d_v];
    if side_by_side {
        recipe.push_heads(layer, Stage::Context, shape, context)
    } else {
        recipe.push(layer, Stage::Context, shape.to_vec(), context)
    }
}

/// Attention on queries, keys and values as they are: `[n, d]`, `[heads, n, d]` or `[batch, heads, n, d]`
/// (<https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html>).
/// Fewer key and value heads than query heads are shared by groups of them.
///
/// # Errors
/// `shape_mismatch`, `mask_shape`, `invalid_option`, or `too_large` where the pass needs more than `max_bytes`.
pub fn scaled_dot_product_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: Option<&Mask>,
    options: &ScaledDotProductOptions,
    max_bytes: usize,
) -> Result<Trace> {
    options.check()?;
    let rank = query.shape.len();
    if !(2..=4).contains(&rank) {
        return Err(AttnError::shape("query", &query.shape, "[n, d], [heads, n, d] or [batch, heads, n, d]"));
    }
    let four = |tensor: &Tensor| {
        let mut shape = [1; 4];
        shape[4 - rank..].copy_from_slice(&tensor.shape);
        shape
    };
    for (name, tensor) in [("key", key), ("value", value)] {
        if tensor.shape.len() != rank {
            return Err(AttnError::shape(name, &tensor.shape, format!("{rank} axes, as the query {:?}", query.shape)));
        }
    }
    let ([batch, heads, n_q, d_k], [_, kv_heads, n_k, _]) = (four(query), four(key));
    if four(key)[0] != batch || four(key)[3] != d_k || !heads.is_multiple_of(kv_heads) {
        let expected =
            format!("the batch and width of the query {:?}, and a number of heads that divides its heads", query.shape);
        return Err(AttnError::shape("key", &key.shape, expected));
    }
    if four(value)[..3] != four(key)[..3] {
        return Err(AttnError::shape("value", &value.shape, format!("the key's {:?} but for the width", key.shape)));
    }

    let mut recipe = Recipe::new(options.trace);
    let qkv = [(Stage::Query, query), (Stage::Key, key), (Stage::Value, value)]
        .map(|(stage, tensor)| recipe.push(0, stage, four(tensor).to_vec(), Made::Given(tensor.data.clone())));
    let how = Attend {
        scale: options.scale.unwrap_or_else(|| 1.0 / (d_k as f32).sqrt()),
        softcap: options.softcap,
        mask: resolve(mask, options.is_causal, [batch, heads, n_q, n_k])?,
        mask_fill: options.mask_fill,
        empty_row: options.empty_row,
        head_mask: None,
    };
    attend(&mut recipe, 0, qkv, how, false);
    let returns = Returns { weights: options.need_weights, average_weights: false };
    Trace::run(recipe, 4 - rank, returns, max_bytes)
}

/// Multi-head attention with its weights
/// (<https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html>).
#[derive(Debug, Clone)]
pub struct MultiHeadAttention {
    sizes: HeadSizes,
    query: Linear,
    key: Linear,
    value: Linear,
    out: Linear,
    norm: Option<LayerNorm>,
}

impl MultiHeadAttention {
    /// The weights are drawn as PyTorch draws `query, key, value, out`, each an `nn.Linear`, in that order.
    ///
    /// # Errors
    /// `not_divisible` where dModel / nHeads is needed and not whole, `invalid_option` for a size that is none.
    pub fn new(options: MultiHeadAttentionOptions, generator: &mut Generator) -> Result<Self> {
        let sizes = options.sizes()?;
        let HeadSizes { d_model, n_heads, n_kv_heads, d_k, d_v, k_dim, v_dim } = sizes;
        let mut draw = |name, d_in, d_out, bias| draw_linear(generator, name, d_in, d_out, bias);
        Ok(Self {
            sizes,
            query: draw("query", d_model, n_heads * d_k, options.bias)?,
            key: draw("key", k_dim, n_kv_heads * d_k, options.bias)?,
            value: draw("value", v_dim, n_kv_heads * d_v, options.bias)?,
            out: draw("out", n_heads * d_v, d_model, options.out_bias.unwrap_or(options.bias))?,
            norm: options.residual_norm.then(|| new_norm(d_model, LAYER_NORM_EPS)),
        })
    }

    /// The parameters by name: `query.weight`, `query.bias`, and so on for `key`, `value`, `out`, `norm`.
    pub fn state_dict(&self) -> StateDict {
        self.clone().parameters().into_iter().map(|(name, tensor)| (name, Tensor::clone(tensor))).collect()
    }

    /// Takes the parameters from a state dict, its own or one of the families that `state_dict.rs` knows.
    ///
    /// # Errors
    /// `bad_state_dict` naming the entry that is missing, extra or of the wrong shape; then nothing was loaded.
    pub fn load_state_dict(&mut self, dict: StateDict) -> Result<()> {
        let mut loaded = self.clone();
        crate::state_dict::load(dict, loaded.parameters())?;
        *self = loaded;
        Ok(())
    }

    pub(crate) fn n_heads(&self) -> usize {
        self.sizes.n_heads
    }

    pub(crate) fn parameters(&mut self) -> Parameters<'_> {
        let mut parameters = Parameters::new();
        for linear in [&mut self.query, &mut self.key, &mut self.value, &mut self.out] {
            parameters.extend(linear_parameters(linear));
        }
        if let Some(norm) = &mut self.norm {
            parameters.extend(norm_parameters("norm", norm));
        }
        parameters
    }

    /// Attends from `x` `[n, d_model]` or `[batch, n, d_model]` to itself, or to `key` and `value` of their own length and
    /// width. `key` alone serves as both. The result is `[n, d_model]`, the weights `[heads, n_q, n_k]`.
    ///
    /// # Errors
    /// `shape_mismatch`, `mask_shape`, `invalid_option`, or `too_large` where the pass needs more than `max_bytes`.
    pub fn forward(
        &self,
        x: &Tensor,
        key: Option<&Tensor>,
        value: Option<&Tensor>,
        mask: Option<&Mask>,
        options: &ForwardOptions,
        max_bytes: usize,
    ) -> Result<Trace> {
        let mut recipe = Recipe::new(options.trace);
        let x_shape = rows("x", x, self.sizes.d_model)?;
        let input = recipe.push(0, Stage::Input, x_shape.to_vec(), Made::Given(x.data.clone()));
        let mut other = |stage, name, tensor: Option<&Tensor>, instead: StepId, width: usize| {
            let Some(tensor) = tensor else {
                if recipe.shape(instead)[2] != width {
                    let found = recipe.shape(instead).to_vec();
                    return Err(AttnError::shape(name, &found, format!("{width} numbers a row; give {name} an input")));
                }
                return Ok(instead);
            };
            let shape = rows(name, tensor, width)?;
            if tensor.shape.len() != x.shape.len() || shape[0] != x_shape[0] {
                return Err(AttnError::shape(name, &tensor.shape, format!("the axes and batch of x {:?}", x.shape)));
            }
            Ok(recipe.push(0, stage, shape.to_vec(), Made::Given(tensor.data.clone())))
        };
        let key_input = other(Stage::KeyInput, "key", key, input, self.sizes.k_dim)?;
        let value_input = other(Stage::ValueInput, "value", value, key_input, self.sizes.v_dim)?;
        let (n_k, n_v) = (recipe.shape(key_input)[1], recipe.shape(value_input)[1]);
        if n_k != n_v {
            let found = value.or(key).unwrap_or(x);
            return Err(AttnError::shape("value", &found.shape, format!("{n_k} rows, one for each key")));
        }

        let mask = resolve(mask, options.is_causal, [x_shape[0], self.sizes.n_heads, x_shape[1], n_k])?;
        let output = self.append(&mut recipe, 0, [input, key_input, value_input], mask, options)?;
        if let Some(norm) = &self.norm {
            let residual = recipe.push(0, Stage::Residual, x_shape.to_vec(), Made::Sum { left: output, right: input });
            recipe.push(0, Stage::Norm, x_shape.to_vec(), Made::LayerNorm { from: residual, norm: norm.clone() });
        }
        let returns = Returns { weights: options.need_weights, average_weights: options.average_weights };
        Trace::run(recipe, usize::from(x.shape.len() == 2), returns, max_bytes)
    }

    /// The passes from the inputs to the output, as steps of a recipe. Gives the output's step.
    pub(crate) fn append(
        &self,
        recipe: &mut Recipe,
        layer: usize,
        [input, key_input, value_input]: [StepId; 3],
        mask: Option<Arc<ResolvedMask>>,
        options: &ForwardOptions,
    ) -> Result<StepId> {
        let HeadSizes { n_heads, n_kv_heads, d_k, d_v, .. } = self.sizes;
        if let Some(factors) = &options.head_mask
            && factors.len() != n_heads
        {
            let found = format!("{} numbers", factors.len());
            return Err(AttnError::option("headMask", found, &format!("{n_heads} numbers, one for each head")));
        }
        let (batch, n_q, n_k) = (recipe.shape(input)[0], recipe.shape(input)[1], recipe.shape(key_input)[1]);

        // 1. Project, and cut into heads.                                      [batch, heads, n, d_k or d_v]
        let mut project = |stage, from, linear: &Linear, shape| {
            recipe.push_heads(layer, stage, shape, Made::Linear { from, linear: linear.clone() })
        };
        let query = project(Stage::Query, input, &self.query, [batch, n_heads, n_q, d_k]);
        let key = project(Stage::Key, key_input, &self.key, [batch, n_kv_heads, n_k, d_k]);
        let value = project(Stage::Value, value_input, &self.value, [batch, n_kv_heads, n_k, d_v]);
        // 2. Attend, each head by itself.                                      [batch, heads, n_q, d_v]
        let how = Attend {
            scale: 1.0 / (d_k as f32).sqrt(),
            softcap: 0.0,
            mask,
            mask_fill: options.mask_fill,
            empty_row: options.empty_row,
            head_mask: options.head_mask.clone(),
        };
        let context = attend(recipe, layer, [query, key, value], how, true);
        // 3. The heads side by side.                                           [batch, n_q, heads * d_v]
        let concat = recipe.push(layer, Stage::Concat, vec![batch, n_q, n_heads * d_v], Made::Same { from: context });
        // 4. Mix them.                                                         [batch, n_q, d_model]
        let output = Made::Linear { from: concat, linear: self.out.clone() };
        Ok(recipe.push(layer, Stage::Output, vec![batch, n_q, self.sizes.d_model], output))
    }
}

/// `[batch, n, width]` of an input `[n, width]` or `[batch, n, width]`.
pub(crate) fn rows(name: &str, tensor: &Tensor, width: usize) -> Result<[usize; 3]> {
    match tensor.shape[..] {
        [n, found] if found == width => Ok([1, n, width]),
        [batch, n, found] if found == width => Ok([batch, n, width]),
        _ => Err(AttnError::shape(name, &tensor.shape, format!("[n, {width}] or [batch, n, {width}]"))),
    }
}

pub(crate) fn draw_linear(
    generator: &mut Generator,
    name: &'static str,
    d_in: usize,
    d_out: usize,
    bias: bool,
) -> Result<Linear> {
    let needed = 4 * d_in as u64 * d_out as u64;
    if needed > MAX_WEIGHT_BYTES {
        return Err(AttnError::TooLarge { needed, max_bytes: MAX_WEIGHT_BYTES });
    }
    let drawn = generator.linear(d_in, d_out, bias);
    Ok(Linear {
        name,
        weight: Arc::new(Tensor { shape: vec![d_out, d_in], data: drawn.weight }),
        bias: drawn.bias.map(|bias| Arc::new(Tensor { shape: vec![d_out], data: bias })),
    })
}

pub(crate) fn new_norm(width: usize, eps: f32) -> LayerNorm {
    let filled = |with| Arc::new(Tensor { shape: vec![width], data: vec![with; width] });
    LayerNorm { weight: filled(1.0), bias: filled(0.0), eps }
}

pub(crate) fn linear_parameters(linear: &mut Linear) -> Parameters<'_> {
    let mut parameters = vec![(format!("{}.weight", linear.name), &mut linear.weight)];
    if let Some(bias) = &mut linear.bias {
        parameters.push((format!("{}.bias", linear.name), bias));
    }
    parameters
}

pub(crate) fn norm_parameters<'a>(name: &str, norm: &'a mut LayerNorm) -> Parameters<'a> {
    vec![(format!("{name}.weight"), &mut norm.weight), (format!("{name}.bias"), &mut norm.bias)]
}
