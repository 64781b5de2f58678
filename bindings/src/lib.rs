//! The engine as WebAssembly classes: conversions only. The package in `js/` is what users see.

#![allow(missing_docs)]

mod analysis;
mod read;

use std::borrow::Cow;

use attnscope::kernels::threads;
use attnscope::torch::Generator;
use attnscope::{
    AttnError, Mask, MaskSize, Memory, MultiHeadAttention, MultiHeadAttentionOptions, Plan, QueryKeyValue, Stage,
    StageInfo, Tensor, TorchConvention, Trace, Transformer, TransformerOptions, ops,
};
use attnscope_boundary::{
    Thrown, dict_in, dict_out, limit, object, optional_tensor, plain, tensor_in, tensor_of, tensor_out, throw,
};
use js_sys::{Array, Float32Array, Function, Uint8Array, Uint32Array};
use wasm_bindgen::prelude::*;

use read::{options, read};

#[wasm_bindgen(start)]
pub fn start() {
    console_error_panic_hook::set_once();
}

/// The version and the sources that this was built from, which the package compares with its own.
#[wasm_bindgen]
pub fn build() -> String {
    [env!("CARGO_PKG_VERSION"), option_env!("ATTNSCOPE_BUILD").unwrap_or("local")].join("+")
}

#[wasm_bindgen(js_name = kernelName)]
pub fn kernel_name() -> String {
    attnscope::kernel_name().into()
}

/// From here on at most so many threads share a piece of work.
#[wasm_bindgen(js_name = limitThreads)]
pub fn limit_threads(threads: usize) {
    threads::limit(threads);
}

/// Helps the thread that calls the engine, which shares its memory with this one; returns when this helper is dismissed.
#[wasm_bindgen]
pub fn help(number: usize) {
    threads::help(number);
}

/// What is left to say of a helper that died in [`help`].
#[wasm_bindgen(js_name = helperDied)]
pub fn helper_died() {
    threads::leave(true);
}

/// Sends the helpers with numbers below this away.
#[wasm_bindgen]
pub fn dismiss(below: usize) {
    threads::dismiss(below);
}

fn optional_mask(rule: JsValue) -> Thrown<Option<Mask>> {
    if rule.is_undefined() || rule.is_null() { Ok(None) } else { read(rule).map(Some) }
}

fn planned(plan: attnscope::Result<Plan>) -> Thrown<RawPlan> {
    plan.map(RawPlan).map_err(throw)
}

fn tell(watch: Option<&Function>, part: f32) {
    // The package's function throws nothing.
    let _ = watch.map(|watch| watch.call1(&JsValue::NULL, &part.into()));
}

/// Multi-head attention with its weights.
#[wasm_bindgen]
pub struct RawAttention(MultiHeadAttention);

#[wasm_bindgen]
impl RawAttention {
    /// Throws where the options are none that a module can be made of.
    pub fn check(settings: JsValue, max_bytes: f64) -> Thrown<()> {
        options::<MultiHeadAttentionOptions>(settings, &["generator"])?.check(limit(max_bytes)).map_err(throw)
    }

    pub fn draw(settings: JsValue, generator: &mut RawGenerator, max_bytes: f64) -> Thrown<Self> {
        let options = options(settings, &["generator"])?;
        MultiHeadAttention::new(&options, &mut generator.0, limit(max_bytes)).map(Self).map_err(throw)
    }

    #[wasm_bindgen(js_name = stateDict)]
    pub fn state_dict(&self) -> Array {
        dict_out(self.0.state_dict())
    }

    #[wasm_bindgen(js_name = loadStateDict)]
    pub fn load_state_dict(&mut self, entries: &Array, layer: Option<usize>) -> Thrown<()> {
        self.0.load_state_dict(dict_in(entries)?, layer).map_err(throw)
    }

