//! One head's attention in one sweep: of a block of queries the scores become weights and mix the values while they are still
//! in the cache. Keys that a mask hides from all rows of a tile are never met.

use std::ops::Range;

use super::exp::LOWEST;
use super::matmul::{self, Counting, MC, MOST, Packed, block_height, matmul_part};
use super::matrix::{Matrix, MatrixMut};
use super::softmax::{Counted, largest, make_shares};

/// How scores become weights.
#[derive(Debug, Clone, Copy)]
pub struct Weighing {
    /// The factor of the scores.
    pub scale: f32,
    /// cap · tanh(scaled / cap) before the mask; 0 is off.
    pub softcap: f32,
    /// What a hidden score becomes.
    pub fill: f32,
    /// Whether a row of -infinity alone gives zeros instead of NaN.
    pub zero_empty_rows: bool,
}

/// The mask of one head from some query on, each matrix `[n_q, n_k]`.
#[derive(Debug, Clone, Copy)]
pub struct HeadMask<'a> {
    /// 1 where the query may attend to the key, else 0.
    pub allowed: &'a [u8],
    /// What is added to the scores.
    pub bias: Option<&'a [f32]>,
    /// What each query sees.
    pub visible: &'a [Visible],
}

/// The keys that a query sees.
#[derive(Debug, Clone)]
pub struct Visible {
    /// From the first to behind the last.
    pub keys: Range<usize>,
    /// Whether none between these is hidden.
    pub are_all: bool,
}

/// Queries of a head, what they may attend to, and where the context goes.
pub struct Queries<'a> {
    /// `[n_q, d_k]`
    pub query: Matrix<'a>,
    /// The mask.
    pub mask: Option<HeadMask<'a>>,
    /// `[n_q, d_v]`
    pub context: MatrixMut<'a>,
    /// What the context is multiplied by.
    pub factor: Option<f32>,
}

impl<'a> Queries<'a> {
    /// As many queries at a time as [`attend`] is quick with, each block with the number of its first query.
    pub fn blocks(self, n_k: usize) -> impl Iterator<Item = (usize, Self)> {
        let Self { query, mask, context, factor } = self;
        let n_q = query.shape().0;
        let height = block_height(n_q, MC);
        (0..n_q).step_by(height).zip(context.row_blocks(height)).map(move |(start, context)| {
            let mask = mask.map(|mask| HeadMask {
                allowed: &mask.allowed[start * n_k..],
                bias: mask.bias.map(|bias| &bias[start * n_k..]),
                visible: &mask.visible[start..],
            });
            (start, Self { query: query.rows(start..n_q.min(start + height)), mask, context, factor })
        })
    }
}

/// The keys and values of a head, in the order in which tiles read them.
#[derive(Debug, Default)]
pub struct KeysAndValues {
    keys: Packed,
    values: Packed,
    /// Whether 0 times any value is 0, where a mask makes zeros.
    is_finite: bool,
}

impl KeysAndValues {
    /// Packs `keys` `[n_k, d_k]` and `values` `[n_k, d_v]` in place of those that were here.
    pub fn pack(&mut self, keys: Matrix, values: Matrix, are_masked: bool) {
        self.keys.pack(keys.transposed());
        self.values.pack(values);
        self.is_finite = are_masked && self.values.is_finite();
    }
}

/// Room for the weights of a block of queries, and for the products.
#[derive(Debug, Default)]
pub struct Room {
    /// The weights that [`attend`] gave last, and behind them what is of no use.
    pub weights: Vec<f32>,
    product: matmul::Room,
}

