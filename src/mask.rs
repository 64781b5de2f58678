//! Masks: rules and matrices, their algebra, and how they meet scores.
//!
//! Inside, a cell is *allowed* (the query may attend to the key) or *hidden*. Whether a matrix's true means the one or the
//! other is said by the one who makes it: [`Mask::Keep`] or [`Mask::Masked`].

use std::ops::Range;

use attnscope_kernels::attention::Visible;

use crate::bias::{alibi_slope, bucket, check_buckets};
use crate::error::{AttnError, Result};
use crate::given::{read_fields, read_variants, words};

/// A rule or a matrix that says which key a query may attend to, sized when it meets the scores. Row i is query i, column j is key j.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "camelCase", rename_all_fields = "camelCase"))]
pub enum Mask {
    /// j <= i
    #[default]
    Causal,
    /// j < length, one length for all or one per batch entry
    Padding {
        /// The number of real keys.
        lengths: Vec<usize>,
    },
    /// i - left <= j <= i + right
    SlidingWindow {
        /// Keys before the query.
        left: usize,
        /// Keys after the query.
        right: usize,
    },
    /// causal, but the first keys are open to all
    Prefix {
        /// The number of open keys.
        keys: usize,
    },
    /// same document only
    Documents {
        /// The document of each position.
        ids: Vec<i32>,
    },
    /// a global position sees all and is seen by all; nothing else is allowed
    Global {
        /// The global positions.
        indices: Vec<usize>,
    },
    /// |i - j| is a multiple of the stride and less than width * stride
    Dilated {
        /// Positions to each side, the query's own included.
        width: usize,
        /// Distance between them.
        stride: usize,
    },
    /// one mask for each head
    PerHead {
        /// The masks, head by head.
        masks: Vec<Mask>,
    },
    /// nonzero = may attend
    Keep {
        /// Shape of the matrix.
        shape: Vec<usize>,
        /// Its cells, row-major.
        #[cfg_attr(feature = "typescript", ts(type = "Uint8Array"))]
        data: Vec<u8>,
        /// How three axes are read.
        axes: Option<MaskAxes>,
    },
    /// nonzero = hidden
    Masked {
        /// Shape of the matrix.
        shape: Vec<usize>,
        /// Its cells, row-major.
        #[cfg_attr(feature = "typescript", ts(type = "Uint8Array"))]
        data: Vec<u8>,
        /// How three axes are read.
        axes: Option<MaskAxes>,
    },
    /// added to the scores
    Additive {
        /// Shape of the matrix.
        shape: Vec<usize>,
        /// Its float32 cells, row-major, as little-endian bytes.
        #[cfg_attr(feature = "typescript", ts(type = "Uint8Array"))]
        data: Vec<u8>,
        /// How three axes are read.
        axes: Option<MaskAxes>,
    },
    /// -slope |i - j| added to the scores, the slopes of "Train Short, Test Long" (Press et al. 2022)
    Alibi {
        /// The number of heads.
        heads: usize,
    },
    /// a learned number for each head and bucket of distances added to the scores (Raffel et al. 2020, T5)
    Relative {
        /// The number of buckets: of distances before and after the query, or with `bidirectional` false before it only.
        buckets: usize,
        /// The number of heads.
        heads: usize,
        /// The float32 table `[buckets, heads]`, row-major, as little-endian bytes.
        #[cfg_attr(feature = "typescript", ts(type = "Uint8Array"))]
        table: Vec<u8>,
        /// Whether keys after the query have buckets of their own.
        bidirectional: bool,
        /// The distance from which on all share the last bucket.
        max_distance: usize,
    },
    /// allowed by both
    And {
        /// One mask.
        left: Box<Mask>,
        /// The other.
        right: Box<Mask>,
    },
    /// allowed by either
    Or {
        /// One mask.
        left: Box<Mask>,
        /// The other.
        right: Box<Mask>,
    },
    /// allowed where the mask hides
    Not {
        /// The mask turned round.
        mask: Box<Mask>,
    },
}

