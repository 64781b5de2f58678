//! Multi-head attention ("Attention Is All You Need", Vaswani et al. 2017, section 3.2.2).

use std::sync::Arc;

use crate::attention::{Attend, attend};
use crate::config::{ForwardOptions, HeadSizes, Init, LAYER_NORM_EPS, MultiHeadAttentionOptions, NormKind, Positions};
use crate::error::{AttnError, Result};
use crate::families::{Kind, Target};
use crate::mask::Mask;
use crate::parameters::{Linear, Norm, Parameter, Parameters, draw_linear};
use crate::positions::rotation;
use crate::recipe::{Made, Recipe, StepId};
use crate::state_dict::{self, StateDict};
use crate::tensor::Tensor;
use crate::text::Listed;
use crate::torch::Generator;
use crate::trace::{Meeting, Plan, Returns, Stage, Trace};

/// Multi-head attention with its weights
/// (<https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html>).
#[derive(Debug, Clone)]
pub struct MultiHeadAttention {
    sizes: HeadSizes,
    scale: f32,
    query: Linear,
    key: Linear,
    value: Linear,
    out: Linear,
    norm: Option<Norm>,
    /// RMSNorm of each head's query and key.
    qk_norm: Option<[Norm; 2]>,
    rope: Option<Rope>,
    /// `bias_k` and `bias_v`, each `[1, 1, heads * width]`.
    bias_kv: Option<[Arc<Parameter>; 2]>,
    add_zero_attn: bool,
}

/// How queries and keys are turned.
#[derive(Debug, Clone, Copy)]
struct Rope {
    base: f64,
    dim: usize,
    interleaved: bool,
}

impl MultiHeadAttention {
    /// The weights are drawn as PyTorch draws `query, key, value, out`, each an `nn.Linear`, in that order, or as its
    /// `nn.MultiheadAttention` does.
    ///
    /// # Errors
    /// `not_divisible` where dModel / nHeads is needed and not whole, `invalid_option` for a size that is none, `too_large`
    /// where the weights take more than `max_bytes`.
    pub fn new(options: &MultiHeadAttentionOptions, generator: &mut Generator, max_bytes: usize) -> Result<Self> {
        options.check(max_bytes)?;
        let sizes = options.sizes()?;
        let HeadSizes { d_model, n_kv_heads, d_k, d_v, .. } = sizes;
        let [query, key, value, out] = draw_projections(options, sizes, generator);
        let bias_kv = options.bias_kv.then(|| {
            [n_kv_heads * d_k, n_kv_heads * d_v].map(|width| {
                Parameter::new(Tensor { shape: vec![1, 1, width], data: generator.xavier_normal(width, width, width) })
            })
        });
        let rope = match options.positions {
            Positions::Rope => {
                let (base, interleaved) = (options.rope_base, options.rope_interleaved);
                Some(Rope { base, dim: options.rotary_dim(d_k)?, interleaved })
            }
            _ => None,
        };
        let norm = |kind, width, eps| Norm::new(kind, width, true, eps);
        Ok(Self {
            sizes,
            scale: options.scale.unwrap_or_else(|| 1.0 / (d_k as f32).sqrt()),
            query,
            key,
            value,
            out,
            norm: options.residual_norm.then(|| norm(NormKind::Layer, d_model, LAYER_NORM_EPS)),
            qk_norm: options.qk_norm.then(|| [d_k, d_k].map(|width| norm(NormKind::Rms, width, options.qk_norm_eps))),
            rope,
            bias_kv,
            add_zero_attn: options.add_zero_attn,
        })
    }

    /// The number of heads.
    pub fn n_heads(&self) -> usize {
        self.sizes.n_heads
    }

    /// The parameters by name: `query.weight`, `query.bias`, and so on for `key`, `value`, `out`, then what the options add:
    /// `query_norm`, `key_norm`, `bias_k`, `bias_v`, `norm`.
    pub fn state_dict(&self) -> StateDict {
        state_dict::copy(self.clone().parameters())
    }

