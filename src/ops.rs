//! The parts of attention by themselves, on tensors of any shape.

use crate::activation::activate;
use crate::config::Activation;
use crate::error::{AttnError, Result};
use crate::tensor::Tensor;
use crate::text::Listed;
use attnscope_kernels::layer_norm::layer_norm_row;
use attnscope_kernels::matmul::matmul;
use attnscope_kernels::matrix::Matrix;
use attnscope_kernels::rms_norm::rms_norm_row;
use attnscope_kernels::rotary::rotate_row;
use attnscope_kernels::softmax::softmax_row;

/// x · weightᵀ + bias: `x` is `[..., in]`, `weight` `[out, in]`, `bias` `[out]`, the result `[..., out]`
/// (<https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.linear.html>).
///
/// # Errors
/// `shape_mismatch` where the sizes do not meet, `too_large` where the result takes more than `max_bytes`.
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, max_bytes: usize) -> Result<Tensor> {
    let [d_out, d_in] = weight.shape[..] else {
        return Err(AttnError::shape("weight", &weight.shape, "[out_features, in_features]"));
    };
    if x.width() != d_in {
        return Err(AttnError::shape(
            "x",
            &x.shape,
            format!("{d_in} numbers a row, as the weight {}", Listed(&weight.shape)),
        ));
    }
    if let Some(bias) = bias
        && bias.shape != [d_out]
    {
        return Err(AttnError::shape("bias", &bias.shape, format!("[{d_out}]")));
    }
    let rows = x.data.len() / d_in;
    let needed = 4 * rows as u64 * d_out as u64;
    if needed > max_bytes as u64 {
        return Err(AttnError::too_large(needed, max_bytes));
    }
    let mut shape = x.shape.clone();
    shape[x.shape.len() - 1] = d_out;
    let mut data = vec![0.0; rows * d_out];
    let weight = Matrix::new(&weight.data, d_out, d_in, d_in).transposed();
    matmul(Matrix::new(&x.data, rows, d_in, d_in), weight, bias.map(|bias| &bias.data[..]), &mut data, d_out);
    Ok(Tensor { shape, data })
}

/// Softmax along one axis; a negative axis counts from the end
/// (<https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html>).
///
/// # Errors
/// `invalid_option` for an axis that is not there.
pub fn softmax(x: &Tensor, axis: isize) -> Result<Tensor> {
    along(x, axis, &softmax_row)
}

/// The logarithm of the softmax along one axis.
///
/// # Errors
/// `invalid_option` for an axis that is not there.
pub fn log_softmax(x: &Tensor, axis: isize) -> Result<Tensor> {
    along(x, axis, &|row| {
        let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = row.iter().map(|&x| f64::from(x - max).exp()).sum();
        row.iter_mut().for_each(|x| *x = (f64::from(*x - max) - sum.ln()) as f32);
    })
}

/// LayerNorm from `axis` to the end, by default the last
/// (<https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.layer_norm.html>).
///
/// # Errors
/// `invalid_option` for an axis that is not there, `shape_mismatch` where weight or bias have not the shape normalised over.
pub fn layer_norm(x: &Tensor, weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f32, axis: isize) -> Result<Tensor> {
    let normalised = &x.shape[find_axis(x, axis)?..];
    let (weight, bias) = (scale_of(weight, normalised)?, bias.map(|bias| of_shape("bias", bias, normalised)));
    let bias = bias.transpose()?;
    let mut out = x.clone();
    for row in out.data.chunks_exact_mut(weight.len()) {
        layer_norm_row(row, &weight, bias, eps);
    }
    Ok(out)
}

/// RMSNorm from `axis` to the end, by default the last
/// (<https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.rms_norm.html>).
///
/// # Errors
/// `invalid_option` for an axis that is not there, `shape_mismatch` where the weight has not the shape normalised over.
pub fn rms_norm(x: &Tensor, weight: Option<&Tensor>, eps: f32, axis: isize) -> Result<Tensor> {
    let weight = scale_of(weight, &x.shape[find_axis(x, axis)?..])?;
    let mut out = x.clone();
    for row in out.data.chunks_exact_mut(weight.len()) {
        rms_norm_row(row, &weight, eps);
    }
    Ok(out)
}

