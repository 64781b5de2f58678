//! A pass as a list of steps. Each step declares what it is made from; here that declaration is carried out with the kernels,
//! in `explain.rs` it is opened for one cell. The arithmetic of a stage is therefore said once.

use std::sync::Arc;

use crate::activation::activate;
use crate::config::{Activation, NormKind};
use crate::error::{AttnError, Result};
use crate::mask::ResolvedMask;
use crate::parameters::{Linear, Norm};
use crate::tensor::Tensor;
use crate::trace::Stage;
use attnscope_kernels::attention::{HeadMask, KeysAndValues, Weighing, attend_head};
use attnscope_kernels::layer_norm::layer_norm_row;
use attnscope_kernels::matmul::{Matrix, matmul, matmul_packed};
use attnscope_kernels::rms_norm::rms_norm_row;
use attnscope_kernels::rotary::rotate_row;
use attnscope_kernels::softmax::softmax_row;

/// The place of a step in its recipe.
pub(crate) type StepId = usize;

/// The angles of rotary positions: a row of cosines and sines for each position.
#[derive(Debug)]
pub(crate) struct Rotation {
    /// `[n, pairs]`
    pub cos: Tensor,
    /// `[n, pairs]`
    pub sin: Tensor,
    pub interleaved: bool,
}

/// What a step is made from. Shapes: b batch, h heads, i query, j key, c column.
#[derive(Debug, Clone)]
pub(crate) enum Made {
    /// Given by the caller; the numbers wait here until the arena is there.
    Given(Vec<f32>),
    /// `[b, i, :] = from[b, i, :] · weightᵀ + bias`, or the same cut into heads.
    Linear { from: StepId, linear: Linear },
    /// The rows of one step behind those of another, and behind them rows `[heads, more, width]` that the module adds.
    Joined { before: Option<StepId>, from: StepId, after: Option<Arc<Tensor>> },
    /// Each row turned by the angles of its position.
    Rotated { from: StepId, rotation: Arc<Rotation> },
    /// from + the table's row of each position, `[n, c]`
    Positioned { from: StepId, table: Arc<Tensor> },
    /// `[b, h, i, j] = query[b, h, i, :] · key[b, h, j, :]`; groups of query heads share a key head.
    Dot { query: StepId, key: StepId },
    /// from · factor
    Scaled { from: StepId, factor: f32 },
    /// cap · tanh(from / cap)
    Softcap { from: StepId, cap: f32 },
    /// from + bias where allowed, else the fill
    Masked { from: StepId, mask: Option<Arc<ResolvedMask>>, fill: f32 },
    /// softmax over j
    Softmax { from: StepId, zero_empty_rows: bool },
    /// `[b, h, i, c] = Σ_j weights[b, h, i, j] · value[b, h, j, c]`, times the head's factor
    Context { weights: StepId, value: StepId, head_mask: Option<Vec<f32>> },
    /// From the queries to the context in one sweep, each head's factor included; the weights are left in a place of their
    /// own where there is one. What a pass that keeps no stages does.
    Attended { query: StepId, key: StepId, value: StepId, weights: Option<StepId>, how: Attended },
    /// The same numbers under another name or shape: the heads side by side, the next layer's input.
    Same { from: StepId },
    /// left + right
    Sum { left: StepId, right: StepId },
    /// left · right
    Product { left: StepId, right: StepId },
    /// from · factor, each number its own: 0 where it is dropped, else 1 / (1 - p)
    Dropped { from: StepId, factors: Arc<Vec<f32>> },
    /// LayerNorm or RMSNorm over c
    Norm { from: StepId, norm: Norm },
    /// the non-linearity
    Activated { from: StepId, activation: Activation },
}

/// What attention in one sweep needs beside its numbers.
#[derive(Debug, Clone)]
pub(crate) struct Attended {
    pub weighing: Weighing,
    pub mask: Option<Arc<ResolvedMask>>,
    pub head_mask: Option<Vec<f32>>,
}

/// A stage, where its numbers lie, and what they are made from.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub layer: usize,
    pub stage: Stage,
    /// `[batch, n, width]`, or `[batch, heads, n, width]`
    pub shape: Vec<usize>,
    pub made: Made,
    offset: usize,
    strides: Vec<usize>,
}

impl Step {
    /// Where a cell's number lies in the arena.
    pub fn at(&self, index: &[usize]) -> usize {
        self.offset + index.iter().zip(&self.strides).map(|(index, stride)| index * stride).sum::<usize>()
    }

    /// The numbers, row-major.
    pub fn read(&self, numbers: &[f32]) -> Vec<f32> {
        let size = self.shape.iter().product();
        if let [_, heads, n, width] = self.shape[..]
            && self.strides[2] != width
        {
            let mut out = Vec::with_capacity(size);
            for row in 0..size / width {
                let (batch, head, i) = (row / n / heads, row / n % heads, row % n);
                out.extend_from_slice(&numbers[self.at(&[batch, head, i, 0])..][..width]);
            }
            return out;
        }
        numbers[self.offset..][..size].to_vec()
    }