read_variants!(Mask:
    Causal {},
    Padding { lengths },
    SlidingWindow { left, right },
    Prefix { keys },
    Documents { ids },
    Global { indices },
    Dilated { width, stride },
    PerHead { masks },
    Keep { shape, data, axes },
    Masked { shape, data, axes },
    Additive { shape, data, axes },
    Alibi { heads },
    Relative { buckets, heads, table, bidirectional, max_distance },
    And { left, right },
    Or { left, right },
    Not { mask }
);

/// How the first of a matrix's three axes is read where it is not the heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "snake_case"))]
pub enum MaskAxes {
    /// `[batch, n_q, n_k]`
    Batch,
}

words!(MaskAxes: Batch);

/// The scores that a mask meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "camelCase"))]
pub struct MaskSize {
    /// Queries.
    pub n_q: usize,
    /// Keys.
    pub n_k: usize,
    /// Heads; default 1.
    pub n_heads: usize,
    /// Batch entries; default 1.
    pub batch: usize,
}

read_fields!(MaskSize::new(n_q, n_k): n_heads, batch);

impl MaskSize {
    fn new(n_q: usize, n_k: usize) -> Self {
        Self { n_q, n_k, n_heads: 1, batch: 1 }
    }

    fn shape(&self) -> [usize; 4] {
        [self.batch, self.n_heads, self.n_q, self.n_k]
    }
}

/// The scores with what a mask needs to know beside their size.
#[derive(Clone, Copy)]
pub(crate) struct Scores<'a> {
    pub size: MaskSize,
    /// Where the first query stands among the keys: one place for all, or one per batch entry.
    pub first: &'a [i64],
    /// The keys that a matrix must cover; behind them all is padding.
    pub real_keys: usize,
    /// The most bytes that the mask may take.
    pub max_bytes: usize,
}

/// A mask that has met its scores.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedMask {
    /// `[batch or 1, heads or 1, n_q, n_k]`; an axis of 1 serves every entry.
    pub shape: [usize; 4],
    /// 1 where the query may attend to the key, else 0.
    pub allowed: Vec<u8>,
    /// What is added to the scores.
    pub bias: Option<Vec<f32>>,
}

impl ResolvedMask {
    /// Where the matrix of this batch entry and head starts.
    pub(crate) fn matrix(&self, batch: usize, head: usize) -> usize {
        let [n_batch, n_heads, n_q, n_k] = self.shape;
        ((batch % n_batch) * n_heads + head % n_heads) * n_q * n_k
    }

    /// What each row of every matrix sees.
    pub(crate) fn visible(&self) -> Vec<Visible> {
        let seen = |row: &[u8]| {
            let first = row.iter().position(|&allowed| allowed != 0);
            let last = row.iter().rposition(|&allowed| allowed != 0);
            let keys = first.zip(last).map_or(0..0, |(first, last)| first..last + 1);
            Visible { are_all: !row[keys.clone()].contains(&0), keys }
        };
        self.allowed.chunks_exact(self.shape[3]).map(seen).collect()
    }

    /// The same with so many keys more behind the others, open to all.
    pub(crate) fn with_open_keys(self, more: usize) -> Self {
        let [batch, heads, n_q, n_k] = self.shape;
        fn widened<T: Copy>(cells: &[T], n_k: usize, more: usize, with: T) -> Vec<T> {
            let mut widened = Vec::with_capacity(cells.len() / n_k * (n_k + more));
            for row in cells.chunks_exact(n_k) {
                widened.extend_from_slice(row);
                widened.resize(widened.len() + more, with);
            }
            widened
        }
        Self {
            shape: [batch, heads, n_q, n_k + more],
            allowed: widened(&self.allowed, n_k, more, 1),
            bias: self.bias.map(|bias| widened(&bias, n_k, more, 0.0)),
        }
    }
}

/// One query's row of a mask.
#[derive(Clone, Copy)]
struct Row {
    batch: usize,
    head: usize,
    query: usize,
    /// Where the query stands among the keys; before the first where it is padding.
    position: i64,
}

impl Mask {
    /// The mask at the size of the scores.
    ///
    /// # Errors
    /// `mask_shape` where it fits no such scores, `invalid_option` where a rule's own numbers are wrong, `too_large` where it
    /// takes more than `max_bytes`.
    pub fn materialize(&self, size: MaskSize, max_bytes: usize) -> Result<ResolvedMask> {
        self.materialize_behind(size, 0, max_bytes)
    }