fn of_shape<'a>(name: &str, tensor: &'a Tensor, shape: &[usize]) -> Result<&'a [f32]> {
    if tensor.shape == shape {
        Ok(&tensor.data)
    } else {
        Err(AttnError::shape(name, &tensor.shape, Listed(shape).to_string()))
    }
}

/// The weight, by default ones.
fn scale_of(weight: Option<&Tensor>, shape: &[usize]) -> Result<Vec<f32>> {
    match weight {
        Some(weight) => of_shape("weight", weight, shape).map(<[f32]>::to_vec),
        None => Ok(vec![1.0; shape.iter().product()]),
    }
}

/// Rotary positions: turns pairs of each row's first numbers by angles with these cosines and sines
/// (<https://onnx.ai/onnx/operators/onnx__RotaryEmbedding.html>). `x` is `[n, d]`, `[heads, n, d]` or `[batch, heads, n, d]`;
/// `cos` and `sin` are `[n or more, pairs]`, a row for each position, or `[batch, n, pairs]`. The pairs are the halves
/// `(p, p + pairs)`, or neighbours where `interleaved`; what is behind them stays.
///
/// # Errors
/// `shape_mismatch` where the sizes do not meet.
pub fn rotary(x: &Tensor, cos: &Tensor, sin: &Tensor, interleaved: bool) -> Result<Tensor> {
    if !(2..=4).contains(&x.shape.len()) {
        return Err(AttnError::shape("x", &x.shape, "[n, d], [heads, n, d] or [batch, heads, n, d]"));
    }
    if sin.shape != cos.shape {
        return Err(AttnError::shape("sin", &sin.shape, format!("the shape of cos {}", Listed(&cos.shape))));
    }
    let (n, d) = (x.shape[x.shape.len() - 2], x.width());
    let (entries, positions) = match cos.shape[..] {
        [positions, _] => (1, positions),
        [entries, positions, _] if x.shape.len() == 4 && entries == x.shape[0] && positions == n => {
            (entries, positions)
        }
        _ => (0, 0),
    };
    let pairs = cos.width();
    if positions < n || 2 * pairs > d {
        let expected = format!("[n, pairs] or [batch, n, pairs] with n = {n} and at most {} pairs", d / 2);
        return Err(AttnError::shape("cos", &cos.shape, expected));
    }
    let mut out = x.clone();
    let rows = out.data.len() / d;
    for (row, numbers) in out.data.chunks_exact_mut(d).enumerate() {
        let position = row / (rows / entries) * positions + row % n;
        let [cos, sin] = [cos, sin].map(|angles| &angles.data[position * pairs..][..pairs]);
        rotate_row(numbers, cos, sin, interleaved);
    }
    Ok(out)
}

/// Each number through an activation.
pub fn activation(x: &Tensor, activation: Activation) -> Tensor {
    Tensor { shape: x.shape.clone(), data: x.data.iter().map(|&x| activate(activation, x)).collect() }
}

fn find_axis(x: &Tensor, axis: isize) -> Result<usize> {
    let rank = x.shape.len() as isize;
    if (-rank..rank).contains(&axis) {
        Ok(axis.rem_euclid(rank) as usize)
    } else {
        Err(AttnError::option(
            "axis",
            axis,
            &format!("an axis of {}, from {} to {}", Listed(&x.shape), -rank, rank - 1),
        ))
    }
}

fn along(x: &Tensor, axis: isize, row_kernel: &dyn Fn(&mut [f32])) -> Result<Tensor> {
    let axis = find_axis(x, axis)?;
    let length = x.shape[axis];
    let stride: usize = x.shape[axis + 1..].iter().product();
    let mut out = x.clone();
    let mut row = vec![0.0; length];
    for block in out.data.chunks_exact_mut(length * stride) {
        for start in 0..stride {
            row.iter_mut().zip(block[start..].iter().step_by(stride)).for_each(|(to, from)| *to = *from);
            row_kernel(&mut row);
            block[start..].iter_mut().step_by(stride).zip(&row).for_each(|(to, from)| *to = *from);
        }
    }
    Ok(out)
}
