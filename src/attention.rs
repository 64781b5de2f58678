//! Scaled dot-product attention ("Attention Is All You Need", Vaswani et al. 2017, section 3.2.1).

use std::sync::Arc;

use crate::config::{EmptyRow, ScaledDotProductOptions};
use crate::error::{AttnError, Result};
use crate::mask::{Mask, ResolvedMask};
use crate::recipe::{Attended, Made, Recipe, StepId};
use crate::run::at_a_time;
use crate::tensor::Tensor;
use crate::text::Listed;
use crate::trace::{Meeting, Plan, Returns, Stage, Trace};
use attnscope_kernels::attention::Weighing;
use attnscope_kernels::matmul::MOST;
use attnscope_kernels::threads;

/// How the scores become the context.
pub(crate) struct Attend {
    pub scale: f32,
    pub softcap: f32,
    pub mask: Option<Arc<ResolvedMask>>,
    pub mask_fill: f32,
    pub empty_row: EmptyRow,
    pub head_mask: Option<Vec<f32>>,
    /// The factors of dropout, one for each weight.
    pub dropout: Option<Arc<Vec<f32>>>,
    /// What the stages are called.
    pub named: fn(Stage) -> Stage,
    /// The context's numbers lie so that its heads stand side by side.
    pub side_by_side: bool,
    /// Whether the weights are wanted where no stages are kept.
    pub need_weights: bool,
}

/// softmax(query · keyᵀ · scale + mask) · value, each pass a stage. Gives the context's step.
pub(crate) fn attend(recipe: &mut Recipe, layer: usize, [query, key, value]: [StepId; 3], how: Attend) -> StepId {
    let [batch, heads, n_q, d_k] = recipe.shape(query)[..] else { unreachable!("queries are cut into heads") };
    let (n_k, d_v) = (recipe.shape(value)[2], recipe.shape(value)[3]);
    let matrix = vec![batch, heads, n_q, n_k];
    let zero_empty_rows = how.empty_row == EmptyRow::Zero;
    let push_context = |recipe: &mut Recipe, context| {
        let (stage, shape) = ((how.named)(Stage::Context), [batch, heads, n_q, d_v]);
        match how.side_by_side {
            true => recipe.push_heads(layer, stage, shape, context),
            false => recipe.push(layer, stage, shape.to_vec(), context),
        }
    };

    // Where nobody asks for the stages between, all at once.
    if !recipe.keeps() && how.dropout.is_none() {
        let Attend { scale, softcap, mask, mask_fill: fill, head_mask, .. } = how;
        // Keys and values of some heads in the order of the tiles, and each thread's block of weights.
        let threads = threads::count(f64::INFINITY);
        let packed = at_a_time(threads).min(batch * heads) * n_k * (d_k + d_v);
        recipe.count(packed + threads * MOST.min(n_q) * n_k);
        let weighing = Weighing { scale, softcap, fill, zero_empty_rows };
        let weights =
            how.need_weights.then(|| recipe.push(layer, (how.named)(Stage::Weights), matrix, Made::HandedOut));
        let how = Attended { weighing, mask, head_mask };
        return push_context(recipe, Made::Attended { query, key, value, weights, how });
    }

    let mut push = |stage, made| recipe.push(layer, (how.named)(stage), matrix.clone(), made);
    // 1. Every query meets every key.                                          [batch, heads, n_q, n_k]
    let scores = push(Stage::Scores, Made::Dot { query, key });
    // 2. The scale keeps the softmax from saturating as d_k grows.
    let mut last = push(Stage::Scaled, Made::Scaled { from: scores, factor: how.scale });
    // 3. A soft limit, where one is asked for.
    if how.softcap > 0.0 {
        last = push(Stage::Capped, Made::Softcap { from: last, cap: how.softcap });
    }
    // 4. What a query may not see is filled.
    let masked = push(Stage::Masked, Made::Masked { from: last, mask: how.mask, fill: how.mask_fill });
    // 5. Each row becomes shares that sum to 1.
    let mut weights = push(Stage::Weights, Made::Softmax { from: masked, zero_empty_rows });
    // 6. In training some of them are dropped.
    if let Some(factors) = how.dropout {
        weights = push(Stage::DroppedWeights, Made::Dropped { from: weights, factors });
    }
    // 7. The shares mix the values.                                            [batch, heads, n_q, d_v]
    push_context(recipe, Made::Context { weights, value, head_mask: how.head_mask })
}

/// What scaled dot-product attention takes: `[n, d]`, `[heads, n, d]` or `[batch, heads, n, d]`, each with as many axes.
#[derive(Debug, Clone, Copy)]
pub struct QueryKeyValue<'a> {
    /// `[..., n_q, d_k]`
    pub query: &'a Tensor,
    /// `[..., n_k, d_k]`
    pub key: &'a Tensor,
    /// `[..., n_k, d_v]`
    pub value: &'a Tensor,
    /// Keys and values of earlier positions, put in front: `[..., n_past, d_k]` and `[..., n_past, d_v]`.
    pub past: Option<[&'a Tensor; 2]>,
}

