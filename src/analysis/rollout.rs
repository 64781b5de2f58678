use crate::error::{AttnError, Result};
use crate::tensor::Tensor;
use crate::text::Listed;
use attnscope_kernels::matmul::matmul;
use attnscope_kernels::matrix::Matrix;

/// Attention rollout: how much of each input token reaches each position after all layers, if attention were all that
/// mixes tokens. `layers` holds the weights of each layer, the first layer first, all `[heads, n, n]` or all
/// `[batch, heads, n, n]`; the result is `[n, n]` or `[batch, n, n]`.
///
/// Of each layer A is the mean over heads, then 0.5 A + 0.5 I where `residual` counts the connection around the
/// attention, its rows divided by their sums; the rollout is A_L ··· A_2 A_1. Rows sum to 1, except that without
/// `residual` a row of zeros stays one. Source: "Quantifying Attention Flow in Transformers" (Abnar and Zuidema 2020).
///
/// # Errors
/// `invalid_tensor` for no layer at all, `shape_mismatch` for a layer that is not square or not shaped as the first.
pub fn rollout(layers: &[Tensor], residual: bool) -> Result<Tensor> {
    let Some((first, above)) = layers.split_first() else {
        let (found, expected) = ("no layer".into(), "the weights of at least one layer".into());
        return Err(Box::new(AttnError::InvalidTensor { argument: "weights".into(), found, expected }));
    };
    let (batch, heads, n) = match first.shape[..] {
        [heads, n, keys] if n == keys => (None, heads, n),
        [batch, heads, n, keys] if n == keys => (Some(batch), heads, n),
        _ => return Err(AttnError::shape("weights[0]", &first.shape, "[heads, n, n] or [batch, heads, n, n]")),
    };
    for (at, layer) in layers.iter().enumerate() {
        if layer.shape != first.shape {
            let expected = format!("the shape of the first layer, {}", Listed(&first.shape));
            return Err(AttnError::shape(&format!("weights[{at}]"), &layer.shape, expected));
        }
    }
    let mut reached = mixing(first, heads, n, residual);
    let mut product = vec![0.0; n * n];
    for layer in above {
        let mixing = mixing(layer, heads, n, residual);
        for (reached, mixing) in reached.chunks_exact_mut(n * n).zip(mixing.chunks_exact(n * n)) {
            matmul(Matrix::new(mixing, n, n, n), Matrix::new(reached, n, n, n), None, &mut product, n);
            reached.copy_from_slice(&product);
        }
    }
    Ok(Tensor { shape: batch.into_iter().chain([n, n]).collect(), data: reached })
}

/// How a layer mixes the tokens, `[batch, n, n]`: its heads' mean and, with the residual, the token itself.
fn mixing(layer: &Tensor, heads: usize, n: usize, residual: bool) -> Vec<f32> {
    let mut mixing = Vec::with_capacity(layer.data.len() / heads);
    let mut row = vec![0.0; n];
    for entry in layer.data.chunks_exact(heads * n * n) {
        for query in 0..n {
            row.fill(0.0);
            for head in entry.chunks_exact(n * n) {
                row.iter_mut().zip(&head[query * n..]).for_each(|(sum, &weight)| *sum += f64::from(weight));
            }
            if residual {
                row[query] += heads as f64;
            }
            let sum: f64 = row.iter().sum();
            // The division makes halving and averaging needless; of zeros it would make NaN.
            let divisor = if sum == 0.0 { 1.0 } else { sum };
            mixing.extend(row.iter().map(|weight| (weight / divisor) as f32));
        }
    }
    mixing
}