    pub fn plan(&self, inputs: &JsValue, mask: JsValue, settings: JsValue, max_bytes: f64) -> Thrown<RawPlan> {
        let x = tensor_in(&property(inputs, "x")?)?;
        let key = optional_tensor(&property(inputs, "key")?)?;
        let value = optional_tensor(&property(inputs, "value")?)?;
        let (mask, options) = (optional_mask(mask)?, options(settings, &["key", "value", "mask"])?);
        planned(self.0.plan(&x, key.as_ref(), value.as_ref(), mask.as_ref(), &options, limit(max_bytes)))
    }
}

/// A block or a stack of them, an encoder's or a decoder's.
#[wasm_bindgen]
pub struct RawTransformer(Transformer);

#[wasm_bindgen]
impl RawTransformer {
    /// Throws where the options are none that a module can be made of.
    pub fn check(settings: JsValue, is_decoder: bool, max_bytes: f64) -> Thrown<()> {
        options::<TransformerOptions>(settings, &["generator"])?.check(is_decoder, limit(max_bytes)).map_err(throw)
    }

    pub fn draw(settings: JsValue, is_decoder: bool, generator: &mut RawGenerator, max_bytes: f64) -> Thrown<Self> {
        let new = if is_decoder { Transformer::decoder } else { Transformer::encoder };
        new(options(settings, &["generator"])?, &mut generator.0, limit(max_bytes)).map(Self).map_err(throw)
    }

    #[wasm_bindgen(js_name = stateDict)]
    pub fn state_dict(&self) -> Array {
        dict_out(self.0.state_dict())
    }

    #[wasm_bindgen(js_name = loadStateDict)]
    pub fn load_state_dict(&mut self, entries: &Array, layer: Option<usize>) -> Thrown<()> {
        self.0.load_state_dict(dict_in(entries)?, layer).map_err(throw)
    }

    pub fn plan(&self, inputs: &JsValue, mask: JsValue, settings: JsValue, max_bytes: f64) -> Thrown<RawPlan> {
        let given = BlockInputs::read(inputs, mask, settings)?;
        planned(self.0.plan(&given.x, given.memory(), given.mask.as_ref(), &given.options, limit(max_bytes)))
    }

    /// A pass whose dropout draws from the generator.
    #[wasm_bindgen(js_name = planTraining)]
    pub fn plan_training(
        &self,
        inputs: &JsValue,
        mask: JsValue,
        settings: JsValue,
        generator: &mut RawGenerator,
        max_bytes: f64,
    ) -> Thrown<RawPlan> {
        let given = BlockInputs::read(inputs, mask, settings)?;
        let (x, mask) = (&given.x, given.mask.as_ref());
        let generator = &mut generator.0;
        planned(self.0.plan_training(x, given.memory(), mask, &given.options, generator, limit(max_bytes)))
    }
}

/// What a pass through blocks is given.
struct BlockInputs {
    x: Tensor,
    memory: Option<Tensor>,
    mask: Option<Mask>,
    memory_mask: Option<Mask>,
    options: attnscope::ForwardOptions,
}

impl BlockInputs {
    fn read(inputs: &JsValue, mask: JsValue, settings: JsValue) -> Thrown<Self> {
        Ok(Self {
            x: tensor_in(&property(inputs, "x")?)?,
            memory: optional_tensor(&property(inputs, "memory")?)?,
            mask: optional_mask(mask)?,
            memory_mask: optional_mask(property(inputs, "memoryMask")?)?,
            options: options(settings, &["mask", "memoryMask", "generator"])?,
        })
    }

    fn memory(&self) -> Option<Memory<'_>> {
        self.memory.as_ref().map(|rows| Memory { rows, mask: self.memory_mask.as_ref() })
    }
}

fn property(object: &JsValue, name: &str) -> Thrown<JsValue> {
    js_sys::Reflect::get(object, &name.into())
}

#[wasm_bindgen(js_name = planAttention)]
pub fn plan_attention(inputs: &JsValue, mask: JsValue, settings: JsValue, max_bytes: f64) -> Thrown<RawPlan> {
    let [query, key, value] = ["query", "key", "value"].map(|name| tensor_in(&property(inputs, name)?));
    let past = [optional_tensor(&property(inputs, "pastKey")?)?, optional_tensor(&property(inputs, "pastValue")?)?];
    let (mask, options) = (optional_mask(mask)?, options(settings, &["mask", "pastKey", "pastValue"])?);
    let past = if let [Some(key), Some(value)] = &past { Some([key, value]) } else { None };
    let inputs = QueryKeyValue { query: &query?, key: &key?, value: &value?, past };
    planned(attnscope::plan_attention(inputs, mask.as_ref(), &options, limit(max_bytes)))
}