    /// The same where the first query stands at a position among the keys.
    ///
    /// # Errors
    /// As [`materialize`](Self::materialize).
    pub fn materialize_behind(&self, size: MaskSize, first: i64, max_bytes: usize) -> Result<ResolvedMask> {
        self.meet(Scores { size, first: &[first], real_keys: size.n_k, max_bytes })
    }

    pub(crate) fn meet(&self, scores: Scores) -> Result<ResolvedMask> {
        Self::meet_all(&[self], scores)
    }

    /// What all of these masks allow, and what they add together.
    pub(crate) fn meet_all(masks: &[&Self], scores: Scores) -> Result<ResolvedMask> {
        let Scores { size, first, .. } = scores;
        for (name, axis) in [("nQ", size.n_q), ("nK", size.n_k), ("nHeads", size.n_heads), ("batch", size.batch)] {
            if axis == 0 {
                return Err(AttnError::option(name, axis, "a whole number of at least 1"));
            }
        }
        let mut varies = Varies::default();
        for mask in masks {
            mask.check_depth(MAX_MASK_DEPTH)?;
            mask.check(scores)?;
            varies = varies.or(mask.varies());
        }
        let shape = [
            if varies.by_batch || first.len() > 1 { size.batch } else { 1 },
            if varies.by_head { size.n_heads } else { 1 },
            size.n_q,
            size.n_k,
        ];
        let cells = cells_that_fit(&shape, varies.has_bias, scores.max_bytes)?;
        let mut allowed = vec![0; cells];
        let mut bias = vec![0.0; if varies.has_bias { cells } else { 0 }];
        for (at, allowed) in allowed.chunks_exact_mut(size.n_k).enumerate() {
            let (batch, head, query) = (at / size.n_q / shape[1], at / size.n_q % shape[1], at % size.n_q);
            let position = first[batch % first.len()] + query as i64;
            let bias = if varies.has_bias { &mut bias[at * size.n_k..][..size.n_k] } else { &mut [][..] };
            Self::rows(masks, true, Row { batch, head, query, position }, allowed, bias);
        }
        Ok(ResolvedMask { shape, allowed, bias: varies.has_bias.then_some(bias) })
    }

    /// Writes a row: which keys are allowed, over what was there, and what is added to the scores, onto zeros; `bias` is
    /// empty where the mask adds nothing.
    fn row(&self, row: Row, allowed: &mut [u8], bias: &mut [f32]) {
        let Row { batch, head, position, .. } = row;
        let distance = |j: usize| (j as i64).abs_diff(position);
        // How many keys lie before a position.
        let before = |position: i64| position.clamp(0, allowed.len() as i64) as usize;
        let behind_query = before(position.saturating_add(1));
        match self {
            Self::Causal => open(allowed, 0..behind_query),
            Self::Padding { lengths } => open(allowed, 0..lengths[batch % lengths.len()]),
            Self::Prefix { keys } => open(allowed, 0..behind_query.max((*keys).min(allowed.len()))),
            Self::SlidingWindow { left, right } => {
                let [left, right] = [left, right].map(|&side| i64::try_from(side).unwrap_or(i64::MAX));
                let range =
                    before(position.saturating_sub(left))..before(position.saturating_add(right).saturating_add(1));
                open(allowed, range);
            }
            Self::Documents { ids } => {
                let own = usize::try_from(position).ok().map(|i| ids[i]);
                each(allowed, |j| own == Some(ids[j]));
            }
            Self::Global { indices } => {
                let is_global = usize::try_from(position).is_ok_and(|i| indices.contains(&i));
                each(allowed, |j| is_global || indices.contains(&j));
            }
            Self::Dilated { width, stride } => {
                let (width, stride) = (*width as u64, *stride as u64);
                each(allowed, |j| distance(j).is_multiple_of(stride) && distance(j) / stride < width);
            }
            Self::PerHead { masks } => masks[head].row(row, allowed, bias),
            Self::Keep { shape, data, axes } => {
                each(allowed, |j| cell(shape, *axes, row, j).is_some_and(|at| data[at] != 0));
            }
            Self::Masked { shape, data, axes } => {
                each(allowed, |j| cell(shape, *axes, row, j).is_some_and(|at| data[at] == 0));
            }
            Self::Additive { shape, data, axes } => {
                each(allowed, |j| cell(shape, *axes, row, j).is_some());
                add(bias, |j| cell(shape, *axes, row, j).map_or(0.0, |at| float_at(data, at)));
            }
            Self::Alibi { heads } => {
                allowed.fill(1);
                let slope = alibi_slope(head, *heads);
                add(bias, |j| -slope * distance(j) as f32);
            }
            Self::Relative { buckets, heads, table, bidirectional, max_distance } => {
                allowed.fill(1);
                add(bias, |j| {
                    let bucket = bucket(j as i64 - position, *buckets, *bidirectional, *max_distance);
                    float_at(table, bucket * heads + head)
                });
            }
            Self::And { left, right } => Self::rows(&[left, right], true, row, allowed, bias),
            Self::Or { left, right } => Self::rows(&[left, right], false, row, allowed, bias),
            Self::Not { mask } => {
                mask.row(row, allowed, bias);
                allowed.iter_mut().for_each(|cell| *cell ^= 1);
            }
        }
    }

