//! What PyTorch drew after `torch.manual_seed`, against what [`Generator`] draws: every value, bit for bit.
//!
//! The golden data are made by `tests/golden/generate_rng.py`.

use std::collections::{BTreeMap, BTreeSet};

use attnscope::torch::{EmptyRange, Generator, Linear};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use sha2::{Digest, Sha256};

const OPS: [&str; 18] = [
    "mt19937",
    "rand",
    "rand64",
    "randn",
    "randn_cached",
    "randn64",
    "randint",
    "randperm",
    "linear",
    "embedding",
    "normal",
    "xavier_uniform",
    "MultiheadAttention",
    "TransformerEncoderLayer",
    "seedA_MultiHeadAttention",
    "seedA_TransformerBlock",
    "notebook_A",
    "dropout_mt",
];

const SKIPPED: [(&str, &str); 2] = [
    ("trunc_normal", "needs PyTorch's erfinv, which the generator does not offer"),
    ("dropout_mkl", "the stream of PyTorch before 2.7 on x86-64, which the generator does not offer"),
];

/// A tensor as its little-endian bytes.
struct Drawn {
    dtype: Dtype,
    bytes: Vec<u8>,
}

impl From<Vec<f32>> for Drawn {
    fn from(values: Vec<f32>) -> Self {
        Self { dtype: Dtype::F32, bytes: values.into_iter().flat_map(f32::to_le_bytes).collect() }
    }
}

impl From<Vec<f64>> for Drawn {
    fn from(values: Vec<f64>) -> Self {
        Self { dtype: Dtype::F64, bytes: values.into_iter().flat_map(f64::to_le_bytes).collect() }
    }
}

impl From<Vec<i64>> for Drawn {
    fn from(values: Vec<i64>) -> Self {
        Self { dtype: Dtype::I64, bytes: values.into_iter().flat_map(i64::to_le_bytes).collect() }
    }
}

type StateDict = BTreeMap<String, Drawn>;

fn one(name: &str, values: impl Into<Drawn>) -> StateDict {
    BTreeMap::from([(name.to_owned(), values.into())])
}

fn linear(name: &str, Linear { weight, bias }: Linear) -> StateDict {
    let mut parameters = one(&format!("{name}.weight"), weight);
    parameters.extend(bias.map(|bias| (format!("{name}.bias"), bias.into())));
    parameters
}

fn layer_norm(name: &str, size: usize) -> StateDict {
    linear(name, Linear { weight: vec![1.0; size], bias: Some(vec![0.0; size]) })
}

fn within(prefix: &str, parameters: StateDict) -> StateDict {
    parameters.into_iter().map(|(name, drawn)| (format!("{prefix}.{name}"), drawn)).collect()
}

/// The parameters of `torch.nn.MultiheadAttention`, whose output projection is drawn first and whose biases are zeroed.
fn torch_multihead_attention(generator: &mut Generator, embed_dim: usize, options: &Value) -> StateDict {
    let bias = options["bias"].as_bool().unwrap_or(true);
    let mut out_proj = generator.linear(embed_dim, embed_dim, bias);
    if let Some(bias) = &mut out_proj.bias {
        bias.fill(0.0);
    }
    let mut parameters = linear("out_proj", out_proj);

    let source_dim = |name| options[name].as_u64().map_or(embed_dim, |dim| dim as usize);
    let (k_dim, v_dim) = (source_dim("kdim"), source_dim("vdim"));
    if (k_dim, v_dim) == (embed_dim, embed_dim) {
        parameters.extend(one("in_proj_weight", generator.xavier_uniform(3 * embed_dim, embed_dim)));
    } else {
        for (name, cols) in [("q_proj_weight", embed_dim), ("k_proj_weight", k_dim), ("v_proj_weight", v_dim)] {
            parameters.extend(one(name, generator.xavier_uniform(embed_dim, cols)));
        }
    }
    if bias {
        parameters.extend(one("in_proj_bias", vec![0.0_f32; 3 * embed_dim]));
    }
    if options["add_bias_kv"].as_bool().unwrap_or(false) {
        for name in ["bias_k", "bias_v"] {
            parameters.extend(one(name, generator.xavier_normal(embed_dim, embed_dim, embed_dim)));
        }
    }
    parameters
}

