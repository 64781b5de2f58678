//! out = a · b (+ bias), for strided views, in packed panels and register tiles.
//!
//! The scheme is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): `b` is packed
//! into panels of 8 columns, a block of `a` into panels of a few rows, both so that the inner loop reads them front to back,
//! and one tile of `out` stays in registers. A browser's compiler has 15 vector registers to give: a fused multiply-and-add
//! fills them with a tile of 6 x 8, twelve sums beside three operands; multiply and add need one more for each product, and
//! then 6 x 8 spills where 4 x 8 does not.

use std::ops::Range;

use super::lanes::{Lanes, NAME};
use super::matrix::{Matrix, MatrixMut};
use super::threads;

/// Rows of a tile; some have one less, where that leaves no rows over.
const MR: usize = if matches!(NAME.as_bytes(), b"relaxed-simd") { 6 } else { 4 };
/// Columns of a tile.
const NR: usize = 8;
/// Depth of a block: a panel of `b` (8 kB) stays in the first-level cache.
const KC: usize = 256;
/// About so many rows has a block of `a`: 96 kB, which stay in the second-level cache.
pub const MC: usize = 96;
/// The most rows of a block.
pub const MOST: usize = MC * 3 / 2;
/// What the rows of a thread's part are a multiple of: whole tiles of either height.
const TILES: usize = 12;

/// A right-hand matrix `[k, n]` in the order in which tiles read it: blocks of 256 rows, in each panels of 8 columns, the last
/// filled up with zeros. Made once, it serves any number of products.
#[derive(Debug, Clone, Default)]
pub struct Packed {
    k: usize,
    n: usize,
    panels: Vec<f32>,
}

impl Packed {
    /// Packs `b`.
    pub fn new(b: Matrix) -> Self {
        let mut packed = Self::default();
        packed.pack(b);
        packed
    }

    /// Packs `b` in place of what was here.
    pub fn pack(&mut self, b: Matrix) {
        (self.k, self.n) = (b.rows, b.columns);
        let width = b.columns.next_multiple_of(NR);
        self.panels.resize(b.rows * width, 0.0);
        for k0 in (0..b.rows).step_by(KC) {
            let depth = KC.min(b.rows - k0);
            let panels = &mut self.panels[k0 * width..][..depth * width];
            for (panel, column) in panels.chunks_exact_mut(NR * depth).zip((0..b.columns).step_by(NR)) {
                pack::<NR>(b.transposed(), column, k0..k0 + depth, panel);
            }
        }
    }

    /// k and n
    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.k, self.n)
    }

    /// n
    pub fn columns(&self) -> usize {
        self.n
    }

    /// Whether no number is NaN or infinite.
    pub(crate) fn is_finite(&self) -> bool {
        // NaN and infinity times 0 are NaN.
        let zeros = Lanes::splat(0.0);
        let mut strange = zeros.unordered(zeros);
        for four in self.panels.as_chunks::<4>().0 {
            // SAFETY: there are four.
            strange = strange.unordered(unsafe { Lanes::load(four.as_ptr()) }.mul(zeros));
        }
        !strange.has_bits()
    }

    /// Rows `k` of the 8 columns from `column` on; the rows lie within one block.
    fn panel(&self, k: Range<usize>, column: usize) -> &[f32] {
        let k0 = k.start / KC * KC;
        let depth = KC.min(self.k - k0);
        let start = k0 * self.n.next_multiple_of(NR) + column * depth + (k.start - k0) * NR;
        &self.panels[start..][..k.len() * NR]
    }
}

/// `out[m, n] = a[m, k] · b[k, n] + bias[n]`; row `i` of `out` starts at `i * out_stride`.
///
/// # Panics
/// Where the shapes do not fit each other.
pub fn matmul(a: Matrix, b: Matrix, bias: Option<&[f32]>, out: &mut [f32], out_stride: usize) {
    matmul_packed(a, &Packed::new(b), bias, out, out_stride);
}

