//! What a module learns: projections and norms, their names, and how they begin.

use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use crate::config::NormKind;
use crate::outline::largest;
use crate::tensor::Tensor;
use crate::torch::Generator;
use attnscope_kernels::matmul::Packed;
use attnscope_kernels::matrix::Matrix;

/// What a module learns, and what is known of it as long as nobody puts another in its place.
#[derive(Debug)]
pub(crate) struct Parameter {
    tensor: Tensor,
    id: u32,
    packed: OnceLock<Packed>,
    largest: OnceLock<f32>,
}

impl Parameter {
    pub fn new(tensor: Tensor) -> Arc<Self> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let id = LAST.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { tensor, id, packed: OnceLock::new(), largest: OnceLock::new() })
    }

    /// A number that no other parameter has had.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// A matrix's transpose in the order of the tiles, made at the first pass.
    pub fn packed(&self) -> &Packed {
        self.packed.get_or_init(|| {
            let (rows, columns) = (self.shape[0], self.shape[1]);
            Packed::new(Matrix::new(&self.data, rows, columns, columns).transposed())
        })
    }

    /// The largest magnitude.
    pub fn largest(&self) -> f32 {
        *self.largest.get_or_init(|| largest(&self.data))
    }
}

impl Deref for Parameter {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.tensor
    }
}

/// A module's own parameters by name, to be read or replaced.
pub(crate) type Parameters<'a> = Vec<(String, &'a mut Arc<Parameter>)>;

/// A weight `[out_features, in_features]` and a bias `[out_features]`, under the name they have in a state dict.
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    pub name: &'static str,
    pub weight: Arc<Parameter>,
    pub bias: Option<Arc<Parameter>>,
}

impl Linear {
    pub fn new(name: &'static str, weight: Tensor, bias: Option<Vec<f32>>) -> Self {
        let bias = bias.map(|bias| Parameter::new(Tensor { shape: vec![weight.shape[0]], data: bias }));
        Self { name, weight: Parameter::new(weight), bias }
    }

    pub fn parameters(&mut self) -> Parameters<'_> {
        weight_and_bias(self.name, &mut self.weight, &mut self.bias)
    }
}

fn weight_and_bias<'a>(
    name: &str,
    weight: &'a mut Arc<Parameter>,
    bias: &'a mut Option<Arc<Parameter>>,
) -> Parameters<'a> {
    let bias = bias.as_mut().map(|bias| (format!("{name}.bias"), bias));
    [(format!("{name}.weight"), weight)].into_iter().chain(bias).collect()
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
    pub weight: Arc<Parameter>,
    pub bias: Option<Arc<Parameter>>,
    pub eps: f32,
}

impl Norm {
    /// Weights of 1, biases of 0.
    pub fn new(kind: NormKind, width: usize, bias: bool, eps: f32) -> Self {
        let filled = |with| Parameter::new(Tensor { shape: vec![width], data: vec![with; width] });
        let bias = (bias && kind == NormKind::Layer).then(|| filled(0.0));
        Self { kind, weight: filled(1.0), bias, eps }
    }

    pub fn parameters(&mut self, name: &str) -> Parameters<'_> {
        weight_and_bias(name, &mut self.weight, &mut self.bias)
    }
}
