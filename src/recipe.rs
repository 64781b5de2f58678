//! A pass as a list of steps. Each step declares what it is made from; here that declaration is carried out with the kernels,
//! in `explain.rs` it is opened for one cell. The arithmetic of a stage is therefore said once.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::activation::activate;
use crate::changed::{changed_rows, have_same_steps};
use crate::config::{Activation, NormKind};
use crate::error::{AttnError, Result};
use crate::mask::ResolvedMask;
use crate::parameters::{Linear, Norm};
use crate::tensor::Tensor;
use crate::trace::{Stage, StageInfo};
use attnscope_kernels::attention::{self, HeadMask, KeysAndValues, Queries, Weighing, attend, capped};
use attnscope_kernels::layer_norm::layer_norm_row;
use attnscope_kernels::matmul::{MC, Matrix, MatrixMut, Packed, Product, Room, matmul_all};
use attnscope_kernels::rms_norm::rms_norm_row;
use attnscope_kernels::rotary::rotate_row;
use attnscope_kernels::softmax::softmax_row;
use attnscope_kernels::threads;

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

    /// Where rows of every batch entry and head lie, counted in widths from the step's place on; all rows are one span.
    fn spans(&self, rows: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let all = self.size() / self.width();
        // Where heads lie beside each other, a row of all heads is one behind the other.
        let beside = if let [_, heads, _, width] = self.shape[..]
            && self.strides[2] != width
        {
            heads
        } else {
            1
        };
        let (part, span) = if rows.len() == self.rows() {
            (all, 0..all)
        } else {
            (self.rows() * beside, rows.start * beside..rows.end * beside)
        };
        (0..all).step_by(part.max(1)).map(move |start| start + span.start..start + span.end)
    }

    /// One head's rows as a matrix `[n, width]`.
    fn head<'a>(&self, numbers: Numbers<'a>, batch: usize, head: usize) -> Matrix<'a> {
        Matrix::new(numbers.from(self.at(&[batch, head, 0, 0])), self.shape[2], self.shape[3], self.strides[2])
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

/// Takes some of a step's numbers that are handed out, row-major, and the place of the first of them.
pub(crate) type HandOut<'h> = dyn FnMut(&Step, usize, &[f32]) + 'h;

/// An earlier pass, which made some rows as this one would.
#[derive(Debug)]
pub(crate) struct Before {
    /// For each step the rows that it made otherwise.
    changed: Vec<Range<usize>>,
    /// Where each step's numbers lie there.
    offsets: Vec<usize>,
    shared: Arc<Vec<f32>>,
    own: Arc<Vec<f32>>,
}

impl Before {
    /// What a pass of the recipe `before` leaves to the steps of `recipe` from `first` on; those before it are the same. None where
    /// the two have not the same steps, or keep none.
    pub fn new(recipe: &Recipe, first: StepId, before: &Recipe, [shared, own]: [Arc<Vec<f32>>; 2]) -> Option<Self> {
        if !(recipe.keep && before.keep && have_same_steps(recipe, before)) {
            return None;
        }
        let changed = changed_rows(recipe, first, before, Numbers { shared: &shared, own: &own });
        let offsets = before.steps.iter().map(|step| step.offset).collect();
        Some(Self { changed, offsets, shared, own })
    }
}

/// Whoever waits for a pass is told which part of its work is done, and takes what it hands out.
struct Caller<'w, 'h> {
    watch: &'w mut dyn FnMut(f32),
    hand_out: &'w mut HandOut<'h>,
    done: f64,
    all: f64,
    /// What each number of the step under way costs.
    cost: f64,
    room: Room,
}

impl Caller<'_, '_> {
    /// So many numbers of the step are there.
    fn tell(&mut self, numbers: usize) {
        self.done += numbers as f64 * self.cost;
        (self.watch)((self.done / self.all).min(1.0) as f32);
    }
}

