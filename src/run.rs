//! Carries out a recipe with the kernels, into one arena of numbers.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::activation::activate;
use crate::changed::Before;
use crate::config::NormKind;
use crate::error::{AttnError, Result};
use crate::mask::ResolvedMask;
use crate::recipe::{Attended, Made, Numbers, Recipe, Step, StepId, shared_head};
use attnscope_kernels::attention::{self, HeadMask, KeysAndValues, Queries, attend, capped};
use attnscope_kernels::layer_norm::layer_norm_row;
use attnscope_kernels::matmul::{MC, Packed, Product, Room, matmul_all};
use attnscope_kernels::matrix::{Matrix, MatrixMut};
use attnscope_kernels::rms_norm::rms_norm_row;
use attnscope_kernels::rotary::rotate_row;
use attnscope_kernels::softmax::softmax_row;
use attnscope_kernels::threads;

/// Takes some of a step's numbers that are handed out, row-major, and the place of the first of them.
pub(crate) type HandOut<'h> = dyn FnMut(&Step, usize, &[f32]) + 'h;

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

impl Recipe {
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
        if shared.is_some() {
            self.check_own_size(max_bytes)?
        } else {
            self.check_size(max_bytes)?
        }
        let mut own = reserve(self.size() - self.shared_size(), max_bytes)?;
        let masked = self.masked().unwrap_or(0);
        let first = if shared.is_some() { masked } else { 0 };
        let mut caller =
            Caller { watch, hand_out, done: 0.0, all: self.work(first, before), cost: 0.0, room: Room::default() };
        let shared = match shared {
            Some(shared) => shared,
            None => {
                let mut shared = reserve(self.shared_size(), max_bytes)?;
                self.run_steps(0..masked, before, &[], &mut shared, &mut caller);
                Arc::new(shared)
            }
        };
        self.run_steps(masked..self.steps().len(), before, &shared, &mut own, &mut caller);
        (caller.watch)(1.0);
        Ok((shared, own))
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
            if matches!(self.steps()[id].made, Made::HandedOut) {
                continue;
            }
            // The room of a step is filled just before it is used: touching it for the first time takes as long as some of the work.
            let last = &self.steps()[next - 1];
            grow(own, (last.offset + last.size()).saturating_sub(shared.len()));
            if let Made::Given(given) = &mut self.steps_mut()[id].made {
                let given = std::mem::take(given);
                own[self.steps()[id].offset - shared.len()..][..given.len()].copy_from_slice(&given);
                continue;
            }
            let (step, cost) = (&self.steps()[id], self.cost(&self.steps()[id]));
            if cost == 0 {
                continue;
            }
            let rows = self.rows_to_make(id, before);
            if let Some(before) = before
                && rows.len() < step.rows()
            {
                for id in id..next {
                    let step = &self.steps()[id];
                    own[step.offset - shared.len()..][..step.size()]
                        .copy_from_slice(&before.numbers(id)[..step.size()]);
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
        let of = |id: StepId| match self.steps()[id].made {
            Made::Linear { from, .. } => Some((from, self.rows_to_make(id, before))),
            _ => None,
        };
        let first = of(steps.start);
        let is_alike = |id: &StepId| first.is_some() && of(*id) == first;
        steps.take_while(is_alike).count().max(1)
    }

    fn run_step(
        &self,
        steps: Range<StepId>,
        rows: &Range<usize>,
        shared: &[f32],
        own: &mut [f32],
        caller: &mut Caller,
    ) {
        let step = &self.steps()[steps.start];
        let width = step.width();
        let (before, out) = own.split_at_mut(step.offset - shared.len());
        let earlier = Numbers { shared, own: before };
        match &step.made {
            Made::Given(_) | Made::HandedOut | Made::Same { .. } | Made::Masked { mask: None, .. } => {
                unreachable!("costs nothing")
            }
            Made::Linear { from, .. } => {
                let from = &self.steps()[*from];
                let all = from.size() / from.width();
                let x = Matrix::new(earlier.from(from.offset), all, from.width(), from.width());
                for span in from.spans(rows) {
                    let mut products = Vec::new();
                    let mut places = &mut out[..];
                    for step in &self.steps()[steps.clone()] {
                        let Made::Linear { linear, .. } = &step.made else { unreachable!("all are projections") };
                        let columns = linear.weight.shape[0];
                        let (place, others) = std::mem::take(&mut places).split_at_mut(step.size());
                        places = others;
                        let place = MatrixMut::new(&mut place[span.start * columns..], span.len(), columns, columns);
                        let bias = linear.bias.as_ref().map(|bias| &bias.data[..]);
                        products.push(Product::new(linear.weight.packed(), bias, place));
                    }
                    multiply(x.rows(span), products, caller);
                }
            }
            Made::Joined { before, from, after } => {
                let [_, heads, n, _] = step.shape[..] else { unreachable!("keys and values are cut into heads") };
                for ((batch, head), out) in heads_of(step).zip(out.chunks_exact_mut(n * width)) {
                    let mut rows = out.chunks_exact_mut(width);
                    for part in before.iter().chain([from]).map(|id| &self.steps()[*id]) {
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
                let (n, beside, pairs) = (step.rows(), step.beside(), rotation.cos.width());
                self.elementwise(step, *from, rows, earlier, out, caller, &|first, rows| {
                    for (row, numbers) in (first..).zip(rows.chunks_exact_mut(width)) {
                        let angles = row / beside % n * pairs;
                        let [cos, sin] = [&rotation.cos, &rotation.sin].map(|table| &table.data[angles..][..pairs]);
                        rotate_row(numbers, cos, sin, rotation.interleaved);
                    }
                });
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
                let (query, key) = (&self.steps()[*query], &self.steps()[*key]);
                for (batch, head) in heads_of(step) {
                    let keys = Packed::new(key.head(earlier, batch, shared_head(step, key, head)).transposed());
                    let out = &mut out[step.at(&[batch, head, rows.start, 0]) - step.offset..];
                    let scores = Product::new(&keys, None, MatrixMut::new(out, rows.len(), width, width));
                    multiply(query.head(earlier, batch, head).rows(rows.clone()), vec![scores], caller);
                }
            }
            Made::Context { weights, value, head_mask } => {
                let (weights, value) = (&self.steps()[*weights], &self.steps()[*value]);
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
                let right = earlier.from(self.steps()[*right].offset);
                self.elementwise(step, *left, rows, earlier, out, caller, &|first, rows| {
                    rows.iter_mut().zip(&right[first * width..]).for_each(|(sum, x)| *sum += x);
                });
            }
            Made::Product { left, right } => {
                let right = earlier.from(self.steps()[*right].offset);
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
        let [query, key, value] = inputs.map(|id| &self.steps()[id]);
        let (n_q, n_k) = (step.shape[2], key.shape[2]);
        let visible = how.mask.as_ref().map(|mask| mask.visible());
        let threads = threads::count(caller.cost * step.size() as f64);
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
                    (caller.hand_out)(&self.steps()[weights], place, &room.weights[..count]);
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
        let (from, width) = (self.steps()[from].offset, step.width());
        let most = (BLOCK / width).max(1);
        for span in step.spans(rows) {
            let threads = threads::count(caller.cost * (span.len() * width) as f64);
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

    /// Room for what is handed out, one step's numbers behind the other's.
    ///
    /// # Errors
    /// `too_large` where there is none.
    pub fn room_for_handed_out(&self, max_bytes: usize) -> Result<Vec<f32>> {
        if self.handed_out() == 0 {
            return Ok(Vec::new());
        }
        self.check_size(max_bytes)?;
        let mut room = reserve(self.handed_out() as usize, max_bytes)?;
        grow(&mut room, self.handed_out() as usize);
        Ok(room)
    }

    /// What it costs to carry out the steps from `first` on, in multiply-adds; with `before` only the rows that are not there.
    pub fn work(&self, first: StepId, before: Option<&Before>) -> f64 {
        let cost = |id: StepId| {
            let step = &self.steps()[id];
            let part = self.rows_to_make(id, before).len() as f64 / step.rows().max(1) as f64;
            self.cost(step) as f64 * step.size() as f64 * part
        };
        (first..self.steps().len()).map(cost).sum()
    }

    /// What a number of a step costs, in multiply-adds; 0 where it is there already.
    fn cost(&self, step: &Step) -> usize {
        let width = |id: &StepId| self.steps()[*id].width();
        match &step.made {
            Made::Given(_) | Made::HandedOut | Made::Same { .. } | Made::Masked { mask: None, .. } => 0,
            Made::Linear { from, .. } => width(from),
            Made::Dot { query, .. } => width(query) + LIGHT,
            Made::Context { weights, .. } => width(weights),
            Made::Attended { key, .. } => {
                let (n_k, d_k) = (self.steps()[*key].shape[2], width(key));
                n_k * (d_k + step.width() + HEAVY) / step.width()
            }
            Made::Softmax { .. } | Made::Softcap { .. } | Made::Activated { .. } => HEAVY,
            _ => LIGHT,
        }
    }

    /// The rows of a step that are to be made: all, but for those that are as `before` has them.
    fn rows_to_make(&self, step: StepId, before: Option<&Before>) -> Range<usize> {
        before.map_or(0..self.steps()[step].rows(), |before| before.changed(step))
    }
}

impl Step {
    /// How many rows of a position are one behind the other: those of all heads, where these lie beside each other.
    fn beside(&self) -> usize {
        match self.shape[..] {
            [_, heads, _, width] if self.strides[2] != width => heads,
            _ => 1,
        }
    }

    /// Where rows of every batch entry and head lie, counted in widths from the step's place on; all rows are one span.
    fn spans(&self, rows: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let all = self.size() / self.width();
        let beside = self.beside();
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

fn reserve(size: usize, max_bytes: usize) -> Result<Vec<f32>> {
    let mut numbers = Vec::new();
    numbers.try_reserve_exact(size).map_err(|_| AttnError::too_large(4 * size as u64, max_bytes))?;
    Ok(numbers)
}

/// Fills up with zeros to a length for which there is room.
fn grow(numbers: &mut Vec<f32>, length: usize) {
    let more = length.saturating_sub(numbers.len());
    let room = &mut numbers.spare_capacity_mut()[..more];
    threads::each(threads::count((LIGHT * more) as f64), room.chunks_mut(BLOCK), |_: &mut (), room| {
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
    let most = MC * at_a_time(threads::count(rows as f64 * depth as f64 * columns as f64)).max(4);
    for start in (0..rows).step_by(most) {
        let part = start..rows.min(start + most);
        let size = part.len() * columns;
        let products = products.iter_mut().map(|product| product.rows(part.clone())).collect();
        matmul_all(a.rows(part), products, &mut caller.room);
        caller.tell(size);
    }
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