/// Multi-head attention of four `nn.Linear`, as teaching code writes it.
fn four_linears(generator: &mut Generator, d_model: usize) -> StateDict {
    ["query_linear", "key_linear", "value_linear", "out_linear"]
        .into_iter()
        .flat_map(|name| linear(name, generator.linear(d_model, d_model, true)))
        .collect()
}

/// What a case draws; `None` for an operation this test does not know.
fn draw(case: &Value) -> Option<StateDict> {
    let count = |name: &str| case[name].as_u64().unwrap_or_else(|| panic!("{name} of {case}")) as usize;
    let number = |name: &str| case[name].as_f64().unwrap_or_else(|| panic!("{name} of {case}"));
    let integer = |name: &str| case[name].as_i64().unwrap_or_else(|| panic!("{name} of {case}"));
    let mut generator = Generator::new(integer("seed"));
    let g = &mut generator;
    Some(match case["op"].as_str()? {
        "mt19937" => one("u32", (0..1300).map(|_| i64::from(g.u32())).collect::<Vec<_>>()),
        "rand" => one("y", g.rand(count("n"))),
        "rand64" => one("y", g.rand64(count("n"))),
        "randn" => one("y", g.randn(count("n"))),
        "randn64" => one("y", g.randn64(count("n"))),
        "randn_cached" => {
            let (a, b, c, d) = (g.randn(3), g.randn(20), g.randn(2), g.rand(2));
            [("a", a), ("b", b), ("c", c), ("d", d)].into_iter().flat_map(|(name, values)| one(name, values)).collect()
        }
        "randint" => one("y", g.randint(integer("lo"), integer("hi"), count("n")).expect("lo < hi")),
        "randperm" => one("y", g.randperm(count("n"))),
        "linear" => {
            let Linear { weight, bias } = g.linear(count("in_features"), count("out_features"), true);
            [("weight", weight), ("bias", bias?)].into_iter().flat_map(|(name, values)| one(name, values)).collect()
        }
        "embedding" => {
            let padding_idx = case["padding_idx"].as_u64().map(|row| row as usize);
            one("weight", g.embedding(count("rows"), count("cols"), padding_idx))
        }
        "normal" => one("y", g.normal(count("n"), number("mean"), number("std"))),
        "xavier_uniform" => one("y", g.xavier_uniform(12, 20)),
        "MultiheadAttention" => torch_multihead_attention(g, count("embed_dim"), &case["kw"]),
        "TransformerEncoderLayer" => {
            let mut layer = within("self_attn", torch_multihead_attention(g, 16, &Value::Null));
            layer.extend(linear("linear1", g.linear(16, 32, true)));
            layer.extend(linear("linear2", g.linear(32, 16, true)));
            layer.extend(layer_norm("norm1", 16));
            layer.extend(layer_norm("norm2", 16));
            layer
        }
        "seedA_MultiHeadAttention" => four_linears(g, 16),
        "seedA_TransformerBlock" => {
            let mut block = within("attention", four_linears(g, 16));
            block.extend(layer_norm("norm1", 16));
            block.extend(linear("linear1", g.linear(16, 64, true)));
            block.extend(linear("linear2", g.linear(64, 16, true)));
            block.extend(layer_norm("norm2", 16));
            block
        }
        "notebook_A" => {
            let mut drawn = one("x", g.randn(2 * 5 * 16));
            drawn.extend(four_linears(g, 16));
            drawn
        }
        "dropout_mt" => {
            let x: Vec<f32> = (1_u8..=30).map(f32::from).collect();
            one("y", g.dropout(&x, number("p")))
        }
        _ => return None,
    })
}

/// A large tensor is known by its hash, a small one is stored whole.
fn check(drawn: &Drawn, expected: &Value, stored: &SafeTensors, place: &str) {
    if let Some(key) = expected["key"].as_str() {
        let tensor = stored.tensor(key).unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(drawn.dtype, tensor.dtype(), "{place}");
        assert!(drawn.bytes == tensor.data(), "{place}: not the same bits");
    } else {
        let hash: String = Sha256::digest(&drawn.bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, expected["sha256"], "{place}: not the same bits");
    }
}

