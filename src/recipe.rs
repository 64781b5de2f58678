//! A pass as a list of steps. Each step declares what it is made from: `run.rs` carries that declaration out with the kernels,
//! `explain.rs` opens it for one cell. The arithmetic of a stage is therefore said once.

use std::borrow::Cow;
use std::sync::Arc;

use crate::config::Activation;
use crate::error::{AttnError, Result};
use crate::mask::ResolvedMask;
use crate::parameters::{Linear, Norm, Parameter};
use crate::tensor::Tensor;
use crate::trace::{Stage, StageInfo};
use attnscope_kernels::attention::Weighing;

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
    Positioned { from: StepId, table: Arc<Parameter> },
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
    /// Weights that attention in one sweep hands out, some queries' at a time: they have no place in the arena.
    HandedOut,
    /// From the queries to the context in one sweep, each head's factor included; the weights are handed out where they are
    /// wanted. What a pass that keeps no stages does.
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

impl Made {
    /// The steps whose numbers it reads.
    pub fn sources(&self) -> [Option<StepId>; 3] {
        match *self {
            Made::Given(_) | Made::HandedOut => [None; 3],
            Made::Linear { from, .. }
            | Made::Rotated { from, .. }
            | Made::Positioned { from, .. }
            | Made::Scaled { from, .. }
            | Made::Softcap { from, .. }
            | Made::Masked { from, .. }
            | Made::Softmax { from, .. }
            | Made::Same { from }
            | Made::Dropped { from, .. }
            | Made::Norm { from, .. }
            | Made::Activated { from, .. } => [Some(from), None, None],
            Made::Joined { before, from, .. } => [Some(from), before, None],
            Made::Dot { query: left, key: right }
            | Made::Context { weights: left, value: right, .. }
            | Made::Sum { left, right }
            | Made::Product { left, right } => [Some(left), Some(right), None],
            Made::Attended { query, key, value, .. } => [Some(query), Some(key), Some(value)],
        }
    }
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
    pub offset: usize,
    pub strides: Vec<usize>,
}

impl Step {
    /// Where a cell's number lies in the arena.
    pub fn at(&self, index: &[usize]) -> usize {
        self.offset + index.iter().zip(&self.strides).map(|(index, stride)| index * stride).sum::<usize>()
    }

    /// The numbers, row-major; copied where they do not lie so.
    pub fn read<'a>(&self, numbers: Numbers<'a>) -> Cow<'a, [f32]> {
        self.arranged(numbers.from(self.offset))
    }

    /// The same of numbers that begin with the step's.
    pub fn arranged<'a>(&self, numbers: &'a [f32]) -> Cow<'a, [f32]> {
        let size = self.size();
        if let [_, heads, n, width] = self.shape[..]
            && self.strides[2] != width
        {
            let mut out = Vec::with_capacity(size);
            for row in 0..size / width {
                let (batch, head, i) = (row / n / heads, row / n % heads, row % n);
                let at = self.at(&[batch, head, i, 0]) - self.offset;
                out.extend_from_slice(&numbers[at..][..width]);
            }
            return Cow::Owned(out);
        }
        Cow::Borrowed(&numbers[..size])
    }

    /// What a trace says of it.
    pub fn info(&self, hidden_axes: usize) -> StageInfo {
        StageInfo { name: self.stage, layer: self.layer, shape: self.shape[hidden_axes..].to_vec() }
    }

    pub fn size(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn width(&self) -> usize {
        self.shape[self.shape.len() - 1]
    }

    /// How long its last axis but one is.
    pub fn rows(&self) -> usize {
        self.shape[self.shape.len() - 2]
    }
}

/// The numbers of a pass: first those that no mask reaches, which passes under other masks share, then its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers<'a> {
    pub shared: &'a [f32],
    pub own: &'a [f32],
}