    fn size(&self) -> usize {
        self.shape.iter().product()
    }

    fn width(&self) -> usize {
        self.shape[self.shape.len() - 1]
    }

    /// One head's rows as a matrix `[n, width]`.
    fn head<'a>(&self, numbers: &'a [f32], batch: usize, head: usize) -> Matrix<'a> {
        Matrix::new(&numbers[self.at(&[batch, head, 0, 0])..], self.shape[2], self.shape[3], self.strides[2])
    }
}

/// The steps of a pass, and how many numbers they need.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    steps: Vec<Step>,
    size: u64,
    size_beside: u64,
    keep: bool,
}

impl Recipe {
    /// With `keep` every stage has a place of its own; without, elementwise steps work in place.
    pub fn new(keep: bool) -> Self {
        Self { steps: Vec::new(), size: 0, size_beside: 0, keep }
    }

    pub fn keeps(&self) -> bool {
        self.keep
    }

    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub fn steps_mut(&mut self) -> &mut [Step] {
        &mut self.steps
    }

    pub fn last(&self) -> &Step {
        &self.steps[self.steps.len() - 1]
    }

    pub fn shape(&self, step: StepId) -> &[usize] {
        &self.steps[step].shape
    }

    pub fn find(&self, stage: Stage, layer: usize) -> Option<&Step> {
        self.steps.iter().find(|step| step.stage == stage && step.layer == layer)
    }

    /// Adds a step whose numbers lie row-major.
    pub fn push(&mut self, layer: usize, stage: Stage, shape: Vec<usize>, made: Made) -> StepId {
        let strides = row_major(&shape);
        self.place(layer, stage, shape, strides, made)
    }

    /// Adds a step of shape `[batch, heads, n, width]` whose numbers lie as `[batch, n, heads, width]`: what a projection
    /// gives, cut into heads without moving anything.
    pub fn push_heads(&mut self, layer: usize, stage: Stage, shape: [usize; 4], made: Made) -> StepId {
        let [_, heads, n, width] = shape;
        let strides = vec![n * heads * width, width, heads * width, 1];
        self.place(layer, stage, shape.to_vec(), strides, made)
    }

    fn place(&mut self, layer: usize, stage: Stage, shape: Vec<usize>, strides: Vec<usize>, made: Made) -> StepId {
        let in_place = match &made {
            Made::Same { from } => Some(*from),
            Made::Scaled { from, .. }
            | Made::Softcap { from, .. }
            | Made::Masked { from, .. }
            | Made::Softmax { from, .. }
            | Made::Rotated { from, .. }
            | Made::Activated { from, .. }
                if !self.keep =>
            {
                Some(*from)
            }
            _ => None,
        };
        let offset = match in_place {
            Some(from) => self.steps[from].offset,
            None => {
                let offset = self.size as usize;
                let size = shape.iter().fold(1u64, |size, &axis| size.saturating_mul(axis as u64));
                self.size = self.size.saturating_add(size);
                offset
            }
        };
        self.steps.push(Step { layer, stage, shape, made, offset, strides });
        self.steps.len() - 1
    }

    /// Counts numbers that a step holds outside the arena.
    pub fn count(&mut self, numbers: usize) {
        self.size_beside = self.size_beside.saturating_add(numbers as u64);
    }

    /// # Errors
    /// `too_large` where the numbers need more than `max_bytes`.
    pub fn check_size(&self, max_bytes: usize) -> Result<()> {
        let needed = self.size.saturating_add(self.size_beside).saturating_mul(4);
        if needed > max_bytes as u64 || usize::try_from(needed).is_err() {
            return Err(AttnError::too_large(needed, max_bytes));
        }
        Ok(())
    }

    /// The arena, the given numbers laid into it.
    pub fn allocate(&mut self, max_bytes: usize) -> Result<Vec<f32>> {
        self.check_size(max_bytes)?;
        let mut numbers = Vec::new();
        numbers.try_reserve_exact(self.size as usize).map_err(|_| AttnError::too_large(4 * self.size, max_bytes))?;
        numbers.resize(self.size as usize, 0.0);
        for step in &mut self.steps {
            if let Made::Given(given) = &mut step.made {
                numbers[step.offset..][..given.len()].copy_from_slice(&std::mem::take(given));
            }
        }
        Ok(numbers)
    }

    /// Carries out the steps from `first` on.
    pub fn run_from(&self, first: StepId, numbers: &mut [f32]) {
        for step in &self.steps[first..] {
            self.run(step, numbers);
        }
    }