    /// Takes the parameters from a state dict, its own or one of the families that `families.rs` knows; of a dict with
    /// several layers those of `layer`.
    ///
    /// # Errors
    /// `bad_state_dict` naming the entry that is missing, extra or of the wrong shape; then nothing was loaded.
    pub fn load_state_dict(&mut self, dict: StateDict, layer: Option<usize>) -> Result<()> {
        self.load_own(self.target().translate(dict, layer)?)
    }

    /// [`load_state_dict`](Self::load_state_dict) of a dict with the module's own names, as [`state_dict`](Self::state_dict) gives it.
    ///
    /// # Errors
    /// `bad_state_dict`
    pub fn load_own(&mut self, dict: StateDict) -> Result<()> {
        state_dict::load(dict, self.parameters())
    }

    /// What dicts of other families are translated for.
    pub fn target(&self) -> Target {
        let shapes = state_dict::shapes(self.clone().parameters());
        let turns_neighbours = self.rope.as_ref().is_some_and(|rope| rope.interleaved);
        Target { kind: Kind::Attention, is_decoder: false, n_heads: self.sizes.n_heads, turns_neighbours, shapes }
    }

    pub(crate) fn parameters(&mut self) -> Parameters<'_> {
        let mut parameters = Parameters::new();
        for linear in [&mut self.query, &mut self.key, &mut self.value, &mut self.out] {
            parameters.extend(linear.parameters());
        }
        if let Some([query, key]) = &mut self.qk_norm {
            parameters.extend(query.parameters("query_norm"));
            parameters.extend(key.parameters("key_norm"));
        }
        if let Some([key, value]) = &mut self.bias_kv {
            parameters.extend([("bias_k".into(), key), ("bias_v".into(), value)]);
        }
        if let Some(norm) = &mut self.norm {
            parameters.extend(norm.parameters("norm"));
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
        self.plan(x, key, value, mask, options, max_bytes)?.run(&mut |_| {})
    }