/// The same with a `b` that was packed before.
///
/// # Panics
/// Where the shapes do not fit each other.
pub fn matmul_packed(a: Matrix, b: &Packed, bias: Option<&[f32]>, out: &mut [f32], out_stride: usize) {
    matmul_all(a, vec![Product::new(b, bias, MatrixMut::new(out, a.rows, b.n, out_stride))], &mut Room::default());
}

/// Room for a block of `a`, packed: what it held is of no use to the next product.
#[derive(Debug, Default)]
pub struct Room(Vec<f32>);

impl Room {
    /// Room for so many numbers.
    fn of(&mut self, size: usize) -> &mut [f32] {
        if self.0.len() < size {
            self.0.resize(size, 0.0);
        }
        &mut self.0[..size]
    }
}

/// What a matrix is multiplied by, and where the product goes.
pub struct Product<'a> {
    b: &'a Packed,
    /// Which columns of `b`, from a multiple of 8 on.
    columns: Range<usize>,
    bias: Option<&'a [f32]>,
    out: MatrixMut<'a>,
}

impl<'a> Product<'a> {
    /// out = a · b + bias
    pub fn new(b: &'a Packed, bias: Option<&'a [f32]>, out: MatrixMut<'a>) -> Self {
        Self { b, columns: 0..b.n, bias, out }
    }

    /// How many it has.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Some of its rows, for a while.
    ///
    /// # Panics
    /// Where there are fewer.
    pub fn rows(&mut self, rows: Range<usize>) -> Product<'_> {
        Product { columns: self.columns.clone(), out: self.out.rows(rows), ..*self }
    }
}

/// The products of one matrix with several, of as many rows each. `room` is the caller's; other threads have their own.
///
/// # Panics
/// Where the shapes do not fit each other.
pub fn matmul_all(a: Matrix, mut products: Vec<Product>, room: &mut Room) {
    let n: usize = products.iter().map(|product| product.b.n).sum();
    let threads = threads::count(a.rows as f64 * a.columns as f64 * n as f64);
    if threads == 1 {
        return matmul_parts(a, 0..a.columns, &mut products, Counting::All, room);
    }
    // Some parts for each thread, so that none waits long for the last: rows, and where these are few, columns as well.
    let height = (a.rows / (4 * threads)).next_multiple_of(TILES).clamp(TILES, MC / 2);
    let across = (4 * threads).div_ceil(a.rows.div_ceil(height) * products.len());
    let mut parts = Vec::new();
    for Product { b, bias, out, .. } in products {
        let width = b.n.div_ceil(across).next_multiple_of(NR);
        for (j, out) in out.column_blocks(width).enumerate() {
            let columns = j * width..b.n.min((j + 1) * width);
            let part = |out| Product { b, columns: columns.clone(), bias, out };
            parts.extend(out.row_blocks(height).map(part).enumerate());
        }
    }
    threads::each(threads, parts.into_iter(), |room: &mut Room, (i, part)| {
        let rows = i * height..a.rows.min((i + 1) * height);
        matmul_parts(a.rows(rows), 0..a.columns, &mut [part], Counting::All, room);
    });
}

