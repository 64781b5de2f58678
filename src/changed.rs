//! Which rows of a pass another mask changes: those whose masks differ, and what is made from them. All others are as they were.

use std::ops::Range;

use crate::mask::ResolvedMask;
use crate::recipe::{Made, Recipe, Step, StepId};

/// For each step its rows, along the last axis but one, that are not as the same step of `before` has them, one behind the other
/// from the first to the last; of steps that no mask reaches none.
pub(crate) fn changed_rows(recipe: &Recipe, before: &Recipe) -> Vec<Range<usize>> {
    let masked = recipe.masked().unwrap_or(0);
    let mut changed: Vec<Range<usize>> = vec![0..0; masked];
    for (step, old) in recipe.steps().iter().zip(before.steps()).skip(masked) {
        let of = |id: &StepId| changed[*id].clone();
        let all = 0..step.rows();
        let all_if = |is_changed: bool| if is_changed { all.clone() } else { 0..0 };
        let rows = match &step.made {
            Made::Given(_) => 0..0,
            Made::Masked { from, .. } => joined(of(from), differing(step, &old.made)),
            Made::Softmax { from, zero_empty_rows } => {
                let is_same = matches!(&old.made, Made::Softmax { zero_empty_rows: old, .. } if old == zero_empty_rows);
                joined(of(from), all_if(!is_same))
            }
            // Every row reads all keys, and all values.
            Made::Dot { query, key } => joined(of(query), all_if(!of(key).is_empty())),
            Made::Context { weights, value, .. } => joined(of(weights), all_if(!of(value).is_empty())),
            // Rows move.
            Made::Joined { before, from, .. } => {
                all_if(!of(from).is_empty() || before.as_ref().is_some_and(|before| !of(before).is_empty()))
            }
            Made::Attended { .. } => all,
            Made::Sum { left, right } | Made::Product { left, right } => joined(of(left), of(right)),
            Made::Linear { from, .. }
            | Made::Rotated { from, .. }
            | Made::Positioned { from, .. }
            | Made::Scaled { from, .. }
            | Made::Softcap { from, .. }
            | Made::Same { from }
            | Made::Dropped { from, .. }
            | Made::Norm { from, .. }
            | Made::Activated { from, .. } => of(from),
        };
        changed.push(rows);
    }
    changed
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
fn differing(step: &Step, old: &Made) -> Range<usize> {
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
            (Some(one), Some(other)) => one.iter().zip(other).all(|(one, other)| one.to_bits() == other.to_bits()),
            _ => false,
        };
        is_same_bias && self.allowed == other.allowed
    }
}