    /// The same of what all of these masks allow, or any; the first is written, the others joined to it.
    fn rows(masks: &[&Self], all: bool, row: Row, allowed: &mut [u8], bias: &mut [f32]) {
        let Some((first, others)) = masks.split_first() else { return };
        first.row(row, allowed, bias);
        for mask in others {
            let (mut allowed_there, mut bias_there) = (vec![0; allowed.len()], vec![0.0; bias.len()]);
            mask.row(row, &mut allowed_there, &mut bias_there);
            for (cell, there) in allowed.iter_mut().zip(allowed_there) {
                *cell = if all { *cell & there } else { *cell | there };
            }
            bias.iter_mut().zip(bias_there).for_each(|(cell, there)| *cell += there);
        }
    }

    fn check(&self, scores: Scores) -> Result<()> {
        let Scores { size, first, real_keys, .. } = scores;
        let unfit = |shape: Vec<usize>, expected: &str| {
            Err(Box::new(AttnError::MaskShape {
                mask: shape,
                scores: size.shape().to_vec(),
                expected: expected.into(),
            }))
        };
        match self {
            Self::Causal | Self::SlidingWindow { .. } | Self::Prefix { .. } => Ok(()),
            Self::Padding { lengths } => {
                if lengths.len() != 1 && lengths.len() != size.batch {
                    return unfit(vec![lengths.len()], "one length for all, or one per batch entry");
                }
                match lengths.iter().find(|&&length| length > size.n_k) {
                    Some(length) => {
                        let expected = format!("lengths of at most n_k {}, not {length}", size.n_k);
                        unfit(vec![lengths.len()], &expected)
                    }
                    None => Ok(()),
                }
            }
            Self::Documents { ids } => {
                let last = first.iter().max().unwrap_or(&0) + size.n_q as i64;
                let positions = last.max(size.n_k as i64);
                if ids.len() as i64 != positions {
                    let expected =
                        format!("one document id for each of {positions} positions, those of queries and keys");
                    return unfit(vec![ids.len()], &expected);
                }
                Ok(())
            }
            Self::Global { indices } => match indices.iter().find(|&&index| index >= size.n_q.max(size.n_k)) {
                Some(index) => unfit(
                    vec![indices.len()],
                    &["indices of positions that are there, not ", &index.to_string()].concat(),
                ),
                None => Ok(()),
            },
            Self::Dilated { width, stride } => {
                if *width == 0 || *stride == 0 {
                    return Err(AttnError::option(
                        "dilated",
                        format!("width {width}, stride {stride}"),
                        "a width and a stride of at least 1",
                    ));
                }
                Ok(())
            }
            Self::PerHead { masks } if masks.len() != size.n_heads => {
                unfit(vec![masks.len()], "one mask for each head")
            }
            Self::PerHead { masks } => masks.iter().try_for_each(|mask| mask.check(scores)),
            Self::Keep { shape, data, axes } | Self::Masked { shape, data, axes } => {
                check_matrix(shape, data.len(), *axes, size, real_keys)
            }
            Self::Additive { shape, data, axes } => check_matrix(shape, data.len() / 4, *axes, size, real_keys),
            Self::Relative { heads, .. } if *heads != size.n_heads => {
                unfit(vec![*heads], "as many heads as the scores have")
            }
            Self::Relative { buckets, heads, table, bidirectional, max_distance } => {
                check_buckets(*buckets, *heads, table, *bidirectional, *max_distance)
            }
            Self::Alibi { heads } if *heads != size.n_heads => unfit(vec![*heads], "as many heads as the scores have"),
            Self::Alibi { .. } => Ok(()),
            Self::And { left, right } | Self::Or { left, right } => {
                left.check(scores)?;
                right.check(scores)
            }
            Self::Not { mask } if mask.varies().has_bias => {
                Err(AttnError::option("not", "a mask that adds to the scores", "a mask that only allows and hides"))
            }
            Self::Not { mask } => mask.check(scores),
        }
    }