/// context = softmax(query · keysᵀ · scale + mask) · values. The weights, `[n_q, n_k]`, lie in `room`; gives how many they are.
///
/// The numbers are those of the passes one by one: what is left out would have been multiplied by a weight of exactly 0.
pub fn attend(queries: Queries, kv: &KeysAndValues, how: Weighing, room: &mut Room) -> usize {
    let Queries { query, mask, mut context, factor } = queries;
    let (n_q, d_k) = query.shape();
    assert!(n_q <= MOST, "more queries than a block has");
    let (n_k, d_v) = kv.values.shape();
    let Room { weights, product } = room;
    weights.resize(weights.len().max(n_q * n_k), 0.0);
    let weights = &mut weights[..n_q * n_k];
    // 1. The queries meet the keys that they see.
    let seen_by = |queries: Range<usize>| mask.map_or(0..n_k, |mask| union(&mask.visible[queries]));
    let seen = seen_by(0..n_q);
    if !seen.is_empty() {
        let scores = MatrixMut::new(&mut weights[seen.start..], n_q, seen.len(), n_k);
        let counting = if mask.is_some() { Counting::Columns(&seen_by) } else { Counting::All };
        matmul_part(query, &kv.keys, 0..d_k, seen.clone(), scores, counting, product);
    }
    // 2. Scale, cap and mask each row, and make it shares, a few rows at a time.
    let mut is_sparse = kv.is_finite && !seen.is_empty();
    for (group, rows) in weights.chunks_mut(TOGETHER * n_k).enumerate() {
        let mut counted = [Counted::default(); TOGETHER];
        for (i, (row, counted)) in rows.chunks_exact_mut(n_k).zip(&mut counted).enumerate() {
            let is_exact;
            (*counted, is_exact) = score(row, group * TOGETHER + i, mask, how);
            is_sparse &= is_exact;
        }
        is_sparse &= make_shares(rows, n_k, &mut counted);
    }
    // 3. The shares mix the values.
    let (counted, counting) = if is_sparse { (seen, Counting::Depth(&seen_by)) } else { (0..n_k, Counting::All) };
    let shares = Matrix::new(&weights[counted.start..], n_q, counted.len(), n_k);
    matmul_part(shares, &kv.values, counted, 0..d_v, context.rows(0..n_q), counting, product);
    if let Some(factor) = factor {
        (0..n_q).for_each(|i| context.row(i).iter_mut().for_each(|x| *x *= factor));
    }
    weights.len()
}

/// From the first to behind the last key that any of the queries sees, from a multiple of 8 on, where tiles and lanes begin.
fn union(visible: &[Visible]) -> Range<usize> {
    let seen = visible.iter().map(|seen| &seen.keys).filter(|keys| !keys.is_empty());
    let start = seen.clone().map(|keys| keys.start).min().unwrap_or(0);
    start / 8 * 8..seen.map(|keys| keys.end).max().unwrap_or(0)
}

/// cap · tanh(x / cap)
pub fn capped(x: f32, cap: f32) -> f32 {
    cap * f64::from(x / cap).tanh() as f32
}

/// So many rows become shares side by side.
const TOGETHER: usize = 4;

/// The scores of query `i` of the block as softmax takes them, and whether hidden keys have shares of exactly 0.
fn score(row: &mut [f32], i: usize, mask: Option<HeadMask>, how: Weighing) -> (Counted, bool) {
    let n_k = row.len();
    let own = mask.map_or(0..n_k, |mask| union(&mask.visible[i..=i]));
    // 1. What is only scaled can be so while its exponential is taken.
    let is_open = |mask: HeadMask| mask.bias.is_none() && mask.visible[i].are_all && mask.visible[i].keys == own;
    let mut factor = how.scale;
    if how.softcap > 0.0 || factor <= 0.0 || !mask.is_none_or(is_open) {
        finish(&mut row[own.clone()], i * n_k + own.start, mask, how);
        factor = 1.0;
    }
    let mut max = largest(&row[own.clone()], factor);
    // 2. A hidden key's share is exactly 0 where its fill lies so far below the maximum; else it counts.
    let is_exact = max.is_finite() && max + LOWEST > how.fill;
    let Range { mut start, mut end } = own;
    if is_exact {
        // Up to a multiple of four, of which none has to be looked at by itself.
        let whole = end.next_multiple_of(4).min(n_k);
        row[end..whole].iter_mut().for_each(|x| *x = f32::NEG_INFINITY);
        end = whole;
    } else if end - start < n_k {
        row[start..end].iter_mut().for_each(|x| *x *= factor);
        row[..start].fill(how.fill);
        row[end..].fill(how.fill);
        if max < how.fill || how.fill.is_nan() {
            max = how.fill;
        }
        (start, end, factor) = (0, n_k, 1.0);
    }
    let is_empty = || row[start..end].iter().all(|x| x * factor == f32::NEG_INFINITY);
    if how.zero_empty_rows && max == f32::NEG_INFINITY && is_empty() {
        (start, end) = (0, 0);
    }
    (Counted { start, end, factor, max, sum: 0.0 }, is_exact)
}

/// Scales, caps and masks scores; `at` is the place of the first among the mask's matrices.
fn finish(scores: &mut [f32], at: usize, mask: Option<HeadMask>, how: Weighing) {
    scores.iter_mut().for_each(|x| *x *= how.scale);
    if how.softcap > 0.0 {
        scores.iter_mut().for_each(|x| *x = capped(*x, how.softcap));
    }
    let Some(mask) = mask else { return };
    if let Some(bias) = mask.bias {
        scores.iter_mut().zip(&bias[at..]).for_each(|(x, bias)| *x += bias);
    }
    for (x, &allowed) in scores.iter_mut().zip(&mask.allowed[at..]) {
        *x = if allowed == 0 { how.fill } else { *x };
    }
}
