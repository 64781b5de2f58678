//! What a module learns: projections and norms, their names, and how they begin.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use crate::config::NormKind;
use crate::outline::largest;
use crate::tensor::Tensor;
use crate::torch::Generator;
use attnscope_kernels::matmul::Packed;
use attnscope_kernels::matrix::Matrix;

/// A module's own parameters by name, to be read or replaced.
pub(crate) type Parameters<'a> = Vec<(String, &'a mut Arc<Tensor>)>;

/// A weight `[out_features, in_features]` and a bias `[out_features]`, under the name they have in a state dict.
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    pub name: &'static str,
    pub weight: Arc<Tensor>,
    pub bias: Option<Arc<Tensor>>,
    packed: Arc<OnceLock<Packed>>,
    known: Arc<Known>,
}

/// What is known of a weight as long as nobody replaces it.
#[derive(Debug)]
struct Known {
    id: u32,
    largest: OnceLock<f32>,
}

impl Known {
    fn new() -> Arc<Self> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        Arc::new(Self { id: LAST.fetch_add(1, Ordering::Relaxed), largest: OnceLock::new() })
    }
}

impl Linear {
    pub fn new(name: &'static str, weight: Tensor, bias: Option<Vec<f32>>) -> Self {
        let bias = bias.map(|bias| Arc::new(Tensor { shape: vec![weight.shape[0]], data: bias }));
        Self { name, weight: Arc::new(weight), bias, packed: Arc::default(), known: Known::new() }
    }

    /// The weight's transpose in the order of the tiles, made at the first pass.
    pub fn packed(&self) -> &Packed {
        self.packed.get_or_init(|| {
            let (rows, columns) = (self.weight.shape[0], self.weight.shape[1]);
            Packed::new(Matrix::new(&self.weight.data, rows, columns, columns).transposed())
        })
    }

    /// A number that no other weight has had.
    pub fn id(&self) -> u32 {
        self.known.id
    }

    /// The weight's largest magnitude.
    pub fn largest(&self) -> f32 {
        *self.known.largest.get_or_init(|| largest(&self.weight.data))
    }

    /// Who gets them may replace them.
    pub fn parameters(&mut self) -> Parameters<'_> {
        self.packed = Arc::default();
        self.known = Known::new();
        let bias = self.bias.as_mut().map(|bias| (format!("{}.bias", self.name), bias));
        [(format!("{}.weight", self.name), &mut self.weight)].into_iter().chain(bias).collect()
    }
}

/// As `torch.nn.Linear` begins.
pub(crate) fn draw_linear(
    generator: &mut Generator,
    name: &'static str,
    d_in: usize,
    d_out: usize,
    bias: bool,
) -> Linear {
    let drawn = generator.linear(d_in, d_out, bias);
    Linear::new(name, Tensor { shape: vec![d_out, d_in], data: drawn.weight }, drawn.bias)
}

/// The parameters of a norm, each of the width that it normalises; RMSNorm has no bias.
#[derive(Debug, Clone)]
pub(crate) struct Norm {
    pub kind: NormKind,
    pub weight: Arc<Tensor>,
    pub bias: Option<Arc<Tensor>>,
    pub eps: f32,
}

impl Norm {
    /// Weights of 1, biases of 0.
    pub fn new(kind: NormKind, width: usize, bias: bool, eps: f32) -> Self {
        let filled = |with| Arc::new(Tensor { shape: vec![width], data: vec![with; width] });
        let bias = (bias && kind == NormKind::Layer).then(|| filled(0.0));
        Self { kind, weight: filled(1.0), bias, eps }
    }

    pub fn parameters(&mut self, name: &str) -> Parameters<'_> {
        let bias = self.bias.as_mut().map(|bias| (format!("{name}.bias"), bias));
        [(format!("{name}.weight"), &mut self.weight)].into_iter().chain(bias).collect()
    }
}