    pub(crate) fn check_depth(&self, left: usize) -> Result<()> {
        match self {
            _ if left == 0 => {
                let found = format!("masks more than {MAX_MASK_DEPTH} deep in each other");
                Err(AttnError::option("mask", found, &format!("at most {MAX_MASK_DEPTH}")))
            }
            Self::And { left: a, right: b } | Self::Or { left: a, right: b } => {
                a.check_depth(left - 1)?;
                b.check_depth(left - 1)
            }
            Self::Not { mask } => mask.check_depth(left - 1),
            Self::PerHead { masks } => masks.iter().try_for_each(|mask| mask.check_depth(left - 1)),
            _ => Ok(()),
        }
    }

    pub(crate) fn varies(&self) -> Varies {
        let none = Varies::default();
        match self {
            Self::Padding { lengths } => Varies { by_batch: lengths.len() > 1, ..none },
            Self::PerHead { masks } => {
                masks.iter().fold(Varies { by_head: true, ..none }, |varies, mask| varies.or(mask.varies()))
            }
            Self::Keep { shape, axes, .. } | Self::Masked { shape, axes, .. } => of_matrix(shape, *axes, false),
            Self::Additive { shape, axes, .. } => of_matrix(shape, *axes, true),
            Self::Alibi { .. } | Self::Relative { .. } => Varies { by_head: true, has_bias: true, ..none },
            Self::And { left, right } | Self::Or { left, right } => left.varies().or(right.varies()),
            Self::Not { mask } => mask.varies(),
            _ => none,
        }
    }
}

/// How deep masks may lie in each other.
pub const MAX_MASK_DEPTH: usize = 64;

fn cells_that_fit(shape: &[usize], has_bias: bool, max_bytes: usize) -> Result<usize> {
    let cells = shape.iter().fold(1u64, |cells, &axis| cells.saturating_mul(axis as u64));
    let needed = cells.saturating_mul(if has_bias { 5 } else { 1 });
    if needed > max_bytes as u64 {
        return Err(AttnError::too_large(needed, max_bytes));
    }
    Ok(cells as usize)
}

/// What a mask's matrices differ by, and whether they add anything.
#[derive(Clone, Copy, Default)]
pub(crate) struct Varies {
    pub by_batch: bool,
    pub by_head: bool,
    pub has_bias: bool,
}

impl Varies {
    fn or(self, other: Self) -> Self {
        Self {
            by_batch: self.by_batch || other.by_batch,
            by_head: self.by_head || other.by_head,
            has_bias: self.has_bias || other.has_bias,
        }
    }
}

fn of_matrix(shape: &[usize], axes: Option<MaskAxes>, has_bias: bool) -> Varies {
    let [batch, heads, ..] = four_axes(shape, axes);
    Varies { by_batch: batch > 1, by_head: heads > 1, has_bias }
}

/// The matrix's shape as `[batch, heads, n_q, n_k]`. Two axes are always queries and keys, one is keys.
fn four_axes(shape: &[usize], axes: Option<MaskAxes>) -> [usize; 4] {
    match *shape {
        [keys] => [1, 1, 1, keys],
        [queries, keys] => [1, 1, queries, keys],
        [batch, queries, keys] if axes.is_some() => [batch, 1, queries, keys],
        [heads, queries, keys] => [1, heads, queries, keys],
        [batch, heads, queries, keys] => [batch, heads, queries, keys],
        _ => [0; 4],
    }
}