/// A pass that is checked and ready to be run, here or on a graphics processor.
#[wasm_bindgen]
pub struct RawPlan(Plan);

#[wasm_bindgen]
impl RawPlan {
    /// Runs the pass; `watch` is called with the part of it that is done, from 0 to 1.
    pub fn run(self, watch: Option<Function>) -> Thrown<RawTrace> {
        self.0.run(&mut |part| tell(watch.as_ref(), part)).map(RawTrace).map_err(throw)
    }

    /// What the pass costs, in multiply-adds.
    pub fn work(&self) -> f64 {
        self.0.work()
    }

    /// `{ steps, tables }`: what the planner of another device needs to know of the pass.
    pub fn outline(&self) -> Thrown<JsValue> {
        let outline = self.0.outline().map_err(throw)?;
        let [steps, tables] = [&outline.words(), &outline.tables].map(|words| Uint32Array::from(&words[..]).into());
        Ok(object(&[("steps", steps), ("tables", tables)]))
    }

    /// The numbers that a step is given, or those of its projection's weight.
    pub fn given(&self, step: usize) -> Float32Array {
        self.0.given(step).into()
    }

    /// The trace of the pass that another device computed: its numbers, and of steps that have a place of their own there the step
    /// and the place, one behind the other.
    pub fn computed(self, numbers: Vec<f32>, places: Vec<usize>) -> RawTrace {
        RawTrace(self.0.computed(numbers, places.as_chunks().0))
    }
}

/// One pass, kept here so that its cells can be explained and its mask exchanged.
#[wasm_bindgen]
pub struct RawTrace(Trace);

#[wasm_bindgen]
impl RawTrace {
    pub fn output(&self) -> JsValue {
        tensor_out(&self.0.output())
    }

    /// A layer's weights, or null where they were not asked for.
    pub fn weights(&self, layer: usize) -> Thrown<JsValue> {
        Ok(self.0.weights(layer).map_err(throw)?.map_or(JsValue::NULL, |weights| tensor_out(&weights)))
    }

    /// A layer's second attention's, or null where there is none or they were not asked for.
    #[wasm_bindgen(js_name = crossWeights)]
    pub fn cross_weights(&self, layer: usize) -> JsValue {
        self.0.cross_weights(layer).ok().flatten().map_or(JsValue::NULL, |weights| tensor_out(&weights))
    }

    /// `[key, value]` with the past in front, or null where no past was given.
    pub fn present(&self) -> JsValue {
        let Some([key, value]) = self.0.present() else { return JsValue::NULL };
        Array::of2(&tensor_out(&key), &tensor_out(&value)).into()
    }

    #[wasm_bindgen(js_name = nLayers)]
    pub fn n_layers(&self) -> usize {
        self.0.n_layers()
    }

    /// `{ name, layer, tensor }` of each stage that was kept, or of those that another mask may change. Stages that are the same
    /// numbers share one array. `watch` is called with the part that is copied.
    pub fn stages(&self, only_masked: bool, watch: Option<Function>) -> Thrown<Array> {
        let mut copies: Vec<(&[f32], Float32Array)> = Vec::new();
        let mut stages = self.0.stages();
        stages.retain(|info| !only_masked || self.0.is_masked(info.name, info.layer));
        let size = |info: &StageInfo| info.shape.iter().product::<usize>() as f32;
        let (mut copied, all) = (0.0, stages.iter().map(size).sum::<f32>());
        stages
            .iter()
            .map(|info| {
                let data = match self.0.numbers(info.name, info.layer).map_err(throw)? {
                    Cow::Owned(numbers) => Float32Array::from(&numbers[..]),
                    Cow::Borrowed(numbers) => {
                        let known = copies.iter().find(|(copied, _)| std::ptr::eq(*copied, numbers));
                        let copy =
                            known.map_or_else(|| Float32Array::from(numbers), |(_, copy)| Float32Array::clone(copy));
                        copies.push((numbers, copy.clone()));
                        copy
                    }
                };
                let tensor = tensor_of(data, &info.shape);
                copied += size(info);
                tell(watch.as_ref(), copied / all);
                Ok(object(&[("name", info.name.name().into()), ("layer", info.layer.into()), ("tensor", tensor)]))
            })
            .collect()
    }