/// What counts of a product. A tile has what counts for any of its rows.
#[derive(Clone, Copy)]
pub(crate) enum Counting<'a> {
    /// All of it.
    All,
    /// For some rows of `out` these of its columns, as `b` numbers them; what the others hold is of no use.
    Columns(&'a dyn Fn(Range<usize>) -> Range<usize>),
    /// For some rows of `a` these of its columns, as `b` numbers its rows; the others are 0.
    Depth(&'a dyn Fn(Range<usize>) -> Range<usize>),
}

/// The product with rows `k` of `b`, and only columns `n` of it; `n` starts at a multiple of 8. `a` has as many columns as
/// `k` is long; its first column meets the first of these rows, the first column of `out` is the first of these columns.
///
/// # Panics
/// Where the shapes do not fit each other.
pub(crate) fn matmul_part(
    a: Matrix,
    b: &Packed,
    k: Range<usize>,
    columns: Range<usize>,
    out: MatrixMut,
    counting: Counting,
    room: &mut Room,
) {
    matmul_parts(a, k, &mut [Product { b, columns, bias: None, out }], counting, room);
}

/// Several such products; each block of `a` is packed once for all.
fn matmul_parts(a: Matrix, k: Range<usize>, products: &mut [Product], counting: Counting, room: &mut Room) {
    let m = a.rows;
    assert!(a.columns == k.len(), "sizes differ");
    for Product { b, columns, bias, out } in &*products {
        assert!(k.end <= b.k && columns.end <= b.n && columns.start.is_multiple_of(NR), "sizes differ");
        assert!((out.rows, out.columns) == (m, columns.len()), "the output has another size");
        assert!(bias.is_none_or(|bias| bias.len() == b.n), "the bias has another size");
    }

    let height = block_height(m, MC);
    let a_panels = room.of(height.min(m).next_multiple_of(MR) * KC.min(k.len()));
    let mut k0 = k.start;
    while k0 < k.end {
        let depth = (KC - k0 % KC).min(k.end - k0);
        for m0 in (0..m).step_by(height) {
            let tiles = Tiles::of(m0..m.min(m0 + height), k0..k0 + depth, counting);
            // 1. Pack a block of a.                                    [tiles][depth][MR]
            for (tile, panel) in a_panels.chunks_exact_mut(MR * depth).take(tiles.count).enumerate() {
                let own = tiles.depth(tile);
                let columns = k0 - k.start + own.start..k0 - k.start + own.end;
                pack::<MR>(a, tiles.rows(tile).start, columns, &mut panel[own.start * MR..own.end * MR]);
            }
            for Product { b, columns, bias, out } in products.iter_mut() {
                for j in columns.clone().step_by(NR) {
                    // 2. Tile by tile, onto what the blocks before gave, or onto the bias.
                    let onto = match bias {
                        _ if k0 > k.start => Onto::Out,
                        Some(bias) => Onto::Row(&bias[j..]),
                        None => Onto::Nothing,
                    };
                    multiply_block(&tiles, a_panels, b.panel(k0..k0 + depth, j), j, &onto, out, j - columns.start);
                }
            }
        }
        k0 += depth;
    }
}

/// Rows of each block but the last, about so many, so that none is left that is small beside the others.
pub(crate) fn block_height(rows: usize, about: usize) -> usize {
    let blocks = ((rows + about / 2) / about).max(1);
    rows.div_ceil(blocks).next_multiple_of(MR)
}

/// How the rows of a block are cut: into tiles of MR rows and, behind them, of one less. Some few rows cannot be cut like that; of
/// them the last tile hangs over.
struct Tiles {
    block: Range<usize>,
    count: usize,
    /// How many have MR rows.
    tall: usize,
    /// How many do not hang over.
    whole: usize,
    depth: usize,
    /// Each tile's columns, where not all count.
    columns: Vec<Range<usize>>,
    /// Each tile's part of the depth, where not all counts.
    depths: Vec<Range<usize>>,
}

impl Tiles {
    fn of(block: Range<usize>, k: Range<usize>, counting: Counting) -> Self {
        let count = block.len().div_ceil(MR);
        let missing = count * MR - block.len();
        let (tall, whole) = if missing <= count { (count - missing, count) } else { (count, count - 1) };
        let (columns, depths, depth) = (Vec::new(), Vec::new(), k.len());
        let mut tiles = Self { block, count, tall, whole, depth, columns, depths };
        match counting {
            Counting::All => {}
            Counting::Columns(of) => tiles.columns = (0..count).map(|tile| of(tiles.rows(tile))).collect(),
            Counting::Depth(of) => {
                let within = |at: usize| at.clamp(k.start, k.end) - k.start;
                let depth = |tile| of(tiles.rows(tile));
                tiles.depths = (0..count).map(depth).map(|own| within(own.start)..within(own.end)).collect();
            }
        }
        tiles
    }

    /// The rows of a tile.
    fn rows(&self, tile: usize) -> Range<usize> {
        let start = |tile: usize| self.block.start + tile * MR - tile.saturating_sub(self.tall);
        start(tile)..self.block.end.min(start(tile + 1))
    }

    /// The part of the depth that counts for a tile.
    fn depth(&self, tile: usize) -> Range<usize> {
        self.depths.get(tile).map_or(0..self.depth, Range::clone)
    }

    /// Whether any of the 8 columns of `b` from `column` on counts for a tile.
    fn counts(&self, tile: usize, column: usize) -> bool {
        self.columns.get(tile).is_none_or(|own| own.start < column + NR && column < own.end)
    }
}

/// Some rows from `row` on as a panel of `P`, each column of it together. Where the panel reaches past the last row, any numbers fill
/// it up.
fn pack<const P: usize>(from: Matrix, row: usize, columns: Range<usize>, panel: &mut [f32]) {
    let depth = columns.len();
    let start = row * from.row_stride + columns.start * from.column_stride;
    let height = P.min(from.rows - row);
    if height == P && from.row_stride == 1 {
        for (p, column) in panel.chunks_exact_mut(P).enumerate() {
            column.copy_from_slice(&from.data[start + p * from.column_stride..][..P]);
        }
    } else if from.column_stride == 1 {
        let line = |r: usize| &from.data[start + r.min(height - 1) * from.row_stride..][..depth];
        interleave::<P>(&std::array::from_fn(line), panel);
    } else {
        panel.fill(0.0);
        for (p, column) in panel.chunks_exact_mut(P).enumerate() {
            for (r, to) in column[..height].iter_mut().enumerate() {
                *to = from.at(row + r, columns.start + p);
            }
        }
    }
}

/// The lines' first numbers, then their second ones, and so on: 4 x 4 at a time, of 6 lines also 2 x 4.
fn interleave<const P: usize>(lines: &[&[f32]; P], panel: &mut [f32]) {
    let depth = lines[0].len();
    assert!(P.is_multiple_of(2) && lines.iter().all(|line| line.len() == depth) && panel.len() == P * depth);
    let fours = depth / 4 * 4;
    for p in (0..fours).step_by(4) {
        // SAFETY: p + 4 <= depth, which the assertion above says of every line; column p + 3 of the panel ends at P * (p + 4).
        unsafe {
            let load = |line: usize| Lanes::load(lines[line].as_ptr().add(p));
            let to = panel.as_mut_ptr().add(P * p);
            for r in (0..P / 4 * 4).step_by(4) {
                let columns = Lanes::transposed([load(r), load(r + 1), load(r + 2), load(r + 3)]);
                for (q, column) in columns.into_iter().enumerate() {
                    column.store(to.add(P * q + r));
                }
            }
            if P % 4 == 2 {
                let columns = Lanes::transposed([load(P - 2), load(P - 1), load(P - 2), load(P - 1)]);
                for (q, column) in columns.into_iter().enumerate() {
                    column.store_two(to.add(P * q + P - 2));
                }
            }
        }
    }
    for (p, column) in panel.chunks_exact_mut(P).enumerate().skip(fours) {
        column.iter_mut().zip(lines).for_each(|(to, line)| *to = line[p]);
    }
}

/// x + -0 is x, be it 0 or -0.
static NOTHING: [f32; NR] = [-0.0; NR];

/// What a tile is added to.
enum Onto<'a> {
    Nothing,
    /// The same row for each row.
    Row(&'a [f32]),
    /// What is there.
    Out,
}

impl Onto<'_> {
    /// Where the rows for a whole tile at `to` lie, and how far apart.
    fn rows(&self, to: *const f32, stride: usize) -> (*const f32, usize) {
        match self {
            Onto::Nothing => ((&raw const NOTHING).cast(), 0),
            Onto::Row(bias) => (bias[..NR].as_ptr(), 0),
            Onto::Out => (to, stride),
        }
    }
}