/// Allows a range of a row's keys and no others.
fn open(allowed: &mut [u8], range: Range<usize>) {
    allowed.fill(0);
    if range.start < range.end {
        allowed[range].fill(1);
    }
}

/// Asks for each key of a row.
fn each(allowed: &mut [u8], is_allowed: impl Fn(usize) -> bool) {
    for (j, cell) in allowed.iter_mut().enumerate() {
        *cell = u8::from(is_allowed(j));
    }
}

fn add(bias: &mut [f32], number: impl Fn(usize) -> f32) {
    for (j, cell) in bias.iter_mut().enumerate() {
        *cell += number(j);
    }
}

/// Where a matrix holds a cell; an axis of 1 serves every entry. None for a key behind those that it covers.
fn cell(shape: &[usize], axes: Option<MaskAxes>, row: Row, key: usize) -> Option<usize> {
    let shape = four_axes(shape, axes);
    if key >= shape[3] && shape[3] != 1 {
        return None;
    }
    let index = [row.batch, row.head, row.query, key];
    Some(shape.iter().zip(index).fold(0, |at, (&axis, index)| at * axis + if axis == 1 { 0 } else { index }))
}

fn float_at(bytes: &[u8], at: usize) -> f32 {
    f32::from_le_bytes(bytes[4 * at..].first_chunk().copied().unwrap_or_default())
}

