//! `attnscope_kernels::matmul`, with weights that were packed before.

use attnscope_kernels::matmul::{Packed, matmul, matmul_packed};
use attnscope_kernels::matrix::Matrix;
use baseline::{Product, View};

struct Attnscope;

fn matrix(View { data, shape: [rows, columns], strides: [row, column] }: View) -> Matrix {
    if column == 1 {
        Matrix::new(data, rows, columns, row)
    } else {
        assert!(row == 1, "rows or columns lie together");
        Matrix::new(data, columns, rows, column).transposed()
    }
}

impl Product for Attnscope {
    type Held = Packed;

    fn hold(right: View) -> Self::Held {
        Packed::new(matrix(right))
    }

    fn multiply_held(left: View, right: &Self::Held, out: &mut [f32]) {
        matmul_packed(matrix(left), right, None, out, right.columns());
    }

    fn multiply(left: View, right: View, out: &mut [f32]) {
        matmul(matrix(left), matrix(right), None, out, right.shape[1]);
    }
}

baseline::exports!(Attnscope);