impl<'a> Numbers<'a> {
    /// What lies from a place on, as far as its part reaches.
    pub fn from(self, at: usize) -> &'a [f32] {
        match at.checked_sub(self.shared.len()) {
            Some(at) => &self.own[at..],
            None => &self.shared[at..],
        }
    }
}

/// The steps of a pass, and how many numbers they need.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    steps: Vec<Step>,
    size: u64,
    size_beside: u64,
    /// How many numbers are handed out.
    handed_out: u64,
    keep: bool,
    /// Where stages are kept, the first step that a mask reaches, and how many numbers those before it need.
    masked: Option<(StepId, u64)>,
}

impl Recipe {
    /// With `keep` every stage has a place of its own; without, elementwise steps work in place.
    pub fn new(keep: bool) -> Self {
        Self { steps: Vec::new(), size: 0, size_beside: 0, handed_out: 0, keep, masked: None }
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
        if self.keep && self.masked.is_none() && matches!(made, Made::Masked { .. }) {
            self.masked = Some((self.steps.len(), self.size));
        }
        let in_place = match &made {
            Made::Same { from } | Made::Masked { from, mask: None, .. } => Some(*from),
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
                let sum = if matches!(made, Made::HandedOut) { &mut self.handed_out } else { &mut self.size };
                let offset = *sum as usize;
                let size = shape.iter().fold(1u64, |size, &axis| size.saturating_mul(axis as u64));
                *sum = sum.saturating_add(size);
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

    /// How many numbers the steps have places for.
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// How many of them lie before those that a mask reaches.
    pub fn shared_size(&self) -> usize {
        self.masked.map_or(0, |(_, size)| size as usize)
    }

    /// The first step that a mask reaches; none where no stages are kept.
    pub fn masked(&self) -> Option<StepId> {
        self.masked.map(|(step, _)| step)
    }

    /// The same steps, some of them made in another way.
    pub fn remade(&self, remake: impl Fn(Stage, &mut Made)) -> Self {
        let mut again = Self::new(self.keep);
        for Step { layer, stage, shape, made, strides, .. } in self.steps.iter().cloned() {
            let mut made = made;
            remake(stage, &mut made);
            again.place(layer, stage, shape, strides, made);
        }
        again
    }

    /// # Errors
    /// `too_large` where the numbers need more than `max_bytes`.
    pub fn check_size(&self, max_bytes: usize) -> Result<()> {
        self.check(self.size, max_bytes)
    }

    /// The same for the steps that a mask reaches alone.
    ///
    /// # Errors
    /// `too_large` where the numbers need more than `max_bytes`.
    pub fn check_own_size(&self, max_bytes: usize) -> Result<()> {
        self.check(self.size - self.shared_size() as u64, max_bytes)
    }

    fn check(&self, size: u64, max_bytes: usize) -> Result<()> {
        let needed = size.saturating_add(self.size_beside).saturating_add(self.handed_out).saturating_mul(4);
        if needed > max_bytes as u64 || usize::try_from(needed).is_err() {
            return Err(AttnError::too_large(needed, max_bytes));
        }
        Ok(())
    }

    /// How many numbers are handed out.
    pub fn handed_out(&self) -> u64 {
        self.handed_out
    }

    /// Puts what is given in its places.
    pub fn place_given(&mut self, numbers: &mut [f32]) {
        for step in &mut self.steps {
            if let Made::Given(given) = &mut step.made {
                let given = std::mem::take(given);
                numbers[step.offset..][..given.len()].copy_from_slice(&given);
            }
        }
    }

    /// Steps and where their numbers lie now; those of the others are gone.
    pub fn move_to(&mut self, places: &[[usize; 2]]) {
        for &[step, at] in places {
            self.steps[step].offset = at;
        }
    }
}

fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// The key or value head that a query head uses (Ainslie et al. 2023, grouped-query attention).
pub(crate) fn shared_head(queries: &Step, keys: &Step, head: usize) -> usize {
    head / (queries.shape[1] / keys.shape[1])
}
