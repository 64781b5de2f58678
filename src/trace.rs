//! What a pass leaves behind: every stage with its shape, ready to be read, explained, or run again from the mask on.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::{EmptyRow, RemaskOptions};
use crate::error::{AttnError, Result};
use crate::explain::{self, Explanation};
use crate::mask::{Mask, MaskSize, ResolvedMask};
use crate::recipe::{Made, Recipe, Step};
use crate::tensor::Tensor;

/// The stages of a pass, in the field's terms. `query` to `context` are `[heads, n, ...]`, the others `[n, ...]`,
/// with `[batch, ...]` in front where the input has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// x, or what the layer before gave
    Input,
    /// what the keys are made from, where it is not x
    KeyInput,
    /// what the values are made from, where it is not the keys' input
    ValueInput,
    /// input · W_Qᵀ + b_Q
    Query,
    /// input · W_Kᵀ + b_K
    Key,
    /// input · W_Vᵀ + b_V
    Value,
    /// query · keyᵀ
    Scores,
    /// scores times the scale, by default 1 / sqrt(d_k)
    Scaled,
    /// softcap · tanh(scaled / softcap)
    Capped,
    /// the scaled scores, hidden cells filled
    Masked,
    /// softmax of each row
    Weights,
    /// weights · value
    Context,
    /// the heads' contexts side by side
    Concat,
    /// concat · W_Oᵀ + b_O
    Output,
    /// output + input
    Residual,
    /// LayerNorm
    Norm,
    /// the feed-forward network's first layer
    Hidden,
    /// its non-linearity
    Activation,
    /// its second layer
    FeedForward,
    /// feed_forward + what entered it
    Residual2,
    /// the second LayerNorm
    Norm2,
}

impl Stage {
    /// The stage's name, such as `"feed_forward"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::KeyInput => "key_input",
            Self::ValueInput => "value_input",
            Self::Query => "query",
            Self::Key => "key",
            Self::Value => "value",
            Self::Scores => "scores",
            Self::Scaled => "scaled",
            Self::Capped => "capped",
            Self::Masked => "masked",
            Self::Weights => "weights",
            Self::Context => "context",
            Self::Concat => "concat",
            Self::Output => "output",
            Self::Residual => "residual",
            Self::Norm => "norm",
            Self::Hidden => "hidden",
            Self::Activation => "activation",
            Self::FeedForward => "feed_forward",
            Self::Residual2 => "residual2",
            Self::Norm2 => "norm2",
        }
    }
}

/// A stage that a trace holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct StageInfo {
    /// Its name.
    pub name: Stage,
    /// Its block, from 0.
    pub layer: usize,
    /// Its shape.
    pub shape: Vec<usize>,
}

/// One pass. Cloning copies the numbers.
#[derive(Debug, Clone)]
pub struct Trace {
    recipe: Recipe,
    numbers: Vec<f32>,
    /// Leading axes that the input did not have and the shapes therefore do not show.
    hidden_axes: usize,
    returns: Returns,
    max_bytes: usize,
}

/// What the caller asked to have back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Returns {
    pub weights: bool,
    pub average_weights: bool,
}

impl Trace {
    pub(crate) fn run(mut recipe: Recipe, hidden_axes: usize, returns: Returns, max_bytes: usize) -> Result<Self> {
        let mut numbers = recipe.allocate(max_bytes)?;
        recipe.run_from(0, &mut numbers);
        Ok(Self { recipe, numbers, hidden_axes, returns, max_bytes })
    }

    /// The result: the last stage, `[n, d_model]` or as the input has it.
    pub fn output(&self) -> Tensor {
        self.read(self.recipe.last())
    }

    /// The number of layers; 1 but for a stack.
    pub fn n_layers(&self) -> usize {
        self.recipe.last().layer + 1
    }

    /// A layer's attention weights, `[heads, n_q, n_k]`, or `[n_q, n_k]` where their mean was asked for; none where they were not.
    ///
    /// # Errors
    /// `no_such_stage` for a layer that is not there.
    pub fn weights(&self, layer: usize) -> Result<Option<Tensor>> {
        let step = self.recipe.find(Stage::Weights, layer).ok_or_else(|| self.no_such(Stage::Weights, layer))?;
        if !self.returns.weights {
            return Ok(None);
        }
        let weights = self.read(step);
        Ok(Some(if self.returns.average_weights { mean_over_heads(&weights) } else { weights }))
    }

    /// The stages that were kept, in order.
    pub fn stages(&self) -> Vec<StageInfo> {
        let steps = if self.recipe.keeps() { self.recipe.steps() } else { &[] };
        steps
            .iter()
            .map(|step| StageInfo {
                name: step.stage,
                layer: step.layer,
                shape: step.shape[self.hidden_axes..].to_vec(),
            })
            .collect()
    }