    fn run(&self, step: &Step, numbers: &mut [f32]) {
        let width = step.width();
        match &step.made {
            Made::Given(_) | Made::Same { .. } => {}
            Made::Linear { from, linear } => {
                let (before, out) = numbers.split_at_mut(step.offset);
                let from = &self.steps[*from];
                let rows = from.size() / from.width();
                let x = Matrix::new(&before[from.offset..], rows, from.width(), from.width());
                let bias = linear.bias.as_ref().map(|bias| &bias.data[..]);
                matmul_packed(x, linear.packed(), bias, out, linear.weight.shape[0]);
            }
            Made::Joined { before, from, after } => {
                let (earlier, out) = numbers.split_at_mut(step.offset);
                let [_, heads, n, _] = step.shape[..] else { unreachable!("keys and values are cut into heads") };
                for ((batch, head), out) in heads_of(step).zip(out.chunks_exact_mut(n * width)) {
                    let mut rows = out.chunks_exact_mut(width);
                    for part in before.iter().chain([from]).map(|id| &self.steps[*id]) {
                        for i in 0..part.shape[2] {
                            let row = &earlier[part.at(&[batch, head, i, 0])..][..width];
                            rows.next().expect("a row for each part's").copy_from_slice(row);
                        }
                    }
                    if let Some(after) = after {
                        let more = after.data.len() / heads;
                        for (row, added) in rows.zip(after.data[head * more..][..more].chunks_exact(width)) {
                            row.copy_from_slice(added);
                        }
                    }
                }
            }
            Made::Rotated { from, rotation } => {
                self.elementwise(step, *from, numbers);
                let pairs = rotation.cos.width();
                let [_, _, n, _] = step.shape[..] else { unreachable!("queries and keys are cut into heads") };
                for (batch, head) in heads_of(step) {
                    for i in 0..n {
                        let row = &mut numbers[step.at(&[batch, head, i, 0])..][..width];
                        let [cos, sin] =
                            [&rotation.cos, &rotation.sin].map(|angles| &angles.data[i * pairs..][..pairs]);
                        rotate_row(row, cos, sin, rotation.interleaved);
                    }
                }
            }
            Made::Positioned { from, table } => {
                let rows = self.elementwise(step, *from, numbers);
                let entry = step.shape[1] * width;
                for rows in rows.chunks_exact_mut(entry) {
                    rows.iter_mut().zip(&table.data).for_each(|(x, position)| *x += position);
                }
            }
            Made::Dot { query, key } => {
                let (before, out) = numbers.split_at_mut(step.offset);
                let (query, key) = (&self.steps[*query], &self.steps[*key]);
                for (batch, head) in heads_of(step) {
                    let keys = key.head(before, batch, shared_head(step, key, head));
                    let out = &mut out[step.at(&[batch, head, 0, 0]) - step.offset..];
                    matmul(query.head(before, batch, head), keys.transposed(), None, out, width);
                }
            }
            Made::Context { weights, value, head_mask } => {
                let (before, out) = numbers.split_at_mut(step.offset);
                let (weights, value) = (&self.steps[*weights], &self.steps[*value]);
                let row_stride = step.strides[2];
                for (batch, head) in heads_of(step) {
                    let values = value.head(before, batch, shared_head(step, value, head));
                    let out = &mut out[step.at(&[batch, head, 0, 0]) - step.offset..];
                    matmul(weights.head(before, batch, head), values, None, out, row_stride);
                    if let Some(factors) = head_mask {
                        for i in 0..step.shape[2] {
                            out[i * row_stride..][..width].iter_mut().for_each(|x| *x *= factors[head]);
                        }
                    }
                }
            }
            Made::Attended { query, key, value, weights, how } => {
                let (before, out) = numbers.split_at_mut(step.offset);
                let weights_at = weights.map_or(before.len(), |weights| self.steps[weights].offset);
                let (before, weights) = before.split_at_mut(weights_at);
                self.attend(step, [*query, *key, *value], how, before, weights, out);
            }
            Made::Scaled { from, factor } => {
                self.elementwise(step, *from, numbers).iter_mut().for_each(|x| *x *= factor);
            }
            Made::Softcap { from, cap } => {
                self.elementwise(step, *from, numbers).iter_mut().for_each(|x| *x = cap * (*x / cap).tanh());
            }
            Made::Masked { from, mask, fill } => {
                let scores = self.elementwise(step, *from, numbers);
                if let Some(mask) = mask {
                    apply_mask(step, mask, *fill, scores);
                }
            }
            Made::Softmax { from, zero_empty_rows } => {
                for row in self.elementwise(step, *from, numbers).chunks_exact_mut(width) {
                    if *zero_empty_rows && row.iter().all(|&x| x == f32::NEG_INFINITY) {
                        row.fill(0.0);
                    } else {
                        softmax_row(row);
                    }
                }
            }
            Made::Activated { from, activation } => {
                self.elementwise(step, *from, numbers).iter_mut().for_each(|x| *x = activate(*activation, *x));
            }
            Made::Norm { from, norm } => {
                let bias = norm.bias.as_ref().map(|bias| &bias.data[..]);
                for row in self.elementwise(step, *from, numbers).chunks_exact_mut(width) {
                    match norm.kind {
                        NormKind::Layer => layer_norm_row(row, &norm.weight.data, bias, norm.eps),
                        NormKind::Rms => rms_norm_row(row, &norm.weight.data, norm.eps),
                    }
                }
            }
            Made::Dropped { from, factors } => {
                let numbers = self.elementwise(step, *from, numbers);
                numbers.iter_mut().zip(&factors[..]).for_each(|(x, factor)| *x *= factor);
            }
            Made::Sum { left, right } => self.combine(step, [*left, *right], numbers, |sum, x| *sum += x),
            Made::Product { left, right } => self.combine(step, [*left, *right], numbers, |product, x| *product *= x),
        }
    }

