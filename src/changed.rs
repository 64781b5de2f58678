//! Which rows of a pass are not as an earlier pass made them: those of inputs and masks that differ, and what is made from them.
//! All others are taken over.

use std::mem::discriminant;
use std::ops::Range;
use std::sync::Arc;

use crate::mask::ResolvedMask;
use crate::parameters::Parameter;
use crate::recipe::{Made, Numbers, Recipe, Step, StepId};
use crate::tensor::Tensor;

/// An earlier pass, which made some rows as this one would.
#[derive(Debug)]
pub(crate) struct Before {
    changed: Vec<Range<usize>>,
    offsets: Vec<usize>,
    shared: Arc<Vec<f32>>,
    own: Arc<Vec<f32>>,
}

impl Before {
    /// What a pass of the recipe `before` leaves to the steps of `recipe` from `first` on; those before it are the same. None where
    /// the two have not the same steps, or keep none.
    pub fn new(recipe: &Recipe, first: StepId, before: &Recipe, [shared, own]: [Arc<Vec<f32>>; 2]) -> Option<Self> {
        if !(recipe.keeps() && before.keeps() && have_same_steps(recipe, before)) {
            return None;
        }
        let changed = changed_rows(recipe, first, before, Numbers { shared: &shared, own: &own });
        let offsets = before.steps().iter().map(|step| step.offset).collect();
        Some(Self { changed, offsets, shared, own })
    }

    /// The rows of a step that it made otherwise.
    pub fn changed(&self, step: StepId) -> Range<usize> {
        self.changed[step].clone()
    }

    /// What lies there from a step's numbers on.
    pub fn numbers(&self, step: StepId) -> &[f32] {
        Numbers { shared: &self.shared, own: &self.own }.from(self.offsets[step])
    }
}

/// Whether two passes have the same steps, of the same shapes.
fn have_same_steps(one: &Recipe, other: &Recipe) -> bool {
    let is_same = |(one, other): (&Step, &Step)| {
        (one.stage, one.layer, &one.shape, &one.strides) == (other.stage, other.layer, &other.shape, &other.strides)
    };
    one.steps().len() == other.steps().len() && one.steps().iter().zip(other.steps()).all(is_same)
}

/// For each step its rows, along the last axis but one, that are not as the same step of `before` has them, one behind the other
/// from the first to the last. Those before `first` are all as they were.
fn changed_rows(recipe: &Recipe, first: StepId, before: &Recipe, numbers: Numbers) -> Vec<Range<usize>> {
    let mut changed: Vec<Range<usize>> = vec![0..0; first];
    for (step, old) in recipe.steps().iter().zip(before.steps()).skip(first) {
        let of = |id: &StepId| changed[*id].clone();
        let all_if = |is_changed: bool| if is_changed { 0..step.rows() } else { 0..0 };
        let sources = step.made.sources();
        let rows = if sources != old.made.sources() || !do_alike(&step.made, &old.made) {
            all_if(true)
        } else {
            match &step.made {
                Made::Given(given) => differing_rows(step, given, &numbers.from(old.offset)[..step.size()]),
                Made::Masked { from, .. } => joined(of(from), masked_otherwise(step, &old.made)),
                // Every row reads all keys, and all values.
                Made::Dot { query, key } => joined(of(query), all_if(!of(key).is_empty())),
                Made::Context { weights, value, .. } => joined(of(weights), all_if(!of(value).is_empty())),
                Made::HandedOut | Made::Attended { .. } => all_if(true),
                // Rows move.
                Made::Joined { .. } => all_if(sources.iter().flatten().any(|id| !of(id).is_empty())),
                _ => sources.iter().flatten().map(of).fold(0..0, joined),
            }
        };
        changed.push(rows);
    }
    changed
}

