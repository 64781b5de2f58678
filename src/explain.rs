//! One cell of one stage as arithmetic, with the numbers that the pass really used.

use crate::config::{Activation, NormKind};
use crate::given::words;
use crate::plain::Plain;
use crate::recipe::{Made, Numbers, Recipe, Step, StepId, shared_head};
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
}

words!(
    Operation: Given, Dot, Scale, Softcap, Mask, Softmax, Sum, LayerNorm, RmsNorm, Relu, Gelu, GeluTanh, Silu
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
    let to = step.stage.name();
    let mut terms: Vec<Term> = Vec::new();
    let mut constants: Vec<(&'static str, f64)> = Vec::new();

    let (operation, formula) = match &step.made {
        Made::Given(_) => (Operation::Given, format!("{to} is given")),
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
                terms.push(pair(d, number(source, &[batch, row, d]), weight));
            }
            let bias = linear.bias.as_ref().map_or(0.0, |bias| f64::from(bias.data[feature]));
            let plus = if linear.bias.is_some() { format!(" + {}.bias[c]", linear.name) } else { String::new() };
            constants.push(("bias", bias));
            (Operation::Dot, format!("{to}[i, c] = Σ_d {}[i, d] · {}.weight[c, d]{plus}", name(*from), linear.name))
        }
        Made::Dot { query, key } => {
            let (query, key) = (step_of(*query), step_of(*key));
            let [batch, head, i, j] = four(index);
            let key_head = shared_head(step, key, head);
            for d in 0..query.shape[3] {
                terms.push(pair(d, number(query, &[batch, head, i, d]), number(key, &[batch, key_head, j, d])));
            }
            constants.push(("bias", 0.0));
            (Operation::Dot, format!("{to}[i, j] = Σ_d {}[i, d] · {}[j, d]", query.stage.name(), key.stage.name()))
        }
        Made::Scaled { from, factor } => {
            terms.push(term("scale", number(step_of(*from), index), f64::from(*factor)));
            (Operation::Scale, format!("{to}[i, j] = {}[i, j] · scale", name(*from)))
        }
        Made::Softcap { from, cap } => {
            constants.extend_from_slice(&[("x", number(step_of(*from), index)), ("cap", f64::from(*cap))]);
            (Operation::Softcap, format!("{to}[i, j] = cap · tanh({}[i, j] / cap)", name(*from)))
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
            constants.extend_from_slice(&[
                ("scaled", number(step_of(*from), index)),
                ("allowed", f64::from(allowed)),
                ("bias", bias),
                ("fill", f64::from(*fill)),
            ]);
            (Operation::Mask, format!("{to}[i, j] = allowed[i, j] ? {}[i, j] + bias[i, j] : fill", name(*from)))
        }
        Made::Softmax { from, .. } => {
            let source = step_of(*from);
            let [batch, head, i, j] = four(index);
            let x = |j: usize| number(source, &[batch, head, i, j]);
            let max = (0..step.shape[3]).map(x).fold(f64::NEG_INFINITY, f64::max);
            for j in 0..step.shape[3] {
                terms.push(Term { label: j.to_string(), left: x(j), right: max, product: (x(j) - max).exp() });
            }
            let sum = terms.iter().map(|term| term.product).sum();
            constants.extend_from_slice(&[("max", max), ("sum", sum), ("exp", terms[j].product)]);
            (Operation::Softmax, format!("{to}[i, j] = exp({}[i, j] - max) / Σ_j exp(...)", name(*from)))
        }
        Made::Context { weights, value, head_mask } => {
            let (weights, value) = (step_of(*weights), step_of(*value));
            let [batch, head, i, c] = four(index);
            let value_head = shared_head(step, value, head);
            for j in 0..weights.shape[3] {
                terms.push(pair(j, number(weights, &[batch, head, i, j]), number(value, &[batch, value_head, j, c])));
            }
            constants.push(("bias", 0.0));
            let mut times = "";
            if let Some(factors) = head_mask {
                constants.push(("head_mask", f64::from(factors[head])));
                times = " · head_mask";
            }
            let formula =
                format!("{to}[i, c] = Σ_j {}[i, j] · {}[j, c]{times}", weights.stage.name(), value.stage.name());
            (Operation::Dot, formula)
        }
        Made::Attended { .. } => unreachable!("a pass that keeps its stages makes them one by one"),
        Made::Same { from } => {
            let source = step_of(*from);
            let (at, formula) = match (&source.shape[..], index) {
                (&[_, _, _, width], &[batch, i, c]) => (
                    vec![batch, c / width, i, c % width],
                    format!("{to}[i, c] = {}[c / {width}][i, c % {width}]", name(*from)),
                ),
                _ => (index.to_vec(), format!("{to} = {} of the layer before", name(*from))),
            };
            terms.push(single(name(*from), number(source, &at)));
            (Operation::Sum, formula)
        }
        Made::Sum { left, right } => {
            for id in [*left, *right] {
                terms.push(single(name(id), number(step_of(id), index)));
            }
            (Operation::Sum, format!("{to}[i, c] = {}[i, c] + {}[i, c]", name(*left), name(*right)))
        }
        Made::Norm { from, norm } => {
            let source = step_of(*from);
            let c = index[index.len() - 1];
            let mut start = index.to_vec();
            start[index.len() - 1] = 0;
            let row = &numbers.from(source.at(&start))[..source.shape[source.shape.len() - 1]];
            constants.extend_from_slice(&[
                ("x", number(source, index)),
                ("eps", f64::from(norm.eps)),
                ("weight", f64::from(norm.weight.data[c])),
            ]);
            let name = name(*from);
            match norm.kind {
                NormKind::Layer => {
                    let (mean, variance) = moments(row);
                    let bias = norm.bias.as_ref().map_or(0.0, |bias| f64::from(bias.data[c]));
                    constants.extend_from_slice(&[("mean", mean), ("variance", variance), ("bias", bias)]);
                    let plus = if norm.bias.is_some() { " + bias[c]" } else { "" };
                    let formula =
                        format!("{to}[i, c] = ({name}[i, c] - mean) / sqrt(variance + eps) · weight[c]{plus}");
                    (Operation::LayerNorm, formula)
                }
                NormKind::Rms => {
                    constants.push(("mean_square", mean_square(row)));
                    (Operation::RmsNorm, format!("{to}[i, c] = {name}[i, c] / sqrt(mean_square + eps) · weight[c]"))
                }
            }
        }
        Made::Product { left, right } => {
            terms.push(term(name(*right), number(step_of(*left), index), number(step_of(*right), index)));
            (Operation::Scale, format!("{to}[i, c] = {}[i, c] · {}[i, c]", name(*left), name(*right)))
        }
        Made::Dropped { from, factors } => {
            let source = step_of(*from);
            let factor = factors[step.at(index) - step.offset];
            terms.push(term("dropout", number(source, index), f64::from(factor)));
            (Operation::Scale, format!("{to} = {} · (0 or 1 / (1 - p))", name(*from)))
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
            terms.push(single(label, value));
            (Operation::Sum, format!("{to}[{row}, c] = {label}[{at}, c]"))
        }
        Made::Rotated { from, rotation } => {
            let source = step_of(*from);
            let [batch, head, i, c] = four(index);
            let pairs = rotation.cos.width();
            let member = (0..pairs).find_map(|pair| {
                let places = pair_at(pair, pairs, rotation.interleaved);
                places.iter().position(|&place| place == c).map(|side| (pair, places, side))
            });
            match member {
                None => {
                    terms.push(single(name(*from), number(source, index)));
                    (Operation::Sum, format!("{to}[i, c] = {}[i, c]", name(*from)))
                }
                Some((at, places, side)) => {
                    let [cos, sin] =
                        [&rotation.cos, &rotation.sin].map(|angles| f64::from(angles.data[i * pairs + at]));
                    let other = places[1 - side];
                    let sign = if side == 0 { -1.0 } else { 1.0 };
                    terms.push(term("cos", number(source, index), cos));
                    terms.push(term("sin", number(source, &[batch, head, i, other]), sign * sin));
                    let from = name(*from);
                    let sign = if side == 0 { "-" } else { "+" };
                    let formula = format!("{to}[i, {c}] = {from}[i, {c}] · cos {sign} {from}[i, {other}] · sin");
                    (Operation::Sum, formula)
                }
            }
        }
        Made::Positioned { from, table } => {
            let [_, i, c] = *index else { unreachable!("an input has three axes") };
            let position = f64::from(table.data[i * table.width() + c]);
            terms.push(single(name(*from), number(step_of(*from), index)));
            terms.push(single("position", position));
            (Operation::Sum, format!("{to}[i, c] = {}[i, c] + position[i, c]", name(*from)))
        }
        Made::Activated { from, activation } => {
            let (operation, function) = match activation {
                Activation::Relu => (Operation::Relu, "max(0, x)"),
                Activation::Gelu => (Operation::Gelu, "x · Φ(x)"),
                Activation::GeluTanh => (Operation::GeluTanh, "x/2 · (1 + tanh(sqrt(2/π) · (x + 0.044715 x³)))"),
                Activation::Silu => (Operation::Silu, "x / (1 + exp(-x))"),
            };
            constants.push(("x", number(step_of(*from), index)));
            (operation, format!("{to}[i, c] = {function}, x = {}[i, c]", name(*from)))
        }
    };
    Explanation {
        stage: step.stage,
        layer: step.layer,
        index: index.to_vec(),
        value: number(step, index),
        operation,
        formula,
        terms,
        constants,
    }
}

fn term(label: &str, left: f64, right: f64) -> Term {
    Term { label: label.into(), left, right, product: left * right }
}

fn pair(label: usize, left: f64, right: f64) -> Term {
    term(&label.to_string(), left, right)
}

fn single(label: &str, value: f64) -> Term {
    term(label, value, 1.0)
}

fn four(index: &[usize]) -> [usize; 4] {
    let &[batch, head, i, c] = index else { unreachable!("a stage of the heads has four axes") };
    [batch, head, i, c]
}
