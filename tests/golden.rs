//! The cases of `golden/golden.json` that follow the two posts this project started from, against float64 values of PyTorch.

use std::collections::{BTreeMap, HashMap};

use attnscope::{
    ForwardOptions, Mask, MaskAxes, MultiHeadAttention, MultiHeadAttentionOptions, Result, ScaledDotProductOptions,
    Tensor, Trace, Transformer, TransformerOptions, scaled_dot_product_attention, torch::Generator,
};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

const MAX_BYTES: usize = 1 << 30;

struct Golden {
    manifest: Value,
    bytes: Vec<u8>,
}

impl Golden {
    fn read() -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/");
        let manifest = std::fs::read_to_string(format!("{folder}golden.json")).unwrap();
        let bytes = std::fs::read(format!("{folder}golden.safetensors")).unwrap();
        Self { manifest: serde_json::from_str(&manifest).unwrap(), bytes }
    }

    fn run(&self, group: &str, pass: impl Fn(&Case) -> Result<Vec<(String, Tensor)>>) -> usize {
        let tensors = SafeTensors::deserialize(&self.bytes).unwrap();
        let mut checked = 0;
        for case in self.manifest["cases"].as_array().unwrap() {
            let config = &case["config"];
            let as_post = config["trap"].is_null() && config["as_written"].is_null() && config["mode"] != "train";
            if case["group"] != group || !as_post || !case["raises"].is_null() {
                continue;
            }
            let case = Case { json: case, tensors: &tensors };
            let id = case.json["id"].as_str().unwrap();
            let ours: HashMap<_, _> = pass(&case).unwrap_or_else(|error| panic!("{id}: {error}")).into_iter().collect();
            for (name, key) in case.json["expected64"].as_object().unwrap() {
                let expected = tensors.tensor(key.as_str().unwrap()).unwrap();
                assert_eq!(expected.dtype(), Dtype::F64);
                let ours = ours.get(name).unwrap_or_else(|| panic!("{id}: no {name}"));
                assert_eq!(ours.shape, expected.shape(), "{id}: {name}");
                let bound = (8.0 * case.json["err"][name].as_f64().unwrap()).max(2e-6);
                for (i, (ours, expected)) in ours.data.iter().zip(expected.data().as_chunks().0).enumerate() {
                    let expected = f64::from_le_bytes(*expected);
                    let error = (f64::from(*ours) - expected).abs();
                    assert!(error <= bound * (1.0 + expected.abs()), "{id}: {name}[{i}] {ours} for {expected}");
                }
            }
            checked += 1;
        }
        println!("{group}: {checked} cases");
        checked
    }
}

struct Case<'a> {
    json: &'a Value,
    tensors: &'a SafeTensors<'a>,
}

impl Case<'_> {
    fn size(&self, name: &str) -> usize {
        self.json["config"][name].as_u64().unwrap_or_else(|| panic!("no {name}")) as usize
    }

    fn input(&self, name: &str) -> Tensor {
        self.tensor(&self.json["inputs"][name])
    }

    fn tensor(&self, key: &Value) -> Tensor {
        let view = self.tensors.tensor(key.as_str().unwrap()).unwrap();
        assert_eq!(view.dtype(), Dtype::F32);
        let data = view.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        Tensor::new(data, view.shape().to_vec()).unwrap()
    }

    /// The shape of a mask and its cells as bytes.
    fn mask(&self, name: &str) -> Option<(Vec<usize>, Vec<u8>)> {
        let view = self.tensors.tensor(self.json["inputs"][name].as_str()?).unwrap();
        let data = match view.dtype() {
            Dtype::U8 => view.data().to_vec(),
            Dtype::I64 => view.data().as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes) as u8).collect(),
            other => panic!("a mask of {other:?}"),
        };
        Some((view.shape().to_vec(), data))
    }

    fn state_dict(&self) -> Vec<(String, Tensor)> {
        let params: BTreeMap<_, _> = self.json["params"].as_object().unwrap().iter().collect();
        params.into_iter().map(|(name, key)| (name.clone(), self.tensor(key))).collect()
    }
}

fn options() -> ForwardOptions {
    ForwardOptions { trace: true, ..ForwardOptions::default() }
}