/// A block of `a` times the panel of `b` that begins with `column`: columns of `out` from `first` on, tile by tile.
fn multiply_block(
    tiles: &Tiles,
    a_panels: &[f32],
    b_panel: &[f32],
    column: usize,
    onto: &Onto,
    out: &mut MatrixMut,
    first: usize,
) {
    let depth = b_panel.len() / NR;
    let width = NR.min(out.columns - first);
    assert!(a_panels.len() >= tiles.count * MR * depth && tiles.block.end <= out.rows);
    let whole = if width == NR { tiles.whole } else { 0 };
    let stride = out.row_stride;
    // SAFETY: panels and rows of `out` are there by the assertions; the view lies within its data.
    unsafe {
        let mut a_panel = a_panels.as_ptr();
        let mut to = out.start.add(tiles.block.start * stride + first);
        for index in 0..whole {
            let (from, from_stride) = onto.rows(to, stride);
            let own = tiles.depth(index);
            let (a, b) = (a_panel.add(own.start * MR), &b_panel[own.start * NR..own.end * NR]);
            to = if !tiles.counts(index, column) {
                to.add(tiles.rows(index).len() * stride)
            } else if index < tiles.tall {
                tile::<MR>(a, b, from, from_stride, to, stride)
            } else {
                tile::<{ MR - 1 }>(a, b, from, from_stride, to, stride)
            };
            a_panel = a_panel.add(MR * depth);
        }
    }
    // What hangs over the edge goes by way of a buffer, but for two rows, which take less time as a tile of their own.
    let mut edge = [0.0; MR * NR];
    for index in (whole..tiles.count).filter(|&index| tiles.counts(index, column)) {
        let (rows, own) = (tiles.rows(index), tiles.depth(index));
        let a_panel = a_panels[(index * depth + own.start) * MR..].as_ptr();
        let b_panel = &b_panel[own.start * NR..own.end * NR];
        if width == NR && rows.len() == 2 {
            // SAFETY: the panel and the rows are there by the assertions.
            unsafe {
                let to = out.start.add(rows.start * stride + first);
                let (from, from_stride) = onto.rows(to, stride);
                tile::<2>(a_panel, b_panel, from, from_stride, to, stride);
            }
            continue;
        }
        let (nothing, _) = Onto::Nothing.rows(edge.as_ptr(), NR);
        // SAFETY: the panel is there, and the buffer holds a tile.
        unsafe { tile::<MR>(a_panel, b_panel, nothing, 0, edge.as_mut_ptr(), NR) };
        for (row, sums) in rows.zip(edge.chunks_exact(NR)) {
            let (to, mut there) = (&mut out.row(row)[first..][..width], NOTHING);
            match onto {
                Onto::Nothing => {}
                Onto::Row(bias) => there[..width].copy_from_slice(&bias[..width]),
                Onto::Out => there[..width].copy_from_slice(to),
            }
            to.iter_mut().zip(sums).zip(there).for_each(|((to, sum), there)| *to = sum + there);
        }
    }
}