    /// A stage's numbers.
    ///
    /// # Errors
    /// `no_such_stage` where it was not kept.
    pub fn stage(&self, stage: Stage, layer: usize) -> Result<Tensor> {
        self.kept(stage, layer).map(|step| self.read(step))
    }

    /// How one cell of a stage was made, as arithmetic with the real numbers.
    ///
    /// # Errors
    /// `no_such_stage` where the stage was not kept, `shape_mismatch` where it has no such cell.
    pub fn explain(&self, stage: Stage, layer: usize, index: &[usize]) -> Result<Explanation> {
        let step = self.kept(stage, layer)?;
        let shape = &step.shape[self.hidden_axes..];
        if index.len() != shape.len() || index.iter().zip(shape).any(|(index, axis)| index >= axis) {
            return Err(AttnError::shape("index", index, format!("a cell of {} {shape:?}", stage.name())));
        }
        let mut inside = vec![0; self.hidden_axes];
        inside.extend_from_slice(index);
        let mut explanation = explain::explain(&self.recipe, &self.numbers, step, &inside);
        explanation.index = index.to_vec();
        Ok(explanation)
    }

    /// The same pass with another mask: the mask, the softmax and what follows are done again, no projection before them.
    ///
    /// # Errors
    /// `no_such_stage` where the pass kept no stages, `mask_shape` where the mask does not fit.
    pub fn remask(&self, mask: Option<&Mask>, options: &RemaskOptions) -> Result<Self> {
        let first = self.recipe.steps().iter().position(|step| step.stage == Stage::Masked);
        let Some(first) = first.filter(|_| self.recipe.keeps()) else {
            return Err(self.no_such(Stage::Masked, 0));
        };
        let shape = &self.recipe.steps()[first].shape;
        let mask = resolve(mask, options.is_causal, [shape[0], shape[1], shape[2], shape[3]])?;
        let mut again = self.clone();
        again.recipe.check_size(again.max_bytes)?;
        for step in again.recipe.steps_mut() {
            match &mut step.made {
                Made::Masked { mask: old, fill, .. } => {
                    old.clone_from(&mask);
                    *fill = options.mask_fill;
                }
                Made::Softmax { zero_empty_rows, .. } => *zero_empty_rows = options.empty_row == EmptyRow::Zero,
                _ => {}
            }
        }
        again.recipe.run_from(first, &mut again.numbers);
        Ok(again)
    }

    fn kept(&self, stage: Stage, layer: usize) -> Result<&Step> {
        self.recipe.find(stage, layer).filter(|_| self.recipe.keeps()).ok_or_else(|| self.no_such(stage, layer))
    }

    fn no_such(&self, stage: Stage, layer: usize) -> AttnError {
        let available =
            self.stages().into_iter().filter(|info| info.layer == layer).map(|info| info.name.name().into());
        AttnError::NoSuchStage { stage: stage.name().into(), layer, available: available.collect() }
    }

    fn read(&self, step: &Step) -> Tensor {
        Tensor { shape: step.shape[self.hidden_axes..].to_vec(), data: step.read(&self.numbers) }
    }
}

/// The mask at the size of the scores, `is_causal` joined to it.
pub(crate) fn resolve(mask: Option<&Mask>, is_causal: bool, scores: [usize; 4]) -> Result<Option<Arc<ResolvedMask>>> {
    let [batch, n_heads, n_q, n_k] = scores;
    let size = MaskSize { n_q, n_k, n_heads, batch };
    let resolved = match (mask, is_causal) {
        (None, false) => return Ok(None),
        (None, true) => Mask::Causal.materialize(size)?,
        (Some(mask), false) => mask.materialize(size)?,
        (Some(mask), true) => {
            Mask::And { left: Box::new(mask.clone()), right: Box::new(Mask::Causal) }.materialize(size)?
        }
    };
    Ok(Some(Arc::new(resolved)))
}

fn mean_over_heads(weights: &Tensor) -> Tensor {
    let heads_axis = weights.shape.len() - 3;
    let heads = weights.shape[heads_axis];
    let cells = weights.shape[heads_axis + 1] * weights.shape[heads_axis + 2];
    let mut shape = weights.shape.clone();
    shape.remove(heads_axis);
    let mut data = Vec::with_capacity(weights.data.len() / heads);
    for entry in weights.data.chunks_exact(heads * cells) {
        data.extend((0..cells).map(|cell| {
            let sum: f64 = entry.iter().skip(cell).step_by(cells).map(|&weight| f64::from(weight)).sum();
            (sum / heads as f64) as f32
        }));
    }
    Tensor { shape, data }
}
