//! ndarray's `general_mat_mul`.

use baseline::{Product, View};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, ShapeBuilder, linalg::general_mat_mul};

struct Ndarray;

fn matrix<'a>(View { data, shape, strides }: View<'a>) -> ArrayView2<'a, f32> {
    ArrayView2::from_shape(shape.strides(strides), data).expect("a view lies within its data")
}

fn multiply(left: View, right: ArrayView2<f32>, out: &mut [f32]) {
    let shape = (left.shape[0], right.ncols());
    let mut out = ArrayViewMut2::from_shape(shape, out).expect("out has the product's size");
    general_mat_mul(1.0, &matrix(left), &right, 0.0, &mut out);
}

impl Product for Ndarray {
    type Held = Array2<f32>;

    fn hold(right: View) -> Self::Held {
        matrix(right).to_owned()
    }

    fn multiply_held(left: View, right: &Self::Held, out: &mut [f32]) {
        multiply(left, right.view(), out);
    }

    fn multiply(left: View, right: View, out: &mut [f32]) {
        multiply(left, matrix(right), out);
    }
}

baseline::exports!(Ndarray);
