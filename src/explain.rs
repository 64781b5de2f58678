//! One cell of one stage as arithmetic, with the numbers that the pass really used.

use crate::config::{Activation, NormKind};
use crate::given::words;
use crate::plain::Plain;
use crate::recipe::{Made, Numbers, Recipe, Step, StepId, shared_head};
use crate::tensor::Tensor;
use crate::trace::Stage;
use attnscope_kernels::layer_norm::moments;
use attnscope_kernels::rms_norm::mean_square;
use attnscope_kernels::rotary::pair_at;

/// How the terms and constants of an [`Explanation`] give its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "snake_case"))]
pub enum Operation {
    /// the value was given
    Given,
    /// Σ product + bias, all times head_mask
    Dot,
    /// the one term's product
    Scale,
    /// cap · tanh(x / cap)
    Softcap,
    /// allowed ? scaled + bias : fill
    Mask,
    /// exp / sum
    Softmax,
    /// Σ product
    Sum,
    /// (x - mean) / sqrt(variance + eps) · weight + bias
    LayerNorm,
    /// x / sqrt(mean_square + eps) · weight
    RmsNorm,
    /// max(0, x)
    Relu,
    /// x Φ(x)
    Gelu,
    /// 0.5 x (1 + tanh(sqrt(2/π) (x + 0.044715 x³)))
    GeluTanh,
    /// x / (1 + exp(-x))
    Silu,
    /// x / (1 + exp(-1.702 x))
    QuickGelu,
}

words!(
    Operation: Given, Dot, Scale, Softcap, Mask, Softmax, Sum, LayerNorm, RmsNorm, Relu, Gelu, GeluTanh, Silu, QuickGelu
);

/// A pair of numbers and what they make together.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Term {
    /// What the term stands for: the index that is summed over, or a stage.
    pub label: String,
    /// The left number.
    pub left: f64,
    /// The right number.
    pub right: f64,
    /// left · right; for softmax exp(left - right).
    pub product: f64,
}

/// How one cell was made.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Explanation {
    /// The stage of the cell.
    pub stage: Stage,
    /// Its block.
    pub layer: usize,
    /// Its place in the stage.
    pub index: Vec<usize>,
    /// The number there.
    pub value: f64,
    /// How terms and constants give the value.
    pub operation: Operation,
    /// The same in symbols; rows i are queries, columns j are keys.
    pub formula: String,
    /// The pairs.
    pub terms: Vec<Term>,
    /// The single numbers, by name.
    #[cfg_attr(feature = "typescript", ts(type = "{ [key in string]: number }"))]
    pub constants: Vec<(&'static str, f64)>,
}

impl From<Term> for Plain {
    fn from(term: Term) -> Self {
        Self::Object(vec![
            ("label", term.label.into()),
            ("left", term.left.into()),
            ("right", term.right.into()),
            ("product", term.product.into()),
        ])
    }
}

impl From<Explanation> for Plain {
    fn from(explanation: Explanation) -> Self {
        let constants = explanation.constants.into_iter().map(|(name, number)| (name, number.into()));
        Self::Object(vec![
            ("stage", explanation.stage.into()),
            ("layer", explanation.layer.into()),
            ("index", explanation.index.into()),
            ("value", explanation.value.into()),
            ("operation", explanation.operation.into()),
            ("formula", explanation.formula.into()),
            ("terms", explanation.terms.into()),
            ("constants", Self::Object(constants.collect())),
        ])
    }
}

