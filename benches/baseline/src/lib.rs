//! Attention and a matrix product, written once for any crate that multiplies matrices, behind the smallest boundary there
//! is: the caller writes the inputs, prepares a job, runs it any number of times and reads the results where they lie. A job
//! lives as long as its instance.

use std::cell::RefCell;

use attnscope_kernels::softmax::softmax_row;

/// A matrix seen through its strides; a transposed one has the row stride 1.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The first number and those after it.
    pub data: &'a [f32],
    /// Rows and columns.
    pub shape: [usize; 2],
    /// How far apart rows lie, and columns.
    pub strides: [usize; 2],
}

/// A crate's product of matrices.
pub trait Product: 'static {
    /// A right-hand matrix in the form that the crate likes best for one used again and again.
    type Held;
    /// Brings a matrix into that form.
    fn hold(right: View) -> Self::Held;
    /// `out = left · right`, row after row.
    fn multiply_held(left: View, right: &Self::Held, out: &mut [f32]);
    /// `out = left · right`, row after row.
    fn multiply(left: View, right: View, out: &mut [f32]);
}

trait Job {
    fn run(&mut self);
    fn results(&self) -> [&[f32]; 2];
}

thread_local! {
    static INPUTS: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
    static JOB: RefCell<Option<Box<dyn Job>>> = const { RefCell::new(None) };
}

/// Room for the next input of `len` numbers.
#[unsafe(no_mangle)]
pub extern "C" fn input(len: usize) -> *mut f32 {
    let mut numbers = vec![0.0; len];
    // Moving the vector does not move its numbers.
    let at = numbers.as_mut_ptr();
    INPUTS.with_borrow_mut(|inputs| inputs.push(numbers));
    at
}

/// Runs the job that was prepared.
#[unsafe(no_mangle)]
pub extern "C" fn run() {
    JOB.with_borrow_mut(|job| job.as_mut().expect("a job is prepared first").run());
}

/// Where a result of the last run lies: the product, or attention's output and weights.
#[unsafe(no_mangle)]
pub extern "C" fn result(index: usize) -> *const f32 {
    JOB.with_borrow(|job| job.as_ref().expect("a job is prepared first").results()[index].as_ptr())
}

fn take<const N: usize>() -> [Vec<f32>; N] {
    INPUTS.take().try_into().expect("every input is written first")
}

fn rows(data: &[f32], rows: usize, columns: usize) -> View<'_> {
    View { data, shape: [rows, columns], strides: [columns, 1] }
}

fn transposed(View { data, shape: [rows, columns], strides: [row, column] }: View) -> View {
    View { data, shape: [columns, rows], strides: [column, row] }
}

struct Multiplication<P: Product> {
    left: Vec<f32>,
    right: P::Held,
    shape: [usize; 2],
    out: Vec<f32>,
}

/// `[m, k] · [k, n]`, of the inputs left and right.
pub fn prepare_product<P: Product>(m: usize, k: usize, n: usize) {
    let [left, right] = take();
    let right = P::hold(rows(&right, k, n));
    JOB.set(Some(Box::new(Multiplication::<P> { left, right, shape: [m, k], out: vec![0.0; m * n] })));
}

impl<P: Product> Job for Multiplication<P> {
    fn run(&mut self) {
        let [m, k] = self.shape;
        P::multiply_held(rows(&self.left, m, k), &self.right, &mut self.out);
    }

    fn results(&self) -> [&[f32]; 2] {
        [&self.out, &[]]
    }
}

/// A projection with its bias.
struct Linear<P: Product> {
    weight: P::Held,
    bias: Vec<f32>,
}

impl<P: Product> Linear<P> {
    fn new(weight: &[f32], bias: Vec<f32>) -> Self {
        let width = bias.len();
        Self { weight: P::hold(transposed(rows(weight, width, weight.len() / width))), bias }
    }

    fn apply(&self, x: View, out: &mut [f32]) {
        P::multiply_held(x, &self.weight, out);
        for row in out.chunks_exact_mut(self.bias.len()) {
            row.iter_mut().zip(&self.bias).for_each(|(out, bias)| *out += bias);
        }
    }
}

struct Attention<P: Product> {
    n: usize,
    d_model: usize,
    n_heads: usize,
    is_causal: bool,
    x: Vec<f32>,
    inward: Linear<P>,
    outward: Linear<P>,
    /// Query, key and value side by side, `[n, 3 · d_model]`.
    projected: Vec<f32>,
    weights: Vec<f32>,
    head: Vec<f32>,
    merged: Vec<f32>,
    output: Vec<f32>,
}

/// Multi-head attention to itself, of the inputs x, in-projection's weight and bias, out-projection's weight and bias.
pub fn prepare_attention<P: Product>(n: usize, d_model: usize, n_heads: usize, is_causal: bool) {
    let [x, mut in_weight, mut in_bias, out_weight, out_bias] = take();
    // The scale of the scores is a part of the query's projection, so that no pass multiplies by it.
    let scale = ((d_model / n_heads) as f32).sqrt().recip();
    in_weight[..d_model * d_model].iter_mut().chain(&mut in_bias[..d_model]).for_each(|w| *w *= scale);
    JOB.set(Some(Box::new(Attention::<P> {
        n,
        d_model,
        n_heads,
        is_causal,
        x,
        inward: Linear::new(&in_weight, in_bias),
        outward: Linear::new(&out_weight, out_bias),
        projected: vec![0.0; n * 3 * d_model],
        weights: vec![0.0; n_heads * n * n],
        head: vec![0.0; n * d_model / n_heads],
        merged: vec![0.0; n * d_model],
        output: vec![0.0; n * d_model],
    })));
}

impl<P: Product> Job for Attention<P> {
    fn run(&mut self) {
        let (n, d_model, width) = (self.n, self.d_model, self.d_model / self.n_heads);
        self.inward.apply(rows(&self.x, n, d_model), &mut self.projected);
        for (head, weights) in self.weights.chunks_exact_mut(n * n).enumerate() {
            let [query, key, value] = [0, 1, 2].map(|part| View {
                data: &self.projected[part * d_model + head * width..],
                shape: [n, width],
                strides: [3 * d_model, 1],
            });
            P::multiply(query, transposed(key), weights);
            for (i, row) in weights.chunks_exact_mut(n).enumerate() {
                let (allowed, hidden) = row.split_at_mut(if self.is_causal { i + 1 } else { n });
                softmax_row(allowed);
                hidden.fill(0.0);
            }
            P::multiply(rows(weights, n, n), value, &mut self.head);
            for (row, merged) in self.head.chunks_exact(width).zip(self.merged.chunks_exact_mut(d_model)) {
                merged[head * width..][..width].copy_from_slice(row);
            }
        }
        self.outward.apply(rows(&self.merged, n, d_model), &mut self.output);
    }

    fn results(&self) -> [&[f32]; 2] {
        [&self.output, &self.weights]
    }
}

/// What a crate's module exports beside `input`, `run` and `result`.
#[macro_export]
macro_rules! exports {
    ($product:ty) => {
        #[unsafe(no_mangle)]
        extern "C" fn prepare_product(m: usize, k: usize, n: usize) {
            $crate::prepare_product::<$product>(m, k, n);
        }

        #[unsafe(no_mangle)]
        extern "C" fn prepare_attention(n: usize, d_model: usize, n_heads: usize, is_causal: bool) {
            $crate::prepare_attention::<$product>(n, d_model, n_heads, is_causal);
        }
    };
}
