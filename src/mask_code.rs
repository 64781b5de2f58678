//! The PyTorch code that makes a mask.

use crate::bias::{alibi_slope, check_buckets, exact_distances};
use crate::error::{AttnError, Result};
use crate::given::words;
use crate::mask::{MAX_MASK_DEPTH, Mask, MaskAxes};
use crate::text::{Float, Listed, number};

/// Which meaning of true the PyTorch code is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "snake_case"))]
pub enum TorchConvention {
    /// `F.scaled_dot_product_attention`: true may attend.
    Sdpa,
    /// `torch.nn.MultiheadAttention`: true is hidden.
    Mha,
    /// Either of them: added to the scores, -inf is hidden.
    Additive,
}

words!(TorchConvention: Sdpa, Mha, Additive);

impl Mask {
    /// PyTorch code that makes `attn_mask` for scores of `n_q` by `n_k`, in the convention asked for.
    ///
    /// # Errors
    /// `invalid_option` for `not` of a mask that adds to the scores.
    pub fn to_torch(&self, convention: TorchConvention) -> Result<String> {
        self.check_depth(MAX_MASK_DEPTH)?;
        let Code { keep, bias } = self.code()?;
        let additive = |keep: Option<String>, bias: Option<String>| match (keep, bias) {
            (None, None) => "torch.zeros(n_q, n_k)".into(),
            (None, Some(bias)) => bias,
            (Some(keep), bias) => {
                let bias = bias.unwrap_or_else(|| "0.0".into());
                format!("torch.where({keep}, {bias}, float(\"-inf\"))")
            }
        };
        let (line, note) = if bias.is_some() || convention == TorchConvention::Additive {
            (additive(keep, bias), "added to the scores")
        } else {
            let keep = keep.unwrap_or_else(|| "torch.ones(n_q, n_k, dtype=torch.bool)".into());
            match convention {
                TorchConvention::Mha => (format!("~({keep})"), "True = hidden"),
                _ => (keep, "True = may attend"),
            }
        };
        Ok(format!(
            "i = torch.arange(n_q)[:, None]  # queries\nj = torch.arange(n_k)[None, :]  # keys\nattn_mask = {line}  # {note}"
        ))
    }