pub(crate) fn explain(recipe: &Recipe, numbers: Numbers, step: &Step, index: &[usize]) -> Explanation {
    let step_of = |id: StepId| &recipe.steps()[id];
    let number = |step: &Step, index: &[usize]| f64::from(numbers.from(step.at(index))[0]);
    let name = |id: StepId| step_of(id).stage.name();
    let mut terms: Vec<Term> = Vec::new();
    let mut constants: Vec<(&'static str, f64)> = Vec::new();
    let mut add = |label: &str, left: f64, right: f64| terms.push(term(label, left, right));
    let mut constant = |name: &'static str, number: f64| constants.push((name, number));
    let mut places = [0; 2];

    let (operation, formula, names) = match &step.made {
        Made::Given(_) => (Operation::Given, "T is given", [""; 2]),
        Made::Linear { from, linear } => {
            let source = step_of(*from);
            let (batch, row, feature) = match *index {
                [batch, head, i, c] => (batch, i, head * step.shape[3] + c),
                [batch, i, c] => (batch, i, c),
                _ => unreachable!("a projection has three or four axes"),
            };
            let d_in = source.shape[2];
            for d in 0..d_in {
                let weight = f64::from(linear.weight.data[feature * d_in + d]);
                add(&d.to_string(), number(source, &[batch, row, d]), weight);
            }
            constant("bias", linear.bias.as_ref().map_or(0.0, |bias| f64::from(bias.data[feature])));
            let formula = match linear.bias {
                Some(_) => "T[i, c] = Σ_d A[i, d] · B.weight[c, d] + B.bias[c]",
                None => "T[i, c] = Σ_d A[i, d] · B.weight[c, d]",
            };
            (Operation::Dot, formula, [name(*from), linear.name])
        }
        Made::Dot { query, key } => {
            let names = [name(*query), name(*key)];
            let (query, key) = (step_of(*query), step_of(*key));
            let [batch, head, i, j] = four(index);
            let key_head = shared_head(step, key, head);
            for d in 0..query.shape[3] {
                let (query, key) = (number(query, &[batch, head, i, d]), number(key, &[batch, key_head, j, d]));
                add(&d.to_string(), query, key);
            }
            constant("bias", 0.0);
            (Operation::Dot, "T[i, j] = Σ_d A[i, d] · B[j, d]", names)
        }
        Made::Scaled { from, factor } => {
            add("scale", number(step_of(*from), index), f64::from(*factor));
            (Operation::Scale, "T[i, j] = A[i, j] · scale", [name(*from), ""])
        }
        Made::Softcap { from, cap } => {
            constant("x", number(step_of(*from), index));
            constant("cap", f64::from(*cap));
            (Operation::Softcap, "T[i, j] = cap · tanh(A[i, j] / cap)", [name(*from), ""])
        }
        Made::Masked { from, mask, fill } => {
            let [batch, head, i, j] = four(index);
            let cell = mask.as_ref().map(|mask| mask.matrix(batch, head) + i * step.shape[3] + j);
            let (allowed, bias) = match (mask, cell) {
                (Some(mask), Some(cell)) => {
                    (mask.allowed[cell], mask.bias.as_ref().map_or(0.0, |bias| f64::from(bias[cell])))
                }
                _ => (1, 0.0),
            };
            constant("scaled", number(step_of(*from), index));
            constant("allowed", f64::from(allowed));
            constant("bias", bias);
            constant("fill", f64::from(*fill));
            (Operation::Mask, "T[i, j] = allowed[i, j] ? A[i, j] + bias[i, j] : fill", [name(*from), ""])
        }
        Made::Softmax { from, zero_empty_rows } => {
            let source = step_of(*from);
            let [batch, head, i, j] = four(index);
            let x = |j: usize| number(source, &[batch, head, i, j]);
            let max = (0..step.shape[3]).map(x).fold(f64::NEG_INFINITY, f64::max);
            let gives_zero = *zero_empty_rows && max == f64::NEG_INFINITY;
            for j in 0..step.shape[3] {
                let product = if gives_zero { 0.0 } else { libm::exp(x(j) - max) };
                terms.push(Term { label: j.to_string(), left: x(j), right: max, product });
            }
            constant("max", max);
            constant("sum", terms.iter().map(|term| term.product).sum());
            constant("exp", terms[j].product);
            let formula = if gives_zero {
                "T[i, j] = 0: no key is allowed"
            } else {
                "T[i, j] = exp(A[i, j] - max) / Σ_j exp(...)"
            };
            (Operation::Softmax, formula, [name(*from), ""])
        }
        Made::Context { weights, value, head_mask } => {
            let names = [name(*weights), name(*value)];
            let (weights, value) = (step_of(*weights), step_of(*value));
            let [batch, head, i, c] = four(index);
            let value_head = shared_head(step, value, head);
            for j in 0..weights.shape[3] {
                let (weight, value) =
                    (number(weights, &[batch, head, i, j]), number(value, &[batch, value_head, j, c]));
                add(&j.to_string(), weight, value);
            }
            constant("bias", 0.0);
            let mut formula = "T[i, c] = Σ_j A[i, j] · B[j, c]";
            if let Some(factors) = head_mask {
                constant("head_mask", f64::from(factors[head]));
                formula = "T[i, c] = Σ_j A[i, j] · B[j, c] · head_mask";
            }
            (Operation::Dot, formula, names)
        }
        Made::HandedOut | Made::Attended { .. } => unreachable!("a pass that keeps its stages makes them one by one"),
        Made::Same { from } => {
            let source = step_of(*from);
            let (at, formula) = match (&source.shape[..], index) {
                (&[_, _, _, width], &[batch, i, c]) => {
                    places[0] = width;
                    (vec![batch, c / width, i, c % width], "T[i, c] = A[c / M][i, c % M]")
                }
                _ => (index.to_vec(), "T = A of the layer before"),
            };
            add(name(*from), number(source, &at), 1.0);
            (Operation::Sum, formula, [name(*from), ""])
        }
        Made::Sum { left, right } => {
            for id in [*left, *right] {
                add(name(id), number(step_of(id), index), 1.0);
            }
            (Operation::Sum, "T[i, c] = A[i, c] + B[i, c]", [name(*left), name(*right)])
        }
        Made::Norm { from, norm } => {
            let source = step_of(*from);
            let c = index[index.len() - 1];
            let mut start = index.to_vec();
            start[index.len() - 1] = 0;
            let row = &numbers.from(source.at(&start))[..source.shape[source.shape.len() - 1]];
            constant("x", number(source, index));
            constant("eps", f64::from(norm.eps));
            constant("weight", f64::from(norm.weight.data[c]));
            let (operation, formula) = match norm.kind {
                NormKind::Layer => {
                    let (mean, variance) = moments(row);
                    constant("mean", mean);
                    constant("variance", variance);
                    constant("bias", norm.bias.as_ref().map_or(0.0, |bias| f64::from(bias.data[c])));
                    let formula = match norm.bias {
                        Some(_) => "T[i, c] = (A[i, c] - mean) / sqrt(variance + eps) · weight[c] + bias[c]",
                        None => "T[i, c] = (A[i, c] - mean) / sqrt(variance + eps) · weight[c]",
                    };
                    (Operation::LayerNorm, formula)
                }
                NormKind::Rms => {
                    constant("mean_square", mean_square(row));
                    (Operation::RmsNorm, "T[i, c] = A[i, c] / sqrt(mean_square + eps) · weight[c]")
                }
            };
            (operation, formula, [name(*from), ""])
        }
        Made::Product { left, right } => {
            add(name(*right), number(step_of(*left), index), number(step_of(*right), index));
            (Operation::Scale, "T[i, c] = A[i, c] · B[i, c]", [name(*left), name(*right)])
        }
        Made::Dropped { from, factors } => {
            let factor = factors[step.at(index) - step.offset];
            add("dropout", number(step_of(*from), index), f64::from(factor));
            (Operation::Scale, "T = A · (0 or 1 / (1 - p))", [name(*from), ""])
        }
        Made::Joined { before, from, after } => {
            let [batch, head, row, c] = four(index);
            let mut start = 0;
            let mut found = None;
            for id in before.iter().chain([from]) {
                let part = step_of(*id);
                if found.is_none() && row < start + part.shape[2] {
                    found = Some((name(*id), number(part, &[batch, head, row - start, c]), row - start));
                }
                start += part.shape[2];
            }
            let (label, value, at) = found.unwrap_or_else(|| {
                let added = after.as_ref().map_or(0.0, |after| {
                    let [_, more, width] = after.shape[..] else { unreachable!("added rows are cut into heads") };
                    f64::from(after.data[(head * more + row - start) * width + c])
                });
                ("added", added, row - start)
            });
            add(label, value, 1.0);
            places = [row, at];
            (Operation::Sum, "T[M, c] = A[N, c]", [label, ""])
        }
        Made::Rotated { from, rotation } => {
            let source = step_of(*from);
            let [batch, head, i, c] = four(index);
            let pairs = rotation.cos.width();
            let member = (0..pairs).find_map(|pair| {
                let places = pair_at(pair, pairs, rotation.interleaved);
                places.iter().position(|&place| place == c).map(|side| (pair, places[1 - side], side))
            });
            let formula = match member {
                None => {
                    add(name(*from), number(source, index), 1.0);
                    "T[i, c] = A[i, c]"
                }
                Some((at, other, side)) => {
                    let angle = |angles: &Tensor| f64::from(angles.data[i * pairs + at]);
                    let (sin, formula) = match side {
                        0 => (-angle(&rotation.sin), "T[i, M] = A[i, M] · cos - A[i, N] · sin"),
                        _ => (angle(&rotation.sin), "T[i, M] = A[i, M] · cos + A[i, N] · sin"),
                    };
                    add("cos", number(source, index), angle(&rotation.cos));
                    add("sin", number(source, &[batch, head, i, other]), sin);
                    places = [c, other];
                    formula
                }
            };
            (Operation::Sum, formula, [name(*from), ""])
        }
        Made::Positioned { from, table } => {
            let [_, i, c] = *index else { unreachable!("an input has three axes") };
            add(name(*from), number(step_of(*from), index), 1.0);
            add("position", f64::from(table.data[i * table.width() + c]), 1.0);
            (Operation::Sum, "T[i, c] = A[i, c] + position[i, c]", [name(*from), ""])
        }
        Made::Activated { from, activation } => {
            let (operation, formula) = match activation {
                Activation::Relu => (Operation::Relu, "T[i, c] = max(0, x), x = A[i, c]"),
                Activation::Gelu => (Operation::Gelu, "T[i, c] = x · Φ(x), x = A[i, c]"),
                Activation::GeluTanh => {
                    let formula = "T[i, c] = x/2 · (1 + tanh(sqrt(2/π) · (x + 0.044715 x³))), x = A[i, c]";
                    (Operation::GeluTanh, formula)
                }
                Activation::Silu => (Operation::Silu, "T[i, c] = x / (1 + exp(-x)), x = A[i, c]"),
                Activation::QuickGelu => (Operation::QuickGelu, "T[i, c] = x / (1 + exp(-1.702 x)), x = A[i, c]"),
            };
            constant("x", number(step_of(*from), index));
            (operation, formula, [name(*from), ""])
        }
    };
    Explanation {
        stage: step.stage,
        layer: step.layer,
        index: index.to_vec(),
        value: number(step, index),
        operation,
        formula: filled(formula, [step.stage.name(), names[0], names[1]], places),
        terms,
        constants,
    }
}

fn term(label: &str, left: f64, right: f64) -> Term {
    Term { label: label.into(), left, right, product: left * right }
}

/// A formula with the names of the stage and of those that it is made from for `T`, `A` and `B`, and with places for `M` and `N`.
fn filled(formula: &str, [to, a, b]: [&str; 3], [m, n]: [usize; 2]) -> String {
    let mut filled = String::new();
    for letter in formula.chars() {
        match letter {
            'T' => filled.push_str(to),
            'A' => filled.push_str(a),
            'B' => filled.push_str(b),
            'M' => filled.push_str(&m.to_string()),
            'N' => filled.push_str(&n.to_string()),
            _ => filled.push(letter),
        }
    }
    filled
}

fn four(index: &[usize]) -> [usize; 4] {
    let &[batch, head, i, c] = index else { unreachable!("a stage of the heads has four axes") };
    [batch, head, i, c]
}
