//! `gemm::gemm`.

use baseline::{Product, View};
use gemm::{Parallelism, gemm};

struct Gemm;

/// A matrix by itself, row after row.
struct Own {
    data: Vec<f32>,
    shape: [usize; 2],
}

impl Product for Gemm {
    type Held = Own;

    fn hold(View { data, shape: [rows, columns], strides: [row, column] }: View) -> Self::Held {
        let data = (0..rows).flat_map(|r| (0..columns).map(move |c| data[r * row + c * column])).collect();
        Own { data, shape: [rows, columns] }
    }

    fn multiply_held(left: View, Own { data, shape }: &Self::Held, out: &mut [f32]) {
        Self::multiply(left, View { data, shape: *shape, strides: [shape[1], 1] }, out);
    }

    fn multiply(left: View, right: View, out: &mut [f32]) {
        let ([m, k], [depth, n]) = (left.shape, right.shape);
        let last = |View { shape, strides, .. }: View| (shape[0] - 1) * strides[0] + (shape[1] - 1) * strides[1];
        assert!(k == depth && m * n == out.len(), "the shapes fit");
        assert!(last(left) < left.data.len() && last(right) < right.data.len(), "a view lies within its data");
        let [[left_row, left_column], [right_row, right_column]] =
            [left, right].map(|view| view.strides.map(usize::cast_signed));
        // SAFETY: both views lie within their data, and out has room for the product.
        unsafe {
            gemm(
                m,
                n,
                k,
                out.as_mut_ptr(),
                1,
                n.cast_signed(),
                false,
                left.data.as_ptr(),
                left_column,
                left_row,
                right.data.as_ptr(),
                right_column,
                right_row,
                0.0,
                1.0,
                false,
                false,
                false,
                Parallelism::None,
            );
        }
    }
}

baseline::exports!(Gemm);
