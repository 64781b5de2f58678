//! ndarray's `dot` (the `matrixmultiply` crate), behind the smallest boundary there is.

use std::cell::RefCell;

use ndarray::{Array2, linalg::general_mat_mul};

struct Product {
    left: Array2<f32>,
    right: Array2<f32>,
    out: Array2<f32>,
}

thread_local! {
    static PRODUCT: RefCell<Option<Product>> = const { RefCell::new(None) };
}

fn with<R>(read: impl FnOnce(&mut Product) -> R) -> R {
    PRODUCT.with_borrow_mut(|product| read(product.as_mut().expect("prepare comes first")))
}

/// Makes room for `left [m, k]`, `right [k, n]` and `out [m, n]`, all zero.
#[unsafe(no_mangle)]
pub extern "C" fn prepare(m: usize, k: usize, n: usize) {
    PRODUCT.set(Some(Product {
        left: Array2::zeros((m, k)),
        right: Array2::zeros((k, n)),
        out: Array2::zeros((m, n)),
    }));
}

/// Where the caller writes `left`.
#[unsafe(no_mangle)]
pub extern "C" fn left() -> *mut f32 {
    with(|product| product.left.as_mut_ptr())
}

/// Where the caller writes `right`.
#[unsafe(no_mangle)]
pub extern "C" fn right() -> *mut f32 {
    with(|product| product.right.as_mut_ptr())
}

/// `out = left · right`; gives the product's last number.
#[unsafe(no_mangle)]
pub extern "C" fn run() -> f32 {
    with(|Product { left, right, out }| {
        general_mat_mul(1.0, left, right, 0.0, out);
        *out.last().expect("sizes are positive")
    })
}