    pub fn explain(&self, stage: JsValue, layer: usize, index: Vec<usize>) -> Thrown<JsValue> {
        let stage: Stage = read(stage)?;
        self.0.explain(stage, layer, &index).map(plain).map_err(throw)
    }

    #[wasm_bindgen(js_name = planRemask)]
    pub fn plan_remask(&self, mask: JsValue, settings: JsValue) -> Thrown<RawPlan> {
        let (mask, options) = (optional_mask(mask)?, options(settings, &[])?);
        planned(self.0.plan_remask(mask.as_ref(), &options))
    }
}

/// PyTorch's generator.
#[wasm_bindgen]
pub struct RawGenerator(Generator);

/// How many numbers are drawn, where they fit.
fn count(size: f64, max_bytes: f64) -> Thrown<usize> {
    let needed = 4.0 * size;
    if needed <= max_bytes && size <= f64::from(u32::MAX) {
        Ok(size as usize)
    } else {
        Err(throw(Box::new(AttnError::TooLarge { needed: needed as u64, max_bytes: max_bytes as u64 })))
    }
}

#[wasm_bindgen]
impl RawGenerator {
    #[wasm_bindgen(constructor)]
    pub fn new(seed: i64) -> Self {
        Self(Generator::new(seed))
    }

    pub fn rand(&mut self, size: f64, max_bytes: f64) -> Thrown<Vec<f32>> {
        Ok(self.0.rand(count(size, max_bytes)?))
    }

    pub fn randn(&mut self, size: f64, max_bytes: f64) -> Thrown<Vec<f32>> {
        Ok(self.0.randn(count(size, max_bytes)?))
    }

    pub fn normal(&mut self, size: f64, mean: f64, std: f64, max_bytes: f64) -> Thrown<Vec<f32>> {
        Ok(self.0.normal(count(size, max_bytes)?, mean, std))
    }

    #[wasm_bindgen(js_name = xavierUniform)]
    pub fn xavier_uniform(&mut self, rows: f64, columns: f64, max_bytes: f64) -> Thrown<Vec<f32>> {
        count(rows * columns, max_bytes)?;
        Ok(self.0.xavier_uniform(rows as usize, columns as usize))
    }

    pub fn embedding(&mut self, rows: f64, columns: f64, padding: Option<usize>, max_bytes: f64) -> Thrown<Vec<f32>> {
        count(rows * columns, max_bytes)?;
        Ok(self.0.embedding(rows as usize, columns as usize, padding))
    }

    /// `[weight, bias]`
    pub fn linear(&mut self, in_features: f64, out_features: f64, max_bytes: f64) -> Thrown<Array> {
        count(in_features * out_features, max_bytes)?;
        let linear = self.0.linear(in_features as usize, out_features as usize, true);
        let bias = linear.bias.unwrap_or_default();
        Ok(Array::of2(&Float32Array::from(&linear.weight[..]), &Float32Array::from(&bias[..])))
    }

    /// Whole numbers, as float64 so that none is cut.
    pub fn randint(&mut self, low: f64, high: f64, size: f64, max_bytes: f64) -> Thrown<Vec<f64>> {
        let numbers = self.0.randint(low as i64, high as i64, count(2.0 * size, max_bytes)? / 2);
        let numbers = numbers.map_err(|error| {
            let (option, found, expected) = ("high".into(), high.to_string(), error.to_string());
            throw(Box::new(AttnError::InvalidOption { option, found, expected }))
        })?;
        Ok(numbers.into_iter().map(|number| number as f64).collect())
    }