/// Whether two steps do the same to their sources, masks aside.
fn do_alike(one: &Made, other: &Made) -> bool {
    match (one, other) {
        (Made::Linear { linear, .. }, Made::Linear { linear: other, .. }) => Arc::ptr_eq(&linear.weight, &other.weight),
        (Made::Joined { after, .. }, Made::Joined { after: other, .. }) => {
            are_alike(after.as_ref(), other.as_ref(), has_same_bits)
        }
        (Made::Rotated { rotation, .. }, Made::Rotated { rotation: other, .. }) => {
            are_alike(Some(rotation), Some(other), |one, other| {
                one.interleaved == other.interleaved
                    && has_same_bits(&one.cos, &other.cos)
                    && has_same_bits(&one.sin, &other.sin)
            })
        }
        (Made::Positioned { table, .. }, Made::Positioned { table: other, .. }) => {
            are_alike(Some(table), Some(other), |one, other| has_same_bits(one, other))
        }
        (Made::Scaled { factor: by, .. }, Made::Scaled { factor: other, .. })
        | (Made::Softcap { cap: by, .. }, Made::Softcap { cap: other, .. }) => by.to_bits() == other.to_bits(),
        (Made::Softmax { zero_empty_rows, .. }, Made::Softmax { zero_empty_rows: other, .. }) => {
            zero_empty_rows == other
        }
        (Made::Context { head_mask, .. }, Made::Context { head_mask: other, .. }) => match (head_mask, other) {
            (None, None) => true,
            (Some(one), Some(other)) => are_same_bits(one, other),
            _ => false,
        },
        (Made::Dropped { factors, .. }, Made::Dropped { factors: other, .. }) => Arc::ptr_eq(factors, other),
        (Made::Norm { norm, .. }, Made::Norm { norm: other, .. }) => {
            // Who replaces parameters puts others in their place.
            let is_replaced = |_: &Parameter, _: &Parameter| false;
            (norm.kind, norm.eps.to_bits()) == (other.kind, other.eps.to_bits())
                && are_alike(Some(&norm.weight), Some(&other.weight), is_replaced)
                && are_alike(norm.bias.as_ref(), other.bias.as_ref(), is_replaced)
        }
        (Made::Activated { activation, .. }, Made::Activated { activation: other, .. }) => activation == other,
        _ => discriminant(one) == discriminant(other),
    }
}

/// Whether both are the same thing, or there are none, or two of the same content.
fn are_alike<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>, is_same: impl Fn(&T, &T) -> bool) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other) || is_same(one, other),
        _ => false,
    }
}

fn has_same_bits(one: &Tensor, other: &Tensor) -> bool {
    one.shape == other.shape && are_same_bits(&one.data, &other.data)
}

fn are_same_bits(one: &[f32], other: &[f32]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.to_bits() == other.to_bits())
}

/// From the first to the last row that is given otherwise, in any batch entry.
fn differing_rows(step: &Step, given: &[f32], old: &[f32]) -> Range<usize> {
    let (width, n) = (step.width(), step.rows());
    let rows = given.chunks_exact(width).zip(old.chunks_exact(width)).enumerate();
    let differing = rows.filter(|(_, (row, old))| !are_same_bits(row, old));
    differing.fold(0..0, |found, (row, _)| joined(found, row % n..row % n + 1))
}

/// From the first row of either to the last.
fn joined(one: Range<usize>, other: Range<usize>) -> Range<usize> {
    match (one.is_empty(), other.is_empty()) {
        (true, _) => other,
        (_, true) => one,
        _ => one.start.min(other.start)..one.end.max(other.end),
    }
}

/// From the first to the last row of masked scores that the mask of a step does not leave as the old one did, in any head.
fn masked_otherwise(step: &Step, old: &Made) -> Range<usize> {
    let all = 0..step.rows();
    let (Made::Masked { mask, fill, .. }, Made::Masked { mask: old, fill: old_fill, .. }) = (&step.made, old) else {
        return all;
    };
    let masks = [mask, old].map(Option::as_deref);
    let is_filled_as_before = fill.to_bits() == old_fill.to_bits();
    // Matrices that serve every entry are compared once.
    let most = |axis: usize| masks.iter().flatten().map(|mask| mask.shape[axis]).max().unwrap_or(0);
    let mut found = 0..0;
    for (batch, head) in (0..most(0)).flat_map(|batch| (0..most(1)).map(move |head| (batch, head))) {
        let is_same = |row: usize| match masks.map(|mask| mask.map(|mask| Row::of(mask, batch, head, row))) {
            [None, None] => true,
            [Some(one), None] | [None, Some(one)] => one.is_open(),
            [Some(one), Some(other)] => one.is_as(&other) && (is_filled_as_before || !one.allowed.contains(&0)),
        };
        // What was found already needs no look.
        let first = (0..step.rows()).find(|row| found.contains(row) || !is_same(*row));
        let last = all.clone().rev().find(|row| found.contains(row) || !is_same(*row));
        if let (Some(first), Some(last)) = (first, last) {
            found = joined(found, first..last + 1);
        }
    }
    found
}

/// A row of a mask.
struct Row<'m> {
    allowed: &'m [u8],
    bias: Option<&'m [f32]>,
}

impl<'m> Row<'m> {
    fn of(mask: &'m ResolvedMask, batch: usize, head: usize, row: usize) -> Self {
        let n_k = mask.shape[3];
        let at = mask.matrix(batch, head) + row * n_k;
        Self { allowed: &mask.allowed[at..][..n_k], bias: mask.bias.as_ref().map(|bias| &bias[at..][..n_k]) }
    }

    /// Whether it does nothing.
    fn is_open(&self) -> bool {
        self.bias.is_none() && !self.allowed.contains(&0)
    }

    fn is_as(&self, other: &Self) -> bool {
        let is_same_bias = match (self.bias, other.bias) {
            (None, None) => true,
            (Some(one), Some(other)) => are_same_bits(one, other),
            _ => false,
        };
        is_same_bias && self.allowed == other.allowed
    }
}
