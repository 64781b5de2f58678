use super::change::distance;
use crate::config::ForwardOptions;
use crate::error::Result;
use crate::mask::Mask;
use crate::multi_head_attention::MultiHeadAttention;
use crate::tensor::Tensor;

/// What each head matters: the Euclidean distance that each output row moves when that head alone is switched off, its
/// context multiplied by 0. The arguments are those of [`MultiHeadAttention::forward`], whose `head_mask` holds for the
/// other heads; the result is `[heads, n_q]`, or `[batch, heads, n_q]` where x has a batch, in the units of the output.
/// Source: "Are Sixteen Heads Really Better than One?" (Michel et al. 2019), with the output in the place of a task's
/// score.
///
/// # Errors
/// Those of [`MultiHeadAttention::forward`].
pub fn ablate(
    module: &MultiHeadAttention,
    x: &Tensor,
    key: Option<&Tensor>,
    value: Option<&Tensor>,
    mask: Option<&Mask>,
    options: &ForwardOptions,
    max_bytes: usize,
) -> Result<Tensor> {
    let output = |head_mask| {
        let options =
            ForwardOptions { trace: false, need_weights: false, average_weights: false, head_mask, ..options.clone() };
        module.forward(x, key, value, mask, &options, max_bytes).map(|trace| trace.output())
    };
    let whole = output(options.head_mask.clone())?;
    let (heads, d_model) = (module.n_heads(), whole.width());
    let [batch @ .., n_q] = &whole.shape[..whole.shape.len() - 1] else { unreachable!("an output has rows") };

    let mut data = vec![0.0; heads * whole.data.len() / d_model];
    for head in 0..heads {
        let mut factors = options.head_mask.clone().unwrap_or_else(|| vec![1.0; heads]);
        factors[head] = 0.0;
        let without = output(Some(factors))?;
        let pairs = whole.data.chunks_exact(d_model).zip(without.data.chunks_exact(d_model));
        for (row, (whole, without)) in pairs.enumerate() {
            data[(row / n_q * heads + head) * n_q + row % n_q] = distance(whole, without) as f32;
        }
    }
    Ok(Tensor { shape: [batch, &[heads, *n_q]].concat(), data })
}
