//! One head's attention in one sweep: of a block of queries the scores become weights and mix the values while they are still
//! in the cache. Keys that a mask hides from the whole block are never met.

use std::ops::Range;

use super::exp::LOWEST;
use super::matmul::{self, MC, MOST, Matrix, MatrixMut, Packed, block_height, matmul_part};
use super::softmax::{largest, shares};

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
    /// For each query from its first to behind its last key that is not hidden.
    pub visible: &'a [Range<usize>],
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
        // Of low blocks a mask leaves more keys out.
        let height = block_height(n_q, if mask.is_some() { MC / 2 } else { MC });
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
    // 1. The queries meet the keys that any of them sees.
    let seen = mask.map_or(0..n_k, |mask| union(&mask.visible[..n_q]));
    if !seen.is_empty() {
        let scores = MatrixMut::new(&mut weights[seen.start..], n_q, seen.len(), n_k);
        matmul_part(query, &kv.keys, 0..d_k, seen.clone(), scores, product);
    }
    // 2. Scale, cap and mask each row, and make it shares.
    let mut is_sparse = kv.is_finite && !seen.is_empty();
    for (i, row) in weights.chunks_exact_mut(n_k).enumerate() {
        let own = mask.map_or(0..n_k, |mask| union(&mask.visible[i..=i]));
        score(&mut row[own.clone()], i * n_k + own.start, mask, how);
        let mut max = largest(&row[own.clone()]);
        // A hidden key's weight is exactly 0 where its fill lies so far below the row's maximum; else it counts.
        let is_exact = max.is_finite() && max + LOWEST > how.fill;
        is_sparse &= is_exact;
        let (counted, hidden) = if is_exact { (own.clone(), 0.0) } else { (0..n_k, how.fill) };
        row[..own.start].fill(hidden);
        row[own.end..].fill(hidden);
        if counted.len() > own.len() && (hidden.is_nan() || max < hidden) {
            max = hidden;
        }
        let counted = &mut row[counted];
        if how.zero_empty_rows && max == f32::NEG_INFINITY { counted.fill(0.0) } else { shares(counted, max) }
    }
    // 3. The shares mix the values.
    let counted = if is_sparse { seen } else { 0..n_k };
    let shares = Matrix::new(&weights[counted.start..], n_q, counted.len(), n_k);
    matmul_part(shares, &kv.values, counted, 0..d_v, context.rows(0..n_q), product);
    if let Some(factor) = factor {
        (0..n_q).for_each(|i| context.row(i).iter_mut().for_each(|x| *x *= factor));
    }
    weights.len()
}

/// From the first to behind the last key that any of the queries sees, from a multiple of 8 on, where tiles and lanes begin.
fn union(visible: &[Range<usize>]) -> Range<usize> {
    let seen = visible.iter().filter(|range| !range.is_empty());
    let start = seen.clone().map(|range| range.start).min().unwrap_or(0);
    start / 8 * 8..seen.map(|range| range.end).max().unwrap_or(0)
}

/// cap · tanh(x / cap)
pub fn capped(x: f32, cap: f32) -> f32 {
    cap * f64::from(x / cap).tanh() as f32
}

/// A row's scores as softmax takes them; `at` is the place of its first number in the mask's matrices.
fn score(row: &mut [f32], at: usize, mask: Option<HeadMask>, how: Weighing) {
    row.iter_mut().for_each(|x| *x *= how.scale);
    if how.softcap > 0.0 {
        row.iter_mut().for_each(|x| *x = capped(*x, how.softcap));
    }
    let Some(mask) = mask else { return };
    if let Some(bias) = mask.bias {
        row.iter_mut().zip(&bias[at..]).for_each(|(x, bias)| *x += bias);
    }
    for (x, &allowed) in row.iter_mut().zip(&mask.allowed[at..]) {
        *x = if allowed == 0 { how.fill } else { *x };
    }
}
