//! out = a · b (+ bias), for strided views, in packed panels and register tiles.
//!
//! The scheme is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): `b` is packed
//! into panels of 8 columns, a block of `a` into panels of 4 rows, both so that the inner loop reads them front to back, and
//! one 4 x 8 tile of `out` stays in registers. 4 x 8 by measurement: a browser's compiler has 15 vector registers to give, and
//! multiply and add need one for the product beside the accumulators; a 6 x 8 tile spills and runs at two thirds of the speed.

use super::lanes::Lanes;

const MR: usize = 4;
const NR: usize = 8;
/// Depth of a block: a panel of `b` (8 kB) stays in the first-level cache.
const KC: usize = 256;
/// Rows of a block of `a`: 96 kB, which stays in the second-level cache.
const MC: usize = 96;

/// A matrix seen through strides: element (row, column) lies at `row * row_stride + column * column_stride`.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// A view of `rows` rows, `row_stride` apart, of `columns` numbers each.
    ///
    /// # Panics
    /// Where the view reaches past the data.
    pub fn new(data: &'a [f32], rows: usize, columns: usize, row_stride: usize) -> Self {
        assert!((rows - 1) * row_stride + columns <= data.len(), "a matrix view reaches past its data");
        Self { data, rows, columns, row_stride, column_stride: 1 }
    }

    /// The same numbers with rows and columns exchanged; nothing moves.
    pub fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }

    fn at(&self, row: usize, column: usize) -> f32 {
        self.data[row * self.row_stride + column * self.column_stride]
    }
}

/// `out[m, n] = a[m, k] · b[k, n] + bias[n]`; row `i` of `out` starts at `i * out_stride`.
///
/// # Panics
/// Where the shapes do not fit each other.
pub fn matmul(a: Matrix, b: Matrix, bias: Option<&[f32]>, out: &mut [f32], out_stride: usize) {
    let (m, k, n) = (a.rows, a.columns, b.columns);
    assert_eq!(b.rows, k, "inner sizes differ");
    assert!(n <= out_stride || m == 1);
    assert!((m - 1) * out_stride + n <= out.len(), "the product reaches past its output");

    // 1. The bias is what the tiles add to.
    if let Some(bias) = bias {
        for i in 0..m {
            out[i * out_stride..][..n].copy_from_slice(&bias[..n]);
        }
    }

    let depth = KC.min(k);
    let mut b_panels = vec![0.0; n.div_ceil(NR) * NR * depth];
    let mut a_panels = vec![0.0; MC.min(m.div_ceil(MR) * MR) * depth];
    let mut edge = [0.0; MR * NR];
    for k0 in (0..k).step_by(KC) {
        let kc = KC.min(k - k0);
        let accumulate = k0 > 0 || bias.is_some();

        // 2. Pack kc rows of b.                                    [n / 8][kc][8]
        pack::<NR>(b.transposed(), 0, n, k0, kc, &mut b_panels);
        for m0 in (0..m).step_by(MC) {
            let mc = MC.min(m - m0);

            // 3. Pack mc rows of a.                                [mc / 4][kc][4]
            pack::<MR>(a, m0, mc, k0, kc, &mut a_panels);

            // 4. Tile by tile; a tile that hangs over the edge goes by way of a buffer.
            for j in (0..n).step_by(NR) {
                let b_panel = &b_panels[j * kc..][..NR * kc];
                for i in (0..mc).step_by(MR) {
                    let a_panel = &a_panels[i * kc..][..MR * kc];
                    let corner = (m0 + i) * out_stride + j;
                    let (rows, columns) = (MR.min(mc - i), NR.min(n - j));
                    if rows == MR && columns == NR {
                        tile(kc, a_panel, b_panel, &mut out[corner..], out_stride, accumulate);
                        continue;
                    }
                    tile(kc, a_panel, b_panel, &mut edge, NR, false);
                    for row in 0..rows {
                        let to = &mut out[corner + row * out_stride..][..columns];
                        for (to, &from) in to.iter_mut().zip(&edge[row * NR..]) {
                            *to = if accumulate { *to + from } else { from };
                        }
                    }
                }
            }
        }
    }
}

/// Rows `row0..row0 + rows` and columns `k0..k0 + kc` of `from`, as panels of `P` rows, each column of a panel together;
/// the last panel is filled up with zeros.
fn pack<const P: usize>(from: Matrix, row0: usize, rows: usize, k0: usize, kc: usize, panels: &mut [f32]) {
    for (panel, row) in panels.chunks_exact_mut(P * kc).zip((0..rows).step_by(P)) {
        let start = (row0 + row) * from.row_stride + k0 * from.column_stride;
        let height = P.min(rows - row);
        if height < P {
            panel.fill(0.0);
        }
        if height == P && from.row_stride == 1 {
            for (p, column) in panel.chunks_exact_mut(P).enumerate() {
                column.copy_from_slice(&from.data[start + p * from.column_stride..][..P]);
            }
        } else if height == P && from.column_stride == 1 {
            let lines: [&[f32]; P] = std::array::from_fn(|r| &from.data[start + r * from.row_stride..][..kc]);
            for (p, column) in panel.chunks_exact_mut(P).enumerate() {
                for (to, line) in column.iter_mut().zip(&lines) {
                    *to = line[p];
                }
            }
        } else {
            for (p, column) in panel.chunks_exact_mut(P).enumerate() {
                for (r, to) in column[..height].iter_mut().enumerate() {
                    *to = from.at(row0 + row + r, k0 + p);
                }
            }
        }
    }
}

/// One tile: `out[4, 8] (+)= a_panel[kc, 4]ᵀ · b_panel[kc, 8]`.
#[inline(never)]
fn tile(kc: usize, a_panel: &[f32], b_panel: &[f32], out: &mut [f32], out_stride: usize, accumulate: bool) {
    assert!(a_panel.len() >= MR * kc && b_panel.len() >= NR * kc && out.len() >= (MR - 1) * out_stride + NR);
    let mut sums = [[Lanes::splat(0.0); 2]; MR];
    // SAFETY: the assertion above bounds every address that the loops below form.
    unsafe {
        let (mut a, mut b) = (a_panel.as_ptr(), b_panel.as_ptr());
        let mut left = kc;
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
        for (row, sum) in sums.into_iter().enumerate() {
            let to = out.as_mut_ptr().add(row * out_stride);
            for (half, sum) in sum.into_iter().enumerate() {
                let to = to.add(4 * half);
                let sum = if accumulate { sum.add(Lanes::load(to)) } else { sum };
                sum.store(to);
            }
        }
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
    use crate::torch::Generator;
    use proptest::prelude::*;

    fn check(m: usize, k: usize, n: usize, transpose: bool, with_bias: bool, gap: usize) {
        let mut generator = Generator::new((m * 10_007 + k * 101 + n) as i64);
        let a = generator.uniform(m * (k + gap), -1.0, 1.0);
        let b = generator.uniform(k.max(n) * (k.max(n) + gap), -1.0, 1.0);
        let bias = generator.uniform(n, -1.0, 1.0);
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
        for (m, k, n) in
            [(1, 1, 1), (6, 256, 8), (7, 257, 9), (96, 255, 16), (97, 513, 17), (5, 3, 7), (4, 512, 8), (193, 64, 33)]
        {
            for transpose in [false, true] {
                for with_bias in [false, true] {
                    check(m, k, n, transpose, with_bias, 0);
                }
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