    /// Head by head; `weights` is empty where they are not wanted.
    fn attend(
        &self,
        step: &Step,
        inputs: [StepId; 3],
        how: &Attended,
        before: &[f32],
        weights: &mut [f32],
        out: &mut [f32],
    ) {
        let [query, key, value] = inputs.map(|id| &self.steps[id]);
        let (n_q, n_k, row_stride) = (step.shape[2], key.shape[2], step.strides[2]);
        let visible = how.mask.as_ref().map(|mask| mask.visible());
        let mut shared: Option<((usize, usize), KeysAndValues)> = None;
        for (index, (batch, head)) in heads_of(step).enumerate() {
            let place = (batch, shared_head(step, key, head));
            if shared.as_ref().is_none_or(|(packed, _)| *packed != place) {
                let [keys, values] = [key, value].map(|step| step.head(before, place.0, place.1));
                shared = Some((place, KeysAndValues::new(keys, values)));
            }
            let Some((_, kv)) = &shared else { unreachable!("packed above") };
            let mask = how.mask.as_ref().zip(visible.as_ref()).map(|(mask, visible)| {
                let start = mask.matrix(batch, head);
                HeadMask {
                    allowed: &mask.allowed[start..],
                    bias: mask.bias.as_ref().map(|bias| &bias[start..]),
                    visible: &visible[start / n_k..],
                }
            });
            let weights = if weights.is_empty() { None } else { Some(&mut weights[index * n_q * n_k..][..n_q * n_k]) };
            let out = &mut out[step.at(&[batch, head, 0, 0]) - step.offset..];
            attend_head(query.head(before, batch, head), kv, mask, how.weighing, weights, out, row_stride);
            if let Some(factors) = &how.head_mask {
                for i in 0..n_q {
                    out[i * row_stride..][..step.width()].iter_mut().for_each(|x| *x *= factors[head]);
                }
            }
        }
    }

    fn combine(&self, step: &Step, [left, right]: [StepId; 2], numbers: &mut [f32], with: impl Fn(&mut f32, &f32)) {
        let (right, size) = (self.steps[right].offset, step.size());
        self.elementwise(step, left, numbers);
        let (before, out) = numbers.split_at_mut(step.offset);
        out[..size].iter_mut().zip(&before[right..]).for_each(|(x, right)| with(x, right));
    }

    /// The step's place, holding the numbers it is made from.
    fn elementwise<'a>(&self, step: &Step, from: StepId, numbers: &'a mut [f32]) -> &'a mut [f32] {
        let (from, size) = (self.steps[from].offset, step.size());
        if from != step.offset {
            numbers.copy_within(from..from + size, step.offset);
        }
        &mut numbers[step.offset..][..size]
    }
}

fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

fn heads_of(step: &Step) -> impl Iterator<Item = (usize, usize)> {
    let (batch, heads) = (step.shape[0], step.shape[1]);
    (0..batch * heads).map(move |at| (at / heads, at % heads))
}

/// The key or value head that a query head uses (Ainslie et al. 2023, grouped-query attention).
pub(crate) fn shared_head(queries: &Step, keys: &Step, head: usize) -> usize {
    head / (queries.shape[1] / keys.shape[1])
}

fn apply_mask(step: &Step, mask: &ResolvedMask, fill: f32, scores: &mut [f32]) {
    let cells = step.shape[2] * step.shape[3];
    for ((batch, head), scores) in heads_of(step).zip(scores.chunks_exact_mut(cells)) {
        let start = mask.matrix(batch, head);
        if let Some(bias) = &mask.bias {
            scores.iter_mut().zip(&bias[start..]).for_each(|(score, bias)| *score += bias);
        }
        for (score, &allowed) in scores.iter_mut().zip(&mask.allowed[start..]) {
            if allowed == 0 {
                *score = fill;
            }
        }
    }
}
