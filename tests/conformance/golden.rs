//! Reads the golden files and compares.

use std::collections::BTreeMap;

use attnscope::{Mask, MaskAxes, Result, Tensor};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

/// A manifest and its tensors.
pub struct Golden {
    pub manifest: Value,
    bytes: Vec<u8>,
}

/// One case of a manifest.
pub struct Case<'a> {
    pub json: &'a Value,
    pub tensors: SafeTensors<'a>,
}

/// What a case computes, by the names that its expectation has.
pub type Computed = Vec<(String, Tensor)>;

impl Golden {
    pub fn read(name: &str) -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/");
        let manifest = std::fs::read_to_string(format!("{folder}{name}.json")).unwrap();
        let bytes = std::fs::read(format!("{folder}{name}.safetensors")).unwrap();
        Self { manifest: serde_json::from_str(&manifest).unwrap(), bytes }
    }

    pub fn tensors(&self) -> SafeTensors<'_> {
        SafeTensors::deserialize(&self.bytes).unwrap()
    }

    pub fn case<'a>(&'a self, json: &'a Value) -> Case<'a> {
        Case { json, tensors: self.tensors() }
    }

    /// Computes every case of a group that PyTorch computes, compares, and gives their number.
    pub fn run(&self, group: &str, pass: impl Fn(&Case) -> Result<Computed>) -> usize {
        let cases = self.manifest["cases"].as_array().unwrap();
        let cases: Vec<_> = cases.iter().filter(|case| case["group"] == group && case["raises"].is_null()).collect();
        for json in &cases {
            let case = self.case(json);
            let ours = pass(&case).unwrap_or_else(|error| panic!("{}: {error}", case.id()));
            for (name, key) in json["expected64"].as_object().unwrap() {
                let found = ours.iter().find(|(found, _)| found == name);
                let (_, found) = found.unwrap_or_else(|| panic!("{}: no {name}", case.id()));
                let bound = (8.0 * json["err"][name].as_f64().unwrap()).max(2e-6);
                let float32 = numbers(&case.tensors, json["expected"][name].as_str().unwrap());
                let expected = numbers(&case.tensors, key.as_str().unwrap());
                compare(&format!("{} {name}", case.id()), found, &expected, &float32.1, bound);
            }
        }
        println!("{group}: {} cases", cases.len());
        cases.len()
    }
}

impl<'a> Case<'a> {
    pub fn id(&self) -> &str {
        self.json["id"].as_str().unwrap()
    }

    pub fn config(&self, name: &str) -> &Value {
        &self.json["config"][name]
    }

    pub fn size(&self, name: &str) -> usize {
        self.config(name).as_u64().unwrap_or_else(|| panic!("{}: no {name}", self.id())) as usize
    }

    /// An input by name, where the case has it.
    pub fn input(&self, name: &str) -> Option<Tensor> {
        Some(tensor(&self.tensors, self.json["inputs"][name].as_str()?))
    }

    pub fn needed(&self, name: &str) -> Tensor {
        self.input(name).unwrap_or_else(|| panic!("{}: no {name}", self.id()))
    }

    /// A mask's matrix: of booleans or whole numbers what `of_bool` makes of them, of floats what is added.
    pub fn mask(
        &self,
        name: &str,
        axes: Option<MaskAxes>,
        of_bool: fn(Vec<usize>, Vec<u8>, Option<MaskAxes>) -> Mask,
    ) -> Option<Mask> {
        let key = self.json["inputs"][name].as_str()?;
        let (shape, numbers) = numbers(&self.tensors, key);
        Some(match self.tensors.tensor(key).unwrap().dtype() {
            Dtype::F32 => additive(shape, &numbers, axes),
            _ => of_bool(shape, numbers.iter().map(|&number| u8::from(number != 0.0)).collect(), axes),
        })
    }

    pub fn state_dict(&self) -> Vec<(String, Tensor)> {
        let params: BTreeMap<_, _> = self.json["params"].as_object().unwrap().iter().collect();
        params.into_iter().map(|(name, key)| (name.clone(), tensor(&self.tensors, key.as_str().unwrap()))).collect()
    }
}

pub fn keep(shape: Vec<usize>, data: Vec<u8>, axes: Option<MaskAxes>) -> Mask {
    Mask::Keep { shape, data, axes }
}

pub fn masked(shape: Vec<usize>, data: Vec<u8>, axes: Option<MaskAxes>) -> Mask {
    Mask::Masked { shape, data, axes }
}

pub fn additive(shape: Vec<usize>, numbers: &[f64], axes: Option<MaskAxes>) -> Mask {
    let data = numbers.iter().flat_map(|&number| (number as f32).to_le_bytes()).collect();
    Mask::Additive { shape, data, axes }
}

pub fn and(left: Option<Mask>, right: Option<Mask>) -> Option<Mask> {
    match (left, right) {
        (Some(left), Some(right)) => Some(Mask::And { left: Box::new(left), right: Box::new(right) }),
        (left, right) => left.or(right),
    }
}

pub fn reshaped(tensor: Tensor, shape: &[usize]) -> Tensor {
    Tensor::new(tensor.data, shape.to_vec()).unwrap()
}

pub fn tensor(tensors: &SafeTensors, key: &str) -> Tensor {
    let (shape, numbers) = numbers(tensors, key);
    Tensor::new(numbers.into_iter().map(|number| number as f32).collect(), shape).unwrap()
}

/// A tensor of any type as float64.
pub fn numbers(tensors: &SafeTensors, key: &str) -> (Vec<usize>, Vec<f64>) {
    let view = tensors.tensor(key).unwrap_or_else(|error| panic!("{key}: {error}"));
    let bytes = view.data();
    let numbers = match view.dtype() {
        Dtype::F32 => bytes.as_chunks().0.iter().map(|&bytes| f64::from(f32::from_le_bytes(bytes))).collect(),
        Dtype::F64 => bytes.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect(),
        Dtype::I64 => bytes.as_chunks().0.iter().map(|&bytes| i64::from_le_bytes(bytes) as f64).collect(),
        Dtype::U8 => bytes.iter().map(|&byte| f64::from(byte)).collect(),
        other => panic!("{key} of {other:?}"),
    };
    (view.shape().to_vec(), numbers)
}

/// |ours - expected| <= bound (1 + |expected|); what is not finite in float32 is the same here.
pub fn compare(place: &str, ours: &Tensor, expected: &(Vec<usize>, Vec<f64>), float32: &[f64], bound: f64) {
    assert_eq!(ours.shape, expected.0, "{place}");
    for (i, ((&ours, &expected), &float32)) in ours.data.iter().zip(&expected.1).zip(float32).enumerate() {
        let ours = f64::from(ours);
        if float32.is_finite() {
            let error = (ours - expected).abs();
            assert!(error <= bound * (1.0 + expected.abs()), "{place}[{i}] is {ours} for {expected}, bound {bound}");
        } else {
            assert!(ours == float32 || ours.is_nan() && float32.is_nan(), "{place}[{i}] is {ours} for {float32}");
        }
    }
}