/// Attention on queries, keys and values as they are
/// (<https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html>). Fewer key and
/// value heads than query heads are shared by groups of them. With a past, query i stands at position i + n_past; with
/// `kv_lengths`, at i + length - n_q (as in <https://onnx.ai/onnx/operators/onnx__Attention.html>).
///
/// A hidden position cannot reach the weights: its score is replaced, whatever it was. Its value still meets a weight of 0,
/// and 0 · NaN is NaN, here as in PyTorch. PyTorch's fused attention adds -infinity to hidden scores instead of replacing
/// them, and so gives NaN for a NaN in a hidden key too.
///
/// # Errors
/// `shape_mismatch`, `mask_shape`, `invalid_option`, or `too_large` where the pass needs more than `max_bytes`.
pub fn scaled_dot_product_attention(
    inputs: QueryKeyValue,
    mask: Option<&Mask>,
    options: &ScaledDotProductOptions,
    max_bytes: usize,
) -> Result<Trace> {
    plan_attention(inputs, mask, options, max_bytes)?.run(&mut |_| {})
}

/// [`scaled_dot_product_attention`], ready to be run.
///
/// # Errors
/// As [`scaled_dot_product_attention`].
pub fn plan_attention(
    inputs: QueryKeyValue,
    mask: Option<&Mask>,
    options: &ScaledDotProductOptions,
    max_bytes: usize,
) -> Result<Plan> {
    options.check()?;
    let QueryKeyValue { query, key, value, past } = inputs;
    let rank = query.shape.len();
    if !(2..=4).contains(&rank) {
        return Err(AttnError::shape("query", &query.shape, "[n, d], [heads, n, d] or [batch, heads, n, d]"));
    }
    let four = |tensor: &Tensor| {
        let mut shape = [1; 4];
        shape[4 - rank..].copy_from_slice(&tensor.shape);
        shape
    };
    let [past_key, past_value] = past.map_or([None, None], |past| past.map(Some));
    let given = [("key", Some(key)), ("value", Some(value)), ("pastKey", past_key), ("pastValue", past_value)];
    for (name, tensor) in given.into_iter().filter_map(|(name, tensor)| Some((name, tensor?))) {
        if tensor.shape.len() != rank {
            return Err(AttnError::shape(
                name,
                &tensor.shape,
                format!("{rank} axes, as the query {}", Listed(&query.shape)),
            ));
        }
    }
    let ([batch, heads, n_q, d_k], [_, kv_heads, n_new, _]) = (four(query), four(key));
    if four(key)[0] != batch || four(key)[3] != d_k || !heads.is_multiple_of(kv_heads) {
        let shape = Listed(&query.shape);
        let expected =
            format!("the batch and width of the query {shape}, and a number of heads that divides its heads");
        return Err(AttnError::shape("key", &key.shape, expected));
    }
    if four(value)[..3] != four(key)[..3] {
        return Err(AttnError::shape(
            "value",
            &value.shape,
            format!("the key's {} but for the width", Listed(&key.shape)),
        ));
    }
    let n_past = past.map_or(0, |[past_key, _]| four(past_key)[2]);
    for (name, past, new) in [("pastKey", past_key, key), ("pastValue", past_value, value)] {
        if let Some(past) = past
            && four(past) != [batch, kv_heads, n_past, four(new)[3]]
        {
            let expected = format!("{} but for the number of rows, which both pasts share", Listed(&new.shape));
            return Err(AttnError::shape(name, &past.shape, expected));
        }
    }
    let n_k = n_past + n_new;
    if let Some(lengths) = &options.kv_lengths {
        if past.is_some() {
            return Err(AttnError::option("kvLengths", "both kvLengths and a past", "at most one of them"));
        }
        if lengths.len() != batch || lengths.iter().any(|&length| length > n_k) {
            let expected = format!("one length for each of {batch} batch entries, each at most {n_k}");
            return Err(AttnError::option("kvLengths", Listed(lengths), &expected));
        }
    }

    let mut recipe = Recipe::new(options.trace);
    let mut give =
        |stage, tensor: &Tensor| recipe.push(0, stage, four(tensor).to_vec(), Made::Given(tensor.data.clone()));
    let query = give(Stage::Query, query);
    let [mut key, mut value] = [give(Stage::Key, key), give(Stage::Value, value)];
    if let Some([past_key, past_value]) = past {
        let [past_key, past_value] = [give(Stage::PastKey, past_key), give(Stage::PastValue, past_value)];
        let mut join = |stage, before, from| {
            let shape = vec![batch, kv_heads, n_k, recipe.shape(from)[3]];
            recipe.push(0, stage, shape, Made::Joined { before: Some(before), from, after: None })
        };
        [key, value] = [join(Stage::AllKeys, past_key, key), join(Stage::AllValues, past_value, value)];
    }
    let meeting = Meeting { past: n_past, kv_lengths: options.kv_lengths.clone(), open_keys: 0 };
    let how = Attend {
        scale: options.scale.unwrap_or_else(|| 1.0 / (d_k as f32).sqrt()),
        softcap: options.softcap,
        mask: meeting.resolve(mask, options.is_causal, [batch, heads, n_q, n_k], max_bytes)?,
        mask_fill: options.mask_fill,
        empty_row: options.empty_row,
        head_mask: None,
        dropout: None,
        named: |stage| stage,
        side_by_side: false,
        need_weights: options.need_weights,
    };
    attend(&mut recipe, 0, [query, key, value], how);
    let returns = Returns { weights: options.need_weights, average_weights: false };
    Ok(Plan { recipe, shared: None, before: None, hidden_axes: 4 - rank, returns, meeting, max_bytes })
}