/// One tile: `to[H, 8] = a_panel[depth, first H of MR]ᵀ · b_panel[depth, 8] + from[H, 8]`. Gives where the row below it begins.
///
/// # Safety
/// `a_panel` is as deep as `b_panel`, and the rows of `from` and `to` are there.
#[inline(never)]
unsafe fn tile<const H: usize>(
    a_panel: *const f32,
    b_panel: &[f32],
    from: *const f32,
    from_stride: usize,
    to: *mut f32,
    stride: usize,
) -> *mut f32 {
    let mut sums = [[Lanes::splat(0.0); 2]; H];
    // SAFETY: the caller's.
    unsafe {
        let (mut a, mut b) = (a_panel, b_panel.as_ptr());
        // Not by way of a depth of at least 1: knowing that, LLVM turns the loop round, and V8 runs it half as fast.
        let mut left = b_panel.len() / NR;
        while left != 0 {
            let b_low = Lanes::load(b);
            let b_high = Lanes::load(b.add(4));
            for (row, sum) in sums.iter_mut().enumerate() {
                let a_row = Lanes::splat_from(a.add(row));
                sum[0] = a_row.mul_add(b_low, sum[0]);
                sum[1] = a_row.mul_add(b_high, sum[1]);
            }
            a = a.add(MR);
            b = b.add(NR);
            left -= 1;
        }
        for (row, [low, high]) in sums.into_iter().enumerate() {
            let (to, from) = (to.add(row * stride), from.add(row * from_stride));
            low.add(Lanes::load(from)).store(to);
            high.add(Lanes::load(from.add(4))).store(to.add(4));
        }
        to.add(H * stride)
    }
}