    pub fn randperm(&mut self, size: f64, max_bytes: f64) -> Thrown<Vec<f64>> {
        let numbers = self.0.randperm(count(2.0 * size, max_bytes)? / 2);
        Ok(numbers.into_iter().map(|number| number as f64).collect())
    }

    pub fn dropout(&mut self, numbers: &[f32], p: f64) -> Vec<f32> {
        self.0.dropout(numbers, p)
    }
}

/// `{ allowed, bias, shape }` of a mask at a size.
#[wasm_bindgen]
pub fn materialize(rule: JsValue, size: JsValue, max_bytes: f64) -> Thrown<JsValue> {
    let resolved = read::<Mask>(rule)?.materialize(options::<MaskSize>(size, &[])?, limit(max_bytes)).map_err(throw)?;
    let shape: Array = resolved.shape.iter().map(|&axis| JsValue::from(axis)).collect();
    let bias = resolved.bias.map_or(JsValue::NULL, |bias| Float32Array::from(&bias[..]).into());
    Ok(object(&[("allowed", Uint8Array::from(&resolved.allowed[..]).into()), ("bias", bias), ("shape", shape.into())]))
}

#[wasm_bindgen(js_name = toTorch)]
pub fn to_torch(rule: JsValue, convention: JsValue) -> Thrown<String> {
    let convention: TorchConvention = read(convention)?;
    read::<Mask>(rule)?.to_torch(convention).map_err(throw)
}

#[wasm_bindgen]
pub fn linear(x: &JsValue, weight: &JsValue, bias: &JsValue, max_bytes: f64) -> Thrown<JsValue> {
    let out = ops::linear(&tensor_in(x)?, &tensor_in(weight)?, optional_tensor(bias)?.as_ref(), limit(max_bytes));
    out.map(|out| tensor_out(&out)).map_err(throw)
}

#[wasm_bindgen]
pub fn softmax(x: &JsValue, axis: isize) -> Thrown<JsValue> {
    ops::softmax(&tensor_in(x)?, axis).map(|out| tensor_out(&out)).map_err(throw)
}

#[wasm_bindgen(js_name = logSoftmax)]
pub fn log_softmax(x: &JsValue, axis: isize) -> Thrown<JsValue> {
    ops::log_softmax(&tensor_in(x)?, axis).map(|out| tensor_out(&out)).map_err(throw)
}

#[wasm_bindgen(js_name = layerNorm)]
pub fn layer_norm(x: &JsValue, weight: &JsValue, bias: &JsValue, eps: f32, axis: isize) -> Thrown<JsValue> {
    let (weight, bias) = (optional_tensor(weight)?, optional_tensor(bias)?);
    let out = ops::layer_norm(&tensor_in(x)?, weight.as_ref(), bias.as_ref(), eps, axis);
    out.map(|out| tensor_out(&out)).map_err(throw)
}

#[wasm_bindgen(js_name = rmsNorm)]
pub fn rms_norm(x: &JsValue, weight: &JsValue, eps: f32, axis: isize) -> Thrown<JsValue> {
    let out = ops::rms_norm(&tensor_in(x)?, optional_tensor(weight)?.as_ref(), eps, axis);
    out.map(|out| tensor_out(&out)).map_err(throw)
}

#[wasm_bindgen]
pub fn rotary(x: &JsValue, cos: &JsValue, sin: &JsValue, interleaved: bool) -> Thrown<JsValue> {
    let out = ops::rotary(&tensor_in(x)?, &tensor_in(cos)?, &tensor_in(sin)?, interleaved);
    out.map(|out| tensor_out(&out)).map_err(throw)
}

#[wasm_bindgen]
pub fn sinusoidal(n: usize, d_model: usize, max_bytes: f64) -> Thrown<JsValue> {
    count(n as f64 * d_model as f64, max_bytes)?;
    Ok(tensor_out(&attnscope::sinusoidal(n, d_model)))
}

#[wasm_bindgen]
pub fn activation(x: &JsValue, name: JsValue) -> Thrown<JsValue> {
    Ok(tensor_out(&ops::activation(&tensor_in(x)?, read(name)?)))
}