fn weights(trace: &Trace, layer: usize) -> Result<Tensor> {
    Ok(trace.weights(layer)?.expect("weights were asked for"))
}

#[test]
fn seed_a_multi_head_attention() {
    let checked = Golden::read().run("seedA_mha", |case| {
        let sizes = MultiHeadAttentionOptions::new(case.size("d_model"), case.size("n_heads"));
        let mut mha = MultiHeadAttention::new(sizes, &mut Generator::new(0))?;
        mha.load_state_dict(case.state_dict())?;
        let mask = case.mask("mask").map(|(shape, data)| Mask::Keep { shape, data, axes: Some(MaskAxes::Batch) });
        let trace = mha.forward(&case.input("x"), None, None, mask.as_ref(), &options(), MAX_BYTES)?;
        Ok(vec![("output".into(), trace.output()), ("weights".into(), weights(&trace, 0)?)])
    });
    assert!(checked >= 15);
}

#[test]
fn seed_a_block_and_stack() {
    let checked = Golden::read().run("seedA_block", |case| {
        let n_layers = case.size("n_blocks");
        let sizes = TransformerOptions {
            n_layers: Some(n_layers),
            ..TransformerOptions::new(case.size("d_model"), case.size("n_heads"))
        };
        let mut stack = Transformer::new(sizes, &mut Generator::new(0))?;
        stack.load_state_dict(case.state_dict())?;
        let mask = case.mask("mask").map(|(shape, data)| Mask::Keep { shape, data, axes: Some(MaskAxes::Batch) });
        let trace = stack.forward(&case.input("x"), mask.as_ref(), &options(), MAX_BYTES)?;
        let mut ours = Vec::new();
        for layer in 0..n_layers {
            ours.push((format!("weights.{layer}"), weights(&trace, layer)?));
            ours.push((format!("output.{layer}"), trace.stage(attnscope::Stage::Norm2, layer)?));
        }
        assert_eq!(ours[ours.len() - 1].1, trace.output());
        Ok(ours)
    });
    assert!(checked >= 5);
}

#[test]
fn seed_b_scaled_dot_product_attention() {
    let checked = Golden::read().run("seedB_sdpa", |case| {
        let mask = case.mask("attn_mask").map(|(shape, data)| Mask::Masked { shape, data, axes: None });
        let [q, k, v] = ["Q", "K", "V"].map(|name| case.input(name));
        let options = ScaledDotProductOptions::default();
        let trace = scaled_dot_product_attention(&q, &k, &v, mask.as_ref(), &options, MAX_BYTES)?;
        Ok(vec![("context".into(), trace.output()), ("attn".into(), weights(&trace, 0)?)])
    });
    assert!(checked >= 6);
}

#[test]
fn seed_b_multi_head_attention() {
    let checked = Golden::read().run("seedB_mha", |case| {
        let sizes = MultiHeadAttentionOptions {
            d_k: Some(case.size("d_k")),
            d_v: Some(case.size("d_v")),
            residual_norm: true,
            ..MultiHeadAttentionOptions::new(case.size("d_model"), case.size("n_heads"))
        };
        let mut mha = MultiHeadAttention::new(sizes, &mut Generator::new(0))?;
        mha.load_state_dict(case.state_dict())?;
        let mask =
            case.mask("attn_mask").map(|(shape, data)| Mask::Masked { shape, data, axes: Some(MaskAxes::Batch) });
        let [q, k, v] = ["Q", "K", "V"].map(|name| case.input(name));
        let trace = mha.forward(&q, Some(&k), Some(&v), mask.as_ref(), &options(), MAX_BYTES)?;
        Ok(vec![
            ("output".into(), trace.output()),
            ("attn".into(), weights(&trace, 0)?),
            ("context".into(), trace.stage(attnscope::Stage::Concat, 0)?),
        ])
    });
    assert!(checked >= 9);
}

/// What the posts let through in silence is refused: a d_model that the heads do not divide.
#[test]
fn heads_that_do_not_divide_are_refused() {
    let error = MultiHeadAttention::new(MultiHeadAttentionOptions::new(10, 4), &mut Generator::new(0)).unwrap_err();
    assert_eq!(error.code().as_str(), "not_divisible");
    assert!(error.to_string().contains("10") && error.to_string().contains('4'));
}