/// The same product, one dot product an element, summed in float64: what the tiles are tested against.
pub fn matmul_reference(a: Matrix, b: Matrix, bias: Option<&[f32]>) -> Vec<f32> {
    let mut out = Vec::with_capacity(a.rows * b.columns);
    for i in 0..a.rows {
        for j in 0..b.columns {
            let dot: f64 = (0..a.columns).map(|p| f64::from(a.at(i, p)) * f64::from(b.at(p, j))).sum();
            out.push((dot + f64::from(bias.map_or(0.0, |bias| bias[j]))) as f32);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers from -1 to 1 (Numerical Recipes' linear congruential generator).
    fn numbers(seed: usize) -> impl FnMut(usize) -> Vec<f32> {
        let mut state = seed as u32;
        move |count| {
            let next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            };
            std::iter::repeat_with(next).take(count).collect()
        }
    }

    fn check(m: usize, k: usize, n: usize, transpose: bool, with_bias: bool, gap: usize) {
        let mut numbers = numbers(m * 10_007 + k * 101 + n);
        let a = numbers(m * (k + gap));
        let b = numbers(k.max(n) * (k.max(n) + gap));
        let bias = numbers(n);
        let bias = with_bias.then_some(&bias[..]);
        let a = Matrix::new(&a, m, k, k + gap);
        let b = if transpose { Matrix::new(&b, n, k, k + gap).transposed() } else { Matrix::new(&b, k, n, n + gap) };
        let mut out = vec![f32::NAN; m * (n + gap)];
        matmul(a, b, bias, &mut out, n + gap);
        for (i, expected) in matmul_reference(a, b, bias).into_iter().enumerate() {
            let ours = out[i / n * (n + gap) + i % n];
            let bound = 4.0 * f32::EPSILON * k as f32 + 1e-6;
            assert!((ours - expected).abs() <= bound, "{m}x{k}x{n} element {i}: {ours} for {expected}");
        }
        for row in out.chunks(n + gap) {
            assert!(row[n..].iter().all(|x| x.is_nan()), "wrote between the rows");
        }
    }

    #[test]
    fn block_borders() {
        for (m, k, n) in [
            (1, 1, 1),
            (2, 300, 24),
            (8, 300, 24),
            (14, 9, 16),
            (6, 256, 8),
            (7, 257, 9),
            (96, 255, 16),
            (97, 513, 17),
            (5, 3, 7),
            (4, 512, 8),
            (193, 64, 33),
        ] {
            for transpose in [false, true] {
                for with_bias in [false, true] {
                    check(m, k, n, transpose, with_bias, 0);
                }
            }
        }
    }

    /// Every part of b: rows that start and end inside blocks, columns from any panel on.
    #[test]
    fn parts() {
        let mut numbers = numbers(5);
        let (k, n) = (300, 21);
        let (a, b) = (numbers(7 * k), numbers(k * n));
        let (packed, mut room) = (Packed::new(Matrix::new(&b, k, n, n)), Room::default());
        for rows in [0..k, 3..10, 250..260, 256..300, 299..300] {
            for columns in [0..n, 8..n, 16..20, 0..3, 8..16] {
                let part = Matrix::new(&a, 7, rows.len(), k);
                let mut out = vec![0.0; 7 * columns.len()];
                let view = MatrixMut::new(&mut out, 7, columns.len(), columns.len());
                matmul_part(part, &packed, rows.clone(), columns.clone(), view, Counting::All, &mut room);
                let b = Matrix::new(&b[rows.start * n + columns.start..], rows.len(), columns.len(), n);
                for (ours, expected) in out.iter().zip(matmul_reference(part, b, None)) {
                    assert!((ours - expected).abs() < 1e-4, "{rows:?} {columns:?}");
                }
            }
        }
    }

    /// What counts is there, to the bit as where all counts, wherever it begins and ends.
    #[test]
    fn only_what_counts() {
        let mut numbers = numbers(7);
        let (m, k, n) = (41, 300, 29);
        let span = |row: usize, most: usize| {
            let end = row * 61 % most;
            end.min((row * 37 % most).saturating_sub(row % 5 * 40))..end
        };
        let union = |rows: Range<usize>, most| {
            let spans = rows.map(|row| span(row, most)).filter(|span| !span.is_empty());
            spans.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0)
        };
        let (mut a, b) = (numbers(m * k), numbers(k * n));
        for (row, a) in a.chunks_exact_mut(k).enumerate() {
            (0..k).filter(|at| !span(row, k).contains(at)).for_each(|at| a[at] = 0.0);
        }
        let (a, packed) = (Matrix::new(&a, m, k, k), Packed::new(Matrix::new(&b, k, n, n)));
        let product = |counting: Counting| {
            let mut out = vec![f32::NAN; m * n];
            let view = MatrixMut::new(&mut out, m, n, n);
            matmul_part(a, &packed, 0..k, 0..n, view, counting, &mut Room::default());
            out
        };
        let whole = product(Counting::All);
        let (of_k, of_n) = (|rows| union(rows, k), |rows| union(rows, n));
        assert_eq!(product(Counting::Depth(&of_k)), whole);
        let columns = product(Counting::Columns(&of_n));
        for (row, (some, all)) in columns.chunks_exact(n).zip(whole.chunks_exact(n)).enumerate() {
            assert_eq!(some[span(row, n)], all[span(row, n)]);
        }
        assert!(columns.iter().any(|x| x.is_nan()), "something was left out");
    }

    /// To the bit what each product by itself gives, whatever is beside it.
    #[test]
    fn several_at_once() {
        for (m, k, widths) in [(1, 1, [1, 2, 3]), (97, 300, [17, 8, 64]), (40, 513, [9, 200, 1])] {
            let mut numbers = numbers(m + k);
            let a = numbers(m * k);
            let a = Matrix::new(&a, m, k, k);
            let right = widths.map(|n| (n, numbers(n), Packed::new(Matrix::new(&numbers(k * n), k, n, n))));
            let mut together = widths.map(|n| vec![f32::NAN; m * n]);
            let products = right
                .iter()
                .zip(&mut together)
                .map(|((n, bias, b), out)| Product::new(b, Some(bias), MatrixMut::new(out, m, *n, *n)));
            matmul_all(a, products.collect(), &mut Room::default());
            for ((n, bias, b), together) in right.iter().zip(together) {
                let mut alone = vec![f32::NAN; m * n];
                matmul_packed(a, b, Some(bias), &mut alone, *n);
                assert!(alone.iter().zip(together).all(|(one, other)| one.to_bits() == other.to_bits()));
            }
        }
    }

    proptest! {
        #[test]
        fn any_shape(m in 1usize..40, k in 1usize..300, n in 1usize..40, transpose: bool, bias: bool, gap in 0usize..3) {
            check(m, k, n, transpose, bias, gap);
        }
    }
}
