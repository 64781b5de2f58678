//! `rten_gemm`, with weights that were packed before.

use baseline::{Product, View};
use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_tensor::{Matrix, NdTensorView};

struct Rten;

thread_local! {
    static EXECUTOR: GemmExecutor = GemmExecutor::new();
}

fn matrix<'a>(View { data, shape, strides }: View<'a>) -> Matrix<'a, f32> {
    let len = (shape[0] - 1) * strides[0] + (shape[1] - 1) * strides[1] + 1;
    NdTensorView::from_data_with_strides(shape, &data[..len], strides).expect("a view lies within its data")
}

fn multiply(left: View, right: GemmInputB<f32>, out: &mut [f32]) {
    let left = GemmInputA::Unpacked(matrix(left));
    EXECUTOR.with(|executor| executor.gemm(out, left, right, GemmOptions::default())).expect("the shapes fit");
}

impl Product for Rten {
    type Held = PackedBMatrix<f32>;

    fn hold(right: View) -> Self::Held {
        EXECUTOR.with(|executor| executor.prepack_b(matrix(right)))
    }

    fn multiply_held(left: View, right: &Self::Held, out: &mut [f32]) {
        multiply(left, GemmInputB::Packed(right), out);
    }

    fn multiply(left: View, right: View, out: &mut [f32]) {
        multiply(left, GemmInputB::Unpacked(matrix(right)), out);
    }
}

baseline::exports!(Rten);