    /// [`MultiHeadAttention::forward`], ready to be run.
    ///
    /// # Errors
    /// As [`MultiHeadAttention::forward`].
    pub fn plan(
        &self,
        x: &Tensor,
        key: Option<&Tensor>,
        value: Option<&Tensor>,
        mask: Option<&Mask>,
        options: &ForwardOptions,
        max_bytes: usize,
    ) -> Result<Plan> {
        if options.training {
            return Err(AttnError::option("training", true, "false: this module has no dropout"));
        }
        let mut recipe = Recipe::new(options.trace);
        let x_shape = rows("x", x, self.sizes.d_model)?;
        let input = recipe.push(0, Stage::Input, x_shape.to_vec(), Made::Given(x.data.clone()));
        let mut other = |stage, name, tensor: Option<&Tensor>, instead: StepId, width: usize| {
            let Some(tensor) = tensor else {
                if recipe.shape(instead)[2] != width {
                    let found = if name == "value" { key.unwrap_or(x) } else { x };
                    return Err(AttnError::shape(
                        name,
                        &found.shape,
                        format!("{width} numbers a row; give {name} an input"),
                    ));
                }
                return Ok(instead);
            };
            let shape = rows(name, tensor, width)?;
            if tensor.shape.len() != x.shape.len() || shape[0] != x_shape[0] {
                return Err(AttnError::shape(
                    name,
                    &tensor.shape,
                    format!("the axes and batch of x {}", Listed(&x.shape)),
                ));
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

        let how = Attention::of(options, max_bytes);
        let output = self.append(&mut recipe, 0, [input, key_input, value_input], mask, how)?;
        if let Some(norm) = &self.norm {
            let residual = recipe.push(0, Stage::Residual, x_shape.to_vec(), Made::Sum { left: output, right: input });
            recipe.push(0, Stage::Norm, x_shape.to_vec(), Made::Norm { from: residual, norm: norm.clone() });
        }
        let hidden_axes = usize::from(x.shape.len() == 2);
        let (returns, meeting) = (Returns::of(options), self.meeting());
        Ok(Plan { recipe, shared: None, before: None, hidden_axes, returns, meeting, max_bytes })
    }

    /// How a mask meets this module's scores.
    pub(crate) fn meeting(&self) -> Meeting {
        let open_keys = usize::from(self.bias_kv.is_some()) + usize::from(self.add_zero_attn);
        Meeting { open_keys, ..Meeting::default() }
    }

    /// The passes from the inputs to the output, as steps of a recipe. Gives the output's step.
    pub(crate) fn append(
        &self,
        recipe: &mut Recipe,
        layer: usize,
        [input, key_input, value_input]: [StepId; 3],
        mask: Option<&Mask>,
        how: Attention,
    ) -> Result<StepId> {
        let HeadSizes { n_heads, n_kv_heads, d_k, d_v, .. } = self.sizes;
        let Attention { options, is_causal, named, dropout, max_bytes } = how;
        if let Some(factors) = &options.head_mask
            && factors.len() != n_heads
        {
            let found = format!("{} numbers", factors.len());
            return Err(AttnError::option("headMask", found, &format!("{n_heads} numbers, one for each head")));
        }
        let (batch, n_q, n_k) = (recipe.shape(input)[0], recipe.shape(input)[1], recipe.shape(key_input)[1]);
        let (queries, keys) = ([batch, n_heads, n_q, d_k], [batch, n_kv_heads, n_k, d_k]);

        // 1. Project, and cut into heads.                                      [batch, heads, n, d_k or d_v]
        let mut push = |stage, shape, made| recipe.push_heads(layer, named(stage), shape, made);
        let project = |from, linear: &Linear| Made::Linear { from, linear: linear.clone() };
        let mut query = push(Stage::Query, queries, project(input, &self.query));
        let mut key = push(Stage::Key, keys, project(key_input, &self.key));
        let mut value = push(Stage::Value, [batch, n_kv_heads, n_k, d_v], project(value_input, &self.value));
        // 2. Normalise each head's query and key (RMSNorm), then turn them by position, where that is asked for.
        if let Some([query_norm, key_norm]) = &self.qk_norm {
            query = push(Stage::NormedQuery, queries, Made::Norm { from: query, norm: query_norm.clone() });
            key = push(Stage::NormedKey, keys, Made::Norm { from: key, norm: key_norm.clone() });
        }
        if let Some(Rope { base, dim, interleaved }) = self.rope {
            let rotation = Arc::new(rotation(n_q.max(n_k), dim, base, interleaved));
            query = push(Stage::RotatedQuery, queries, Made::Rotated { from: query, rotation: rotation.clone() });
            key = push(Stage::RotatedKey, keys, Made::Rotated { from: key, rotation });
        }
        // 3. Add the module's own keys and values behind the others.
        let meeting = self.meeting();
        if meeting.open_keys > 0 {
            let n_k = n_k + meeting.open_keys;
            let mut join = |stage, from, width, bias| {
                let after = Some(self.added_rows(bias, width));
                recipe.push(
                    layer,
                    stage,
                    vec![batch, n_kv_heads, n_k, width],
                    Made::Joined { before: None, from, after },
                )
            };
            key = join(Stage::AllKeys, key, d_k, self.bias_kv.as_ref().map(|[key, _]| key));
            value = join(Stage::AllValues, value, d_v, self.bias_kv.as_ref().map(|[_, value]| value));
        }
        // 4. Attend, each head by itself.                                      [batch, heads, n_q, d_v]
        let matrix = [batch, n_heads, n_q, n_k + meeting.open_keys];
        let how = Attend {
            scale: self.scale,
            softcap: 0.0,
            mask: meeting.resolve(mask, is_causal, matrix, max_bytes)?,
            mask_fill: options.mask_fill,
            empty_row: options.empty_row,
            head_mask: options.head_mask.clone(),
            dropout: match dropout {
                Some(dropout) => dropout.factors(recipe, &matrix, max_bytes)?,
                None => None,
            },
            named,
            side_by_side: true,
            need_weights: options.need_weights,
        };
        let context = attend(recipe, layer, [query, key, value], how);
        // 5. The heads side by side.                                           [batch, n_q, heads * d_v]
        let concat = Made::Same { from: context };
        let concat = recipe.push(layer, named(Stage::Concat), vec![batch, n_q, n_heads * d_v], concat);
        // 6. Mix them.                                                         [batch, n_q, d_model]
        let output = Made::Linear { from: concat, linear: self.out.clone() };
        Ok(recipe.push(layer, named(Stage::Output), vec![batch, n_q, self.sizes.d_model], output))
    }

    /// The rows that the module adds behind its keys or values: the learned one, then the zeros. `[heads, 1 or 2, width]`
    fn added_rows(&self, bias: Option<&Arc<Parameter>>, width: usize) -> Arc<Tensor> {
        let heads = self.sizes.n_kv_heads;
        let mut data = Vec::new();
        for head in 0..heads {
            if let Some(bias) = bias {
                data.extend_from_slice(&bias.data[head * width..][..width]);
            }
            if self.add_zero_attn {
                data.resize(data.len() + width, 0.0);
            }
        }
        Arc::new(Tensor { shape: vec![heads, data.len() / heads / width, width], data })
    }
}

/// What a pass wants of an attention inside it.
pub(crate) struct Attention<'a, 'g> {
    pub options: &'a ForwardOptions,
    pub is_causal: bool,
    /// What the stages are called.
    pub named: fn(Stage) -> Stage,
    /// Drops weights in training.
    pub dropout: Option<&'a mut Dropout<'g>>,
    pub max_bytes: usize,
}

impl<'a> Attention<'a, '_> {
    fn of(options: &'a ForwardOptions, max_bytes: usize) -> Self {
        Self { options, is_causal: options.is_causal, named: |stage| stage, dropout: None, max_bytes }
    }
}

/// Dropout in training: a probability and where the draws come from
/// (<https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html>).
pub(crate) struct Dropout<'g> {
    pub p: f64,
    pub generator: &'g mut Generator,
}