fn check_matrix(shape: &[usize], cells: usize, axes: Option<MaskAxes>, size: MaskSize, real_keys: usize) -> Result<()> {
    let four = four_axes(shape, axes);
    let covers = (real_keys..=size.n_k).contains(&four[3]) || four[3] == 1;
    let fits = covers && four[..3].iter().zip(size.shape()).all(|(&axis, scores)| axis == scores || axis == 1);
    if !fits || four.iter().product::<usize>() != cells {
        return Err(Box::new(AttnError::MaskShape {
            mask: shape.to_vec(),
            scores: size.shape().to_vec(),
            expected:
                "[n_k], [n_q, n_k], [heads, n_q, n_k], [batch, 1 or heads, n_q, n_k], or [batch, n_q, n_k] with axes \
                       \"batch\""
                    .into(),
        }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mask_code::TorchConvention;
    use proptest::prelude::*;

    const SIZE: MaskSize = MaskSize { n_q: 5, n_k: 7, n_heads: 3, batch: 2 };

    fn allowed(mask: &Mask) -> Vec<u8> {
        // Through a mask that names every head and batch entry, so that all come out at one size.
        let all = Mask::Keep { shape: vec![2, 3, 5, 7], data: vec![1; 210], axes: None };
        let sized = Mask::And { left: Box::new(mask.clone()), right: Box::new(all) };
        sized.materialize(SIZE, 1 << 20).unwrap().allowed
    }

    fn any_mask() -> impl Strategy<Value = Mask> {
        let leaf = prop_oneof![
            Just(Mask::Causal),
            prop::collection::vec(0usize..8, 2).prop_map(|lengths| Mask::Padding { lengths }),
            (0usize..8, 0usize..8).prop_map(|(left, right)| Mask::SlidingWindow { left, right }),
            (0usize..8).prop_map(|keys| Mask::Prefix { keys }),
            prop::collection::vec(0usize..7, 0..3).prop_map(|indices| Mask::Global { indices }),
            (1usize..4, 1usize..4).prop_map(|(width, stride)| Mask::Dilated { width, stride }),
            prop::collection::vec(0u8..2, 35).prop_map(|data| Mask::Keep { shape: vec![5, 7], data, axes: None }),
            prop::collection::vec(0u8..2, 105).prop_map(|data| Mask::Masked { shape: vec![3, 5, 7], data, axes: None }),
            prop::collection::vec(0u8..2, 70).prop_map(|data| Mask::Keep {
                shape: vec![2, 5, 7],
                data,
                axes: Some(MaskAxes::Batch)
            }),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(a, b)| Mask::And { left: Box::new(a), right: Box::new(b) }),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| Mask::Or { left: Box::new(a), right: Box::new(b) }),
                inner.clone().prop_map(|mask| Mask::Not { mask: Box::new(mask) }),
                prop::collection::vec(inner, 3).prop_map(|masks| Mask::PerHead { masks }),
            ]
        })
    }

    proptest! {
        #[test]
        fn de_morgan(a in any_mask(), b in any_mask()) {
            let not = |mask: Mask| Mask::Not { mask: Box::new(mask) };
            let left = not(Mask::And { left: Box::new(a.clone()), right: Box::new(b.clone()) });
            let right = Mask::Or { left: Box::new(not(a)), right: Box::new(not(b)) };
            prop_assert_eq!(allowed(&left), allowed(&right));
        }

        #[test]
        fn idempotent_and_involutive(a in any_mask()) {
            let twice = Mask::And { left: Box::new(a.clone()), right: Box::new(a.clone()) };
            let back = Mask::Not { mask: Box::new(Mask::Not { mask: Box::new(a.clone()) }) };
            prop_assert_eq!(allowed(&twice), allowed(&a));
            prop_assert_eq!(allowed(&back), allowed(&a));
        }
    }

    #[test]
    fn causal_is_the_lower_triangle() {
        let size = MaskSize { n_q: 3, n_k: 3, n_heads: 1, batch: 1 };
        let resolved = Mask::Causal.materialize(size, 1 << 20).unwrap();
        assert_eq!(resolved.allowed, [1, 0, 0, 1, 1, 0, 1, 1, 1]);
        assert_eq!(resolved.shape, [1, 1, 3, 3]);
    }

    #[test]
    fn two_axes_are_queries_and_keys_even_where_queries_are_as_many_as_heads() {
        let size = MaskSize { n_q: 3, n_k: 3, n_heads: 3, batch: 3 };
        let mask = Mask::Keep { shape: vec![3, 3], data: vec![1, 0, 0, 1, 1, 0, 1, 1, 1], axes: None };
        assert_eq!(mask.materialize(size, 1 << 20).unwrap().shape, [1, 1, 3, 3]);
    }

    #[test]
    fn a_mask_that_fits_no_scores_names_both_shapes() {
        let mask = Mask::Keep { shape: vec![4, 4], data: vec![1; 16], axes: None };
        let error = mask.materialize(SIZE, 1 << 20).unwrap_err();
        assert!(matches!(*error, AttnError::MaskShape { ref mask, ref scores, .. }
            if mask == &[4, 4] && scores == &[2, 3, 5, 7]));
        for mask in [
            Mask::Padding { lengths: vec![1, 2, 3] },
            Mask::Padding { lengths: vec![8] },
            Mask::Documents { ids: vec![0; 5] },
            Mask::Global { indices: vec![7] },
            Mask::PerHead { masks: vec![Mask::Causal] },
            Mask::Alibi { heads: 4 },
            Mask::Masked { shape: vec![5, 7], data: vec![1; 3], axes: None },
        ] {
            assert_eq!(mask.materialize(SIZE, 1 << 20).unwrap_err().code().as_str(), "mask_shape");
        }
    }

    #[test]
    fn a_mask_too_deep_or_too_large_for_its_cells_is_refused() {
        let deep = |depth: usize| (1..depth).fold(Mask::Causal, |mask, _| Mask::Not { mask: Box::new(mask) });
        assert!(deep(64).materialize(SIZE, 1 << 20).is_ok() && deep(64).to_torch(TorchConvention::Sdpa).is_ok());
        for mask in [
            deep(65),
            Mask::Keep { shape: vec![1 << 40], data: vec![], axes: None },
            Mask::Masked { shape: vec![1 << 40, 0], data: vec![], axes: None },
            Mask::Additive { shape: vec![usize::MAX, 2], data: vec![], axes: None },
            Mask::Alibi { heads: usize::MAX },
        ] {
            assert_eq!(mask.to_torch(TorchConvention::Sdpa).unwrap_err().code().as_str(), "invalid_option");
        }
        assert_eq!(deep(65).materialize(SIZE, 1 << 20).unwrap_err().code().as_str(), "invalid_option");
    }
}