    fn code(&self) -> Result<Code> {
        let keep = |keep: String| Ok(Code { keep: Some(keep), bias: None });
        match self {
            Self::Causal => keep("j <= i".into()),
            Self::Padding { lengths } => match lengths[..] {
                [length] => keep(format!("(j < {length}).expand(n_q, n_k)")),
                _ => keep(format!(
                    "(j < torch.tensor({})[:, None, None, None]).expand(-1, 1, n_q, n_k)",
                    Listed(lengths)
                )),
            },
            Self::SlidingWindow { left, right } => keep(format!("(i - j <= {left}) & (j - i <= {right})")),
            Self::Prefix { keys } => keep(format!("(j <= i) | (j < {keys})")),
            Self::Documents { ids } => {
                let ids = Listed(ids);
                keep(format!("torch.tensor({ids})[i] == torch.tensor({ids})[j]"))
            }
            Self::Global { indices } => {
                let indices = Listed(indices);
                keep(format!("torch.isin(i, torch.tensor({indices})) | torch.isin(j, torch.tensor({indices}))"))
            }
            Self::Dilated { width, stride } => {
                keep(format!("((i - j) % {stride} == 0) & ((i - j).abs() < {})", width.saturating_mul(*stride)))
            }
            Self::PerHead { masks } => {
                let mut codes = Vec::with_capacity(masks.len());
                for mask in masks {
                    codes.push(mask.code()?);
                }
                let heads = masks.len();
                let stack = |part: fn(&Code) -> &Option<String>, otherwise: &str| {
                    codes.iter().any(|code| part(code).is_some()).then(|| {
                        let parts = codes.iter().zip(masks).enumerate().map(|(head, (code, mask))| {
                            let whole = part(code).as_deref().unwrap_or(otherwise);
                            match mask.has_batch_axis() {
                                // Of these one part may have the axis, and the other not.
                                true => format!(
                                    "torch.broadcast_tensors({whole}, torch.zeros({heads}, n_q, n_k))[0][..., {head}, :, :]"
                                ),
                                false => format!("({whole}).expand({heads}, n_q, n_k)[{head}]"),
                            }
                        });
                        let parts = parts.collect::<Vec<_>>().join(", ");
                        format!("torch.stack(torch.broadcast_tensors({parts}), dim=-3)")
                    })
                };
                Ok(Code {
                    keep: stack(|code| &code.keep, "torch.ones(n_q, n_k, dtype=torch.bool)"),
                    bias: stack(|code| &code.bias, "torch.zeros(n_q, n_k)"),
                })
            }
            Self::Keep { shape, data, axes } => keep(torch_bool(shape, data, *axes)?),
            Self::Masked { shape, data, axes } => keep(format!("~{}", torch_bool(shape, data, *axes)?)),
            Self::Additive { shape, data, axes } => {
                check_cells(shape, data.len() / 4)?;
                let numbers = data.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
                let bias =
                    format!("torch.tensor({}){}", nested(shape, numbers.map(torch_number)), unsqueeze(shape, *axes));
                Ok(Code { keep: None, bias: Some(bias) })
            }
            Self::Alibi { heads } if *heads > MOST_SLOPES => {
                Err(AttnError::option("alibi", heads, &format!("at most {MOST_SLOPES} heads")))
            }
            Self::Alibi { heads } => {
                let slopes = nested(&[*heads], (0..*heads).map(|head| torch_number(alibi_slope(head, *heads))));
                let bias = format!("-torch.tensor({slopes})[:, None, None] * (i - j).abs()");
                Ok(Code { keep: None, bias: Some(bias) })
            }
            Self::Relative { buckets, heads, table, bidirectional, max_distance } => {
                check_buckets(*buckets, *heads, table, *bidirectional, *max_distance)?;
                let numbers = table.as_chunks().0.iter().map(|&bytes| torch_number(f32::from_le_bytes(bytes)));
                let table = nested(&[*buckets, *heads], numbers);
                let exact = exact_distances(*buckets, *bidirectional);
                let direction = if *bidirectional { buckets / 2 } else { *buckets };
                let far = format!(
                    "({exact} + (n.clamp(min=1).float() / {exact}).log() / {} * {}).long().clamp(max={})",
                    torch_number((*max_distance as f64 / exact as f64).ln()),
                    direction - exact,
                    direction - 1,
                );
                let (distance, after) = match bidirectional {
                    true => ("(i - j).abs()", format!(" + (j > i) * {direction}")),
                    false => ("(i - j).clamp(min=0)", String::new()),
                };
                let bias = format!(
                    "(lambda n: torch.tensor({table})[torch.where(n < {exact}, n, {far}){after}])({distance}).permute(2, 0, 1)"
                );
                Ok(Code { keep: None, bias: Some(bias) })
            }
            Self::And { left, right } | Self::Or { left, right } => {
                let (left, right) = (left.code()?, right.code()?);
                let both = matches!(self, Self::And { .. });
                let keep = match (left.keep, right.keep) {
                    (Some(left), Some(right)) => Some(format!("({left}) {} ({right})", if both { "&" } else { "|" })),
                    (left, right) if both => left.or(right),
                    _ => None,
                };
                let bias = match (left.bias, right.bias) {
                    (Some(left), Some(right)) => Some(format!("({left}) + ({right})")),
                    (left, right) => left.or(right),
                };
                Ok(Code { keep, bias })
            }
            Self::Not { mask } => match mask.code()? {
                Code { keep: Some(of), bias: None } => keep(format!("~({of})")),
                _ => {
                    Err(AttnError::option("not", "a mask that adds to the scores", "a mask that only allows and hides"))
                }
            },
        }
    }