impl Dropout<'_> {
    /// 0 or 1 / (1 - p) for each number of a step of this shape, drawn as PyTorch draws; none where p is 0.
    pub fn factors(&mut self, recipe: &mut Recipe, shape: &[usize], max_bytes: usize) -> Result<Option<Arc<Vec<f32>>>> {
        if self.p == 0.0 {
            return Ok(None);
        }
        let size = shape.iter().product();
        recipe.count(size);
        recipe.check_size(max_bytes)?;
        Ok(Some(Arc::new(self.generator.dropout(&vec![1.0; size], self.p))))
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

/// query, key, value, out
fn draw_projections(options: &MultiHeadAttentionOptions, sizes: HeadSizes, generator: &mut Generator) -> [Linear; 4] {
    let HeadSizes { d_model, n_heads, n_kv_heads, d_k, d_v, k_dim, v_dim } = sizes;
    let shapes = [
        ("query", d_model, n_heads * d_k, options.bias),
        ("key", k_dim, n_kv_heads * d_k, options.bias),
        ("value", v_dim, n_kv_heads * d_v, options.bias),
        ("out", n_heads * d_v, d_model, options.out_bias.unwrap_or(options.bias)),
    ];
    if options.init == Init::Linear {
        return shapes.map(|(name, d_in, d_out, bias)| draw_linear(generator, name, d_in, d_out, bias));
    }
    let [query, key, value, (_, d_in, d_out, bias)] = shapes;
    let mut out = draw_linear(generator, "out", d_in, d_out, bias);
    if let Some(bias) = &mut out.bias {
        *bias = Parameter::new(Tensor { shape: vec![d_out], data: vec![0.0; d_out] });
    }
    // Projections of one width are the rows of one matrix, which is drawn as a whole.
    let projections = [query, key, value];
    let fused = projections.iter().all(|&(_, d_in, d_out, _)| d_in == d_model && d_out == d_model);
    let mut drawn = if fused { generator.xavier_uniform(3 * d_model, d_model) } else { Vec::new() }.into_iter();
    let [query, key, value] = projections.map(|(name, d_in, d_out, bias)| {
        let data =
            if fused { drawn.by_ref().take(d_out * d_in).collect() } else { generator.xavier_uniform(d_out, d_in) };
        Linear::new(name, Tensor { shape: vec![d_out, d_in], data }, bias.then(|| vec![0.0; d_out]))
    });
    [query, key, value, out]
}