/// Numbers of an elementwise step at a time, so that they stay in the second-level cache.
const BLOCK: usize = 1 << 15;
/// What it costs to move a number and to do little with it, in multiply-adds of the matrix product.
const LIGHT: usize = 12;
/// The same with an exponential or a root among it.
const HEAVY: usize = 36;

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

    /// What it costs to carry out the steps from `first` on, in multiply-adds; with `before` only the rows that are not there.
    pub fn work(&self, first: StepId, before: Option<&Before>) -> f64 {
        let cost = |id: StepId| {
            let step = &self.steps[id];
            let part = self.rows_to_make(id, before).len() as f64 / step.rows().max(1) as f64;
            self.cost(step) as f64 * step.size() as f64 * part
        };
        (first..self.steps.len()).map(cost).sum()
    }

    /// The rows of a step that are to be made: all, but for those that are as `before` has them.
    fn rows_to_make(&self, step: StepId, before: Option<&Before>) -> Range<usize> {
        before.map_or(0..self.steps[step].rows(), |before| before.changed[step].clone())
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

    pub fn hands_out(&self) -> bool {
        self.handed_out > 0
    }

    /// Room for what is handed out, one step's numbers behind the other's.
    ///
    /// # Errors
    /// `too_large` where there is none.
    pub fn room_for_handed_out(&self, max_bytes: usize) -> Result<Vec<f32>> {
        if !self.hands_out() {
            return Ok(Vec::new());
        }
        self.check_size(max_bytes)?;
        let mut room = reserve(self.handed_out, max_bytes)?;
        grow(&mut room, self.handed_out as usize);
        Ok(room)
    }

    /// Carries out the steps: all of them, or from the first on that a mask reaches where the numbers before it are there, and of
    /// these only the rows that differ from those of the pass `before`, where there is one. `watch` is told which part of the work
    /// is done, from 0 to 1, head by head or some rows at a time.
    ///
    /// # Errors
    /// `too_large` where the numbers need more than `max_bytes`.
    pub fn run(
        &mut self,
        shared: Option<Arc<Vec<f32>>>,
        before: Option<&Before>,
        max_bytes: usize,
        watch: &mut dyn FnMut(f32),
        hand_out: &mut HandOut,
    ) -> Result<(Arc<Vec<f32>>, Vec<f32>)> {
        let (masked, size) = self.masked.unwrap_or((0, 0));
        let own = self.size - size;
        self.check(if shared.is_some() { own } else { self.size }, max_bytes)?;
        let mut own = reserve(own, max_bytes)?;
        let first = if shared.is_some() { masked } else { 0 };
        let mut caller =
            Caller { watch, hand_out, done: 0.0, all: self.work(first, before), cost: 0.0, room: Room::default() };
        let shared = match shared {
            Some(shared) => shared,
            None => {
                let mut shared = reserve(size, max_bytes)?;
                self.run_steps(0..masked, before, &[], &mut shared, &mut caller);
                Arc::new(shared)
            }
        };
        self.run_steps(masked..self.steps.len(), before, &shared, &mut own, &mut caller);
        (caller.watch)(1.0);
        Ok((shared, own))
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

    fn run_steps(
        &mut self,
        steps: Range<StepId>,
        before: Option<&Before>,
        shared: &[f32],
        own: &mut Vec<f32>,
        caller: &mut Caller,
    ) {
        let mut next = steps.start;
        while next < steps.end {
            let id = next;
            next += self.together(id..steps.end, before);
            if matches!(self.steps[id].made, Made::HandedOut) {
                continue;
            }
            // The room of a step is filled just before it is used: touching it for the first time takes as long as some of the work.
            let last = &self.steps[next - 1];
            grow(own, (last.offset + last.size()).saturating_sub(shared.len()));
            if let Made::Given(given) = &mut self.steps[id].made {
                let given = std::mem::take(given);
                own[self.steps[id].offset - shared.len()..][..given.len()].copy_from_slice(&given);
                continue;
            }
            let (step, cost) = (&self.steps[id], self.cost(&self.steps[id]));
            if cost == 0 {
                continue;
            }
            let rows = self.rows_to_make(id, before);
            if let Some(before) = before
                && rows.len() < step.rows()
            {
                for id in id..next {
                    let (step, at) = (&self.steps[id], before.offsets[id]);
                    let old = Numbers { shared: &before.shared, own: &before.own }.from(at);
                    own[step.offset - shared.len()..][..step.size()].copy_from_slice(&old[..step.size()]);
                }
            }
            if !rows.is_empty() {
                caller.cost = cost as f64;
                self.run_step(id..next, &rows, shared, own, caller);
            }
        }
    }

    /// How many of the steps are made together, from the first on: projections of the same rows of the same numbers are one product.
    fn together(&self, steps: Range<StepId>, before: Option<&Before>) -> usize {
        let of = |id: StepId| match self.steps[id].made {
            Made::Linear { from, .. } => Some((from, self.rows_to_make(id, before))),
            _ => None,
        };
        let first = of(steps.start);
        let is_alike = |id: &StepId| first.is_some() && of(*id) == first;
        steps.take_while(is_alike).count().max(1)
    }

    /// What a number of a step costs, in multiply-adds; 0 where it is there already.
    fn cost(&self, step: &Step) -> usize {
        let width = |id: &StepId| self.steps[*id].width();
        match &step.made {
            Made::Given(_) | Made::HandedOut | Made::Same { .. } | Made::Masked { mask: None, .. } => 0,
            Made::Linear { from, .. } => width(from),
            Made::Dot { query, .. } => width(query) + LIGHT,
            Made::Context { weights, .. } => width(weights),
            Made::Attended { key, .. } => {
                let (n_k, d_k) = (self.steps[*key].shape[2], width(key));
                n_k * (d_k + step.width() + HEAVY) / step.width()
            }
            Made::Softmax { .. } | Made::Softcap { .. } | Made::Activated { .. } => HEAVY,
            _ => LIGHT,
        }
    }

    fn run_step(
        &self,
        steps: Range<StepId>,
        rows: &Range<usize>,
        shared: &[f32],
        own: &mut [f32],
        caller: &mut Caller,
    ) {
        let step = &self.steps[steps.start];
        let width = step.width();
        let (before, out) = own.split_at_mut(step.offset - shared.len());
        let earlier = Numbers { shared, own: before };
        match &step.made {
            Made::Given(_) | Made::HandedOut | Made::Same { .. } | Made::Masked { mask: None, .. } => {
                unreachable!("costs nothing")
            }
            Made::Linear { from, .. } => {
                let from = &self.steps[*from];
                let all = from.size() / from.width();
                let x = Matrix::new(earlier.from(from.offset), all, from.width(), from.width());
                for span in from.spans(rows) {
                    let mut products = Vec::new();
                    let mut places = &mut out[..];
                    for step in &self.steps[steps.clone()] {
                        let Made::Linear { linear, .. } = &step.made else { unreachable!("all are projections") };
                        let columns = linear.weight.shape[0];
                        let (place, others) = std::mem::take(&mut places).split_at_mut(step.size());
                        places = others;
                        let place = MatrixMut::new(&mut place[span.start * columns..], span.len(), columns, columns);
                        let bias = linear.bias.as_ref().map(|bias| &bias.data[..]);
                        products.push(Product::new(linear.packed(), bias, place));
                    }
                    multiply(x.rows(span), products, caller);
                }
            }
            Made::Joined { before, from, after } => {
                let [_, heads, n, _] = step.shape[..] else { unreachable!("keys and values are cut into heads") };
                for ((batch, head), out) in heads_of(step).zip(out.chunks_exact_mut(n * width)) {
                    let mut rows = out.chunks_exact_mut(width);
                    for part in before.iter().chain([from]).map(|id| &self.steps[*id]) {
                        for i in 0..part.shape[2] {
                            let row = &earlier.from(part.at(&[batch, head, i, 0]))[..width];
                            rows.next().expect("a row for each part's").copy_from_slice(row);
                        }
                    }
                    if let Some(after) = after {
                        let more = after.data.len() / heads;
                        for (row, added) in rows.zip(after.data[head * more..][..more].chunks_exact(width)) {
                            row.copy_from_slice(added);
                        }
                    }
                    caller.tell(n * width);
                }
            }
            Made::Rotated { from, rotation } => {
                self.elementwise(step, *from, rows, earlier, out, caller, &|_, _| {});
                let pairs = rotation.cos.width();
                for (batch, head) in heads_of(step) {
                    for i in rows.clone() {
                        let row = &mut out[step.at(&[batch, head, i, 0]) - step.offset..][..width];
                        let [cos, sin] =
                            [&rotation.cos, &rotation.sin].map(|angles| &angles.data[i * pairs..][..pairs]);
                        rotate_row(row, cos, sin, rotation.interleaved);
                    }
                }
            }
            Made::Positioned { from, table } => {
                let n = step.shape[1];
                self.elementwise(step, *from, rows, earlier, out, caller, &|first, rows| {
                    for (i, row) in (first..).zip(rows.chunks_exact_mut(width)) {
                        let positions = &table.data[i % n * width..];
                        row.iter_mut().zip(positions).for_each(|(x, position)| *x += position);
                    }
                });
            }
            Made::Dot { query, key } => {
                let (query, key) = (&self.steps[*query], &self.steps[*key]);
                for (batch, head) in heads_of(step) {
                    let keys = Packed::new(key.head(earlier, batch, shared_head(step, key, head)).transposed());
                    let out = &mut out[step.at(&[batch, head, rows.start, 0]) - step.offset..];
                    let scores = Product::new(&keys, None, MatrixMut::new(out, rows.len(), width, width));
                    multiply(query.head(earlier, batch, head).rows(rows.clone()), vec![scores], caller);
                }
            }
            Made::Context { weights, value, head_mask } => {
                let (weights, value) = (&self.steps[*weights], &self.steps[*value]);
                let row_stride = step.strides[2];
                for (batch, head) in heads_of(step) {
                    let values = Packed::new(value.head(earlier, batch, shared_head(step, value, head)));
                    let out = &mut out[step.at(&[batch, head, rows.start, 0]) - step.offset..];
                    let weights = weights.head(earlier, batch, head).rows(rows.clone());
                    let context = Product::new(&values, None, MatrixMut::new(out, rows.len(), width, row_stride));
                    multiply(weights, vec![context], caller);
                    if let Some(factors) = head_mask {
                        for i in 0..rows.len() {
                            out[i * row_stride..][..width].iter_mut().for_each(|x| *x *= factors[head]);
                        }
                    }
                }
            }
            Made::Attended { query, key, value, weights, how } => {
                self.attend(step, [*query, *key, *value], how, *weights, earlier, out, caller);
            }
            Made::Scaled { from, factor } => {
                self.elementwise(step, *from, rows, earlier, out, caller, &|_, rows| {
                    rows.iter_mut().for_each(|x| *x *= factor);
                });
            }
            Made::Softcap { from, cap } => {
                self.elementwise(step, *from, rows, earlier, out, caller, &|_, rows| {
                    rows.iter_mut().for_each(|x| *x = capped(*x, *cap));
                });
            }
            Made::Masked { from, mask: Some(mask), fill } => {
                let [_, heads, n_q, _] = step.shape[..] else { unreachable!("scores are cut into heads") };
                self.elementwise(step, *from, rows, earlier, out, caller, &|first, rows| {
                    for (row, scores) in (first..).zip(rows.chunks_exact_mut(width)) {
                        let matrix = mask.matrix(row / n_q / heads, row / n_q % heads);
                        apply_mask(mask, matrix + row % n_q * width, *fill, scores);
                    }
                });
            }
            Made::Softmax { from, zero_empty_rows } => {
                self.elementwise(step, *from, rows, earlier, out, caller, &|_, rows| {
                    for row in rows.chunks_exact_mut(width) {
                        if *zero_empty_rows && row.iter().all(|&x| x == f32::NEG_INFINITY) {
                            row.fill(0.0);
                        } else {
                            softmax_row(row);
                        }
                    }
                });
            }
            Made::Activated { from, activation } => {
                self.elementwise(step, *from, rows, earlier, out, caller, &|_, rows| {
                    rows.iter_mut().for_each(|x| *x = activate(*activation, *x));
                });
            }
            Made::Norm { from, norm } => {
                let bias = norm.bias.as_ref().map(|bias| &bias.data[..]);
                self.elementwise(step, *from, rows, earlier, out, caller, &|_, rows| {
                    for row in rows.chunks_exact_mut(width) {
                        match norm.kind {
                            NormKind::Layer => layer_norm_row(row, &norm.weight.data, bias, norm.eps),
                            NormKind::Rms => rms_norm_row(row, &norm.weight.data, norm.eps),
                        }
                    }
                });
            }
            Made::Dropped { from, factors } => {
                self.elementwise(step, *from, rows, earlier, out, caller, &|first, rows| {
                    rows.iter_mut().zip(&factors[first * width..]).for_each(|(x, factor)| *x *= factor);
                });
            }
            Made::Sum { left, right } => {
                let right = earlier.from(self.steps[*right].offset);
                self.elementwise(step, *left, rows, earlier, out, caller, &|first, rows| {
                    rows.iter_mut().zip(&right[first * width..]).for_each(|(sum, x)| *sum += x);
                });
            }
            Made::Product { left, right } => {
                let right = earlier.from(self.steps[*right].offset);
                self.elementwise(step, *left, rows, earlier, out, caller, &|first, rows| {
                    rows.iter_mut().zip(&right[first * width..]).for_each(|(product, x)| *product *= x);
                });
            }
        }
    }

    /// Some heads at a time. The caller takes wanted weights as soon as a block of queries has them, while they are in the cache.
    #[allow(clippy::too_many_arguments)]
    fn attend(
        &self,
        step: &Step,
        inputs: [StepId; 3],
        how: &Attended,
        weights: Option<StepId>,
        earlier: Numbers,
        out: &mut [f32],
        caller: &mut Caller,
    ) {
        let [query, key, value] = inputs.map(|id| &self.steps[id]);
        let (n_q, n_k) = (step.shape[2], key.shape[2]);
        let visible = how.mask.as_ref().map(|mask| mask.visible());
        let threads = threads::count(caller.cost as usize * step.size());
        // Rooms whose weights were taken.
        let free: Mutex<Vec<attention::Room>> = Mutex::default();
        let free = || free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut places_of_weights = (0..).step_by(n_q * n_k);
        let mut heads = heads_of(step).zip(heads_mut(step, out));
        let sharing = step.shape[1] / key.shape[1];
        let mut packed: Vec<KeysAndValues> = Vec::new();
        for places in heads_of(key).collect::<Vec<_>>().chunks(at_a_time(threads)) {
            // 1. The keys and values, each for all heads that share them.
            packed.resize_with(places.len(), KeysAndValues::default);
            threads::each(threads, packed.iter_mut().zip(places), |_: &mut (), (packed, &(batch, head))| {
                let [keys, values] = [key, value].map(|step| step.head(earlier, batch, head));
                packed.pack(keys, values, how.mask.is_some());
            });
            // 2. The queries, each block by itself.
            let mut blocks = Vec::new();
            for kv in &packed {
                for ((batch, head), context) in heads.by_ref().take(sharing) {
                    let mask = how.mask.as_ref().zip(visible.as_ref()).map(|(mask, visible)| {
                        let start = mask.matrix(batch, head);
                        HeadMask {
                            allowed: &mask.allowed[start..],
                            bias: mask.bias.as_ref().map(|bias| &bias[start..]),
                            visible: &visible[start / n_k..],
                        }
                    });
                    let query = query.head(earlier, batch, head);
                    let factor = how.head_mask.as_ref().map(|factors| factors[head]);
                    let queries = Queries { query, mask, context, factor };
                    let place = places_of_weights.next().expect("without end");
                    blocks.extend(queries.blocks(n_k).map(|(first, block)| (place + first * n_k, block, kv)));
                }
            }
            let act = |(place, queries, kv)| {
                let mut room = free().pop().unwrap_or_default();
                let count = attend(queries, kv, how.weighing, &mut room);
                (place, count, room)
            };
            threads::each_taken(threads, blocks.into_iter(), act, &mut |(place, count, room)| {
                if let Some(weights) = weights {
                    (caller.hand_out)(&self.steps[weights], place, &room.weights[..count]);
                }
                free().push(room);
            });
            caller.tell(places.len() * sharing * n_q * step.width());
        }
    }

    /// Gives `act` some of these rows of the step's place at a time, with the first one's number, when they hold what they are made from.
    #[allow(clippy::too_many_arguments)]
    fn elementwise(
        &self,
        step: &Step,
        from: StepId,
        rows: &Range<usize>,
        earlier: Numbers,
        out: &mut [f32],
        caller: &mut Caller,
        act: &(dyn Fn(usize, &mut [f32]) + Sync),
    ) {
        let (from, width) = (self.steps[from].offset, step.width());
        let most = (BLOCK / width).max(1);
        for span in step.spans(rows) {
            let threads = threads::count(caller.cost as usize * span.len() * width);
            let some = most * at_a_time(threads);
            let firsts = span.clone().step_by(some);
            for (first, numbers) in firsts.zip(out[span.start * width..span.end * width].chunks_mut(some * width)) {
                let size = numbers.len();
                let parts = numbers.chunks_mut(most * width).enumerate();
                threads::each(threads, parts, |_: &mut (), (part, numbers)| {
                    let first = first + part * most;
                    if from != step.offset {
                        numbers.copy_from_slice(&earlier.from(from + first * width)[..numbers.len()]);
                    }
                    act(first, numbers);
                });
                caller.tell(size);
            }
        }
    }
}

fn reserve(size: u64, max_bytes: usize) -> Result<Vec<f32>> {
    let mut numbers = Vec::new();
    numbers.try_reserve_exact(size as usize).map_err(|_| AttnError::too_large(4 * size, max_bytes))?;
    Ok(numbers)
}

/// Fills up with zeros to a length for which there is room.
fn grow(numbers: &mut Vec<f32>, length: usize) {
    let more = length.saturating_sub(numbers.len());
    let room = &mut numbers.spare_capacity_mut()[..more];
    threads::each(threads::count(LIGHT * more), room.chunks_mut(BLOCK), |_: &mut (), room| {
        // SAFETY: the room is as long; a float of zero bytes is 0.
        unsafe { room.as_mut_ptr().write_bytes(0, room.len()) }
    });
    // SAFETY: all of it was filled.
    unsafe { numbers.set_len(length.max(numbers.len())) }
}

/// Products of one matrix, some rows at a time.
fn multiply(a: Matrix, mut products: Vec<Product>, caller: &mut Caller) {
    let (rows, depth) = a.shape();
    let columns: usize = products.iter().map(Product::columns).sum();
    let most = MC * at_a_time(threads::count(rows * depth * columns)).max(4);
    for start in (0..rows).step_by(most) {
        let part = start..rows.min(start + most);
        let size = part.len() * columns;
        let products = products.iter_mut().map(|product| product.rows(part.clone())).collect();
        matmul_all(a.rows(part), products, &mut caller.room);
        caller.tell(size);
    }
}

fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// How many pieces of work at a time: so many for each thread that none waits long for the last, of one thread each by itself.
pub(crate) fn at_a_time(threads: usize) -> usize {
    if threads == 1 { 1 } else { 4 * threads }
}

/// The place of each head of a step, `out` being that of all.
fn heads_mut<'a>(step: &Step, out: &'a mut [f32]) -> impl Iterator<Item = MatrixMut<'a>> {
    let [_, heads, n, width] = step.shape[..] else { unreachable!("heads are cut") };
    let are_beside = step.strides[2] != width;
    out.chunks_exact_mut(heads * n * width).take(step.shape[0]).flat_map(move |out| -> Vec<_> {
        if are_beside {
            MatrixMut::new(out, n, heads * width, heads * width).column_blocks(width).collect()
        } else {
            MatrixMut::new(out, heads * n, width, width).row_blocks(n).collect()
        }
    })
}

fn heads_of(step: &Step) -> impl Iterator<Item = (usize, usize)> {
    let (batch, heads) = (step.shape[0], step.shape[1]);
    (0..batch * heads).map(move |at| (at / heads, at % heads))
}

/// The key or value head that a query head uses (Ainslie et al. 2023, grouped-query attention).
pub(crate) fn shared_head(queries: &Step, keys: &Step, head: usize) -> usize {
    head / (queries.shape[1] / keys.shape[1])
}

/// One row of scores; `at` is the place of its first number in the mask's matrices.
fn apply_mask(mask: &ResolvedMask, at: usize, fill: f32, scores: &mut [f32]) {
    if let Some(bias) = &mask.bias {
        scores.iter_mut().zip(&bias[at..]).for_each(|(score, bias)| *score += bias);
    }
    for (score, &allowed) in scores.iter_mut().zip(&mask.allowed[at..]) {
        if allowed == 0 {
            *score = fill;
        }
    }
}