#[test]
fn golden_draws_are_reproduced_bit_for_bit() {
    let description: Value = serde_json::from_str(include_str!("golden/rng.json")).expect("rng.json");
    let stored = SafeTensors::deserialize(include_bytes!("golden/rng.safetensors")).expect("rng.safetensors");
    let mut checked: BTreeMap<&str, usize> = OPS.map(|op| (op, 0)).into();
    let mut skipped: BTreeMap<&str, usize> = BTreeMap::new();

    for case in description["cases"].as_array().expect("cases") {
        let op = case["op"].as_str().expect("op");
        if SKIPPED.iter().any(|(name, _)| *name == op) {
            *skipped.entry(op).or_default() += 1;
            continue;
        }
        let drawn = draw(case).unwrap_or_else(|| panic!("unknown operation {op}"));
        let expected = case["tensors"].as_object().expect("tensors");
        assert_eq!(
            drawn.keys().collect::<BTreeSet<_>>(),
            expected.keys().collect::<BTreeSet<_>>(),
            "tensors of {}",
            case["code"]
        );
        for (name, drawn) in &drawn {
            check(drawn, &expected[name], &stored, &format!("seed {}, {}, {name}", case["seed"], case["code"]));
        }
        *checked.get_mut(op).unwrap_or_else(|| panic!("{op} is not among the operations to check")) += 1;
    }

    for (op, cases) in &checked {
        println!("checked {cases:3} {op}");
        assert!(*cases > 0, "no case of {op}");
    }
    for (op, reason) in SKIPPED {
        println!("skipped {:3} {op}: {reason}", skipped.get(op).copied().unwrap_or(0));
    }
}

#[test]
fn sizes_of_zero_draw_nothing() {
    let mut generator = Generator::new(0);
    assert!(generator.rand(0).is_empty());
    assert!(generator.uniform(0, -1.0, 1.0).is_empty());
    assert!(generator.randn(0).is_empty());
    assert!(generator.randperm(0).is_empty());
    assert!(generator.embedding(0, 4, Some(0)).is_empty());
    assert!(generator.embedding(4, 0, Some(3)).is_empty());
    assert!(generator.xavier_uniform(0, 0).is_empty());
    assert!(generator.xavier_normal(0, 0, 0).is_empty());
    assert!(generator.dropout(&[], 0.5).is_empty());
    assert_eq!(generator.linear(3, 0, true), Linear { weight: vec![], bias: Some(vec![]) });
    assert_eq!(generator.rand(5), Generator::new(0).rand(5));
}

#[test]
fn a_linear_without_inputs_has_a_bias_of_zero() {
    let Linear { weight, bias } = Generator::new(0).linear(0, 2, true);
    assert!(weight.is_empty());
    assert_eq!(bias.expect("bias").into_iter().map(f32::to_bits).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn only_the_low_32_bits_of_the_seed_count() {
    assert_eq!(Generator::new(-1).u32(), Generator::new(0xffff_ffff).u32());
    assert_eq!(Generator::new((7 << 32) | 42).u32(), Generator::new(42).u32());
}

#[test]
fn a_padding_row_past_the_end_is_no_row() {
    assert_eq!(Generator::new(0).embedding(5, 4, Some(5)), Generator::new(0).randn(20));
}

#[test]
fn randint_takes_any_range_that_holds_an_integer() {
    let mut generator = Generator::new(0);
    assert_eq!(generator.randint(3, 3, 1), Err(EmptyRange { low: 3, high: 3 }));
    assert_eq!(generator.randint(i64::MAX, i64::MIN, 1), Err(EmptyRange { low: i64::MAX, high: i64::MIN }));
    assert_eq!(generator.randint(-5, -4, 3), Ok(vec![-5; 3]));
    let widest = generator.randint(i64::MIN, i64::MAX, 100).expect("not empty");
    assert!(widest.iter().any(|value| *value < 0) && widest.iter().any(|value| *value > 0));
}

#[test]
fn dropout_of_nothing_or_everything_draws_nothing() {
    let mut generator = Generator::new(0);
    assert_eq!(generator.dropout(&[1.0, -2.0], 0.0), [1.0, -2.0]);
    let dropped = generator.dropout(&[1.0, -2.0, f32::NAN], 1.0);
    assert_eq!(dropped[..2], [0.0, 0.0]);
    assert!(dropped[2].is_nan());
    assert_eq!(generator.u32(), Generator::new(0).u32());
}