    /// Whether its code makes four axes.
    fn has_batch_axis(&self) -> bool {
        match self {
            Self::Padding { lengths } => lengths.len() > 1,
            Self::Keep { shape, axes, .. } | Self::Masked { shape, axes, .. } | Self::Additive { shape, axes, .. } => {
                shape.len() == 4 || (shape.len() == 3 && axes.is_some())
            }
            Self::PerHead { masks } => masks.iter().any(Self::has_batch_axis),
            Self::And { left, right } | Self::Or { left, right } => left.has_batch_axis() || right.has_batch_axis(),
            Self::Not { mask } => mask.has_batch_axis(),
            _ => false,
        }
    }
}

/// Expressions in `i` and `j`; absent where a mask hides nothing or adds nothing.
struct Code {
    keep: Option<String>,
    bias: Option<String>,
}

/// The most slopes that are written out.
const MOST_SLOPES: usize = 1 << 16;

fn check_cells(shape: &[usize], cells: usize) -> Result<()> {
    if cells > 0 && shape.iter().try_fold(1usize, |size, &axis| size.checked_mul(axis)) == Some(cells) {
        Ok(())
    } else {
        Err(AttnError::option(
            "mask",
            format!("{cells} cells for shape {}", Listed(shape)),
            "as many as the shape says",
        ))
    }
}

fn torch_bool(shape: &[usize], data: &[u8], axes: Option<MaskAxes>) -> Result<String> {
    check_cells(shape, data.len())?;
    let cells = data.iter().map(|&cell| String::from(if cell != 0 { "1" } else { "0" }));
    Ok(format!("torch.tensor({}, dtype=torch.bool){}", nested(shape, cells), unsqueeze(shape, axes)))
}

fn unsqueeze(shape: &[usize], axes: Option<MaskAxes>) -> &'static str {
    match shape {
        [_] | [1, _] | [_, 1] => ".expand(n_q, n_k)",
        [_, _, _] if axes.is_some() => "[:, None]",
        _ => "",
    }
}

fn torch_number(x: impl Into<Float>) -> String {
    let text = number(x);
    match text.trim_start_matches('-') {
        "NaN" => "float(\"nan\")".into(),
        "inf" => ["float(\"", &text, "\")"].concat(),
        whole if whole.bytes().all(|byte| byte.is_ascii_digit()) => text + ".0",
        _ => text,
    }
}

/// The numbers in as many nested brackets as there are axes.
fn nested(shape: &[usize], mut cells: impl Iterator<Item = String>) -> String {
    fn level(shape: &[usize], cells: &mut dyn Iterator<Item = String>) -> String {
        match shape {
            [] => cells.next().unwrap_or_default(),
            [axis, rest @ ..] => {
                let parts: Vec<String> = (0..*axis).map(|_| level(rest, cells)).collect();
                format!("[{}]", parts.join(", "))
            }
        }
    }
    level(shape, &mut cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torch_code_says_which_convention() {
        let code = |convention| Mask::Causal.to_torch(convention).unwrap();
        assert!(code(TorchConvention::Sdpa).ends_with("attn_mask = j <= i  # True = may attend"));
        assert!(code(TorchConvention::Mha).ends_with("attn_mask = ~(j <= i)  # True = hidden"));
        assert!(
            code(TorchConvention::Additive)
                .ends_with("attn_mask = torch.where(j <= i, 0.0, float(\"-inf\"))  # added to the scores")
        );
    }

    #[test]
    fn heads_of_which_one_differs_by_batch_entry_are_broadcast_with_the_others() {
        let by_batch = Mask::Additive { shape: vec![1, 1, 1], data: vec![0; 4], axes: Some(MaskAxes::Batch) };
        let code = Mask::PerHead { masks: vec![by_batch, Mask::Causal] }.to_torch(TorchConvention::Sdpa).unwrap();
        // In PyTorch a size of -1 cannot stand for an axis that is not there, and one that is there cannot be left out.
        assert!(!code.contains("expand(-1") && code.contains("zeros(2, n_q, n_k))[0][..., 0, :, :]"), "{code}");
    }
}
