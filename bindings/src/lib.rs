//! The engine as WebAssembly classes: conversions only. The package in `js/` is what users see.
//!
//! What gives a value of JavaScript gives `Thrown` of it, even where nothing is thrown: a reference returned alone crashes V8 11.3
//! (Node.js 20), when it leaves optimized code that such a call was inlined into. The build refuses one.

#![allow(missing_docs)]

use std::borrow::Cow;
use std::cell::RefCell;

use attnscope::kernels::threads;
use attnscope::torch::Generator;
use attnscope::{
    AttnError, HandedOut, InPlace, Mask, MaskSize, Memory, MultiHeadAttention, MultiHeadAttentionOptions, Plan,
    QueryKeyValue, Stage, StageInfo, Tensor, TorchConvention, Trace, Transformer, TransformerOptions, ops,
};
use attnscope_boundary::{
    Thrown, count, dict_in, dict_out, limit, list, optional_mask, options, plain, read, result, target_out, tensor_of,
    tensor_out, tensors_in, throw,
};
use js_sys::{Array, Float32Array, Float64Array, Function, Uint8Array, Uint32Array};
use wasm_bindgen::prelude::*;

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

fn planned(plan: attnscope::Result<Plan>) -> Thrown<RawPlan> {
    plan.map(RawPlan).map_err(throw)
}

/// The options of a pass that the package reads itself.
const ATTENTION: &[&str] = &["key", "value", "mask", "lazy", "reuse", "onProgress", "signal"];
const ENCODER: &[&str] = &["mask", "generator", "lazy", "reuse", "onProgress", "signal"];
const DECODER: &[&str] = &["mask", "memoryMask", "generator", "lazy", "reuse", "onProgress", "signal"];
const GIVEN_HEADS: &[&str] = &["mask", "pastKey", "pastValue", "lazy", "reuse", "onProgress", "signal"];
const REMASK: &[&str] = &["onProgress", "signal"];

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
    pub fn state_dict(&self) -> Thrown<Array> {
        Ok(dict_out(self.0.state_dict()))
    }

    /// Takes the parameters from a dict with its own names.
    #[wasm_bindgen(js_name = loadStateDict)]
    pub fn load_state_dict(&mut self, entries: &Array) -> Thrown<()> {
        self.0.load_own(dict_in(entries)?).map_err(throw)
    }

    /// What dicts of other families are translated for.
    pub fn target(&self) -> Thrown<Array> {
        Ok(target_out(&self.0.target()))
    }

    /// The inputs are x, and the key's and value's where they are given.
    pub fn plan(&self, inputs: &Array, mask: JsValue, settings: JsValue, max_bytes: f64) -> Thrown<RawPlan> {
        let given = tensors_in(inputs)?;
        let [Some(x), key, value] = &given[..] else { unreachable!("x is given") };
        let (mask, options) = (optional_mask(mask)?, options(settings, ATTENTION)?);
        planned(self.0.plan(x, key.as_ref(), value.as_ref(), mask.as_ref(), &options, limit(max_bytes)))
    }

    /// `engine.analysis.ablation`; the inputs are those of a pass.
    pub fn ablate(&self, inputs: &Array, mask: JsValue, settings: JsValue, max_bytes: f64) -> Thrown<JsValue> {
        let given = tensors_in(inputs)?;
        let [Some(x), key, value] = &given[..] else { unreachable!("x is given") };
        let (mask, options) = (optional_mask(mask)?, options(settings, &["key", "value", "mask"])?);
        let (key, value, mask) = (key.as_ref(), value.as_ref(), mask.as_ref());
        result(attnscope::analysis::ablate(&self.0, x, key, value, mask, &options, limit(max_bytes)))
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
    pub fn state_dict(&self) -> Thrown<Array> {
        Ok(dict_out(self.0.state_dict()))
    }

    /// Takes the parameters from a dict with its own names.
    #[wasm_bindgen(js_name = loadStateDict)]
    pub fn load_state_dict(&mut self, entries: &Array) -> Thrown<()> {
        self.0.load_own(dict_in(entries)?).map_err(throw)
    }

    /// What dicts of other families are translated for.
    pub fn target(&self) -> Thrown<Array> {
        Ok(target_out(&self.0.target()))
    }

    /// The inputs are x, and the memory and its mask where they are given.
    pub fn plan(&self, inputs: &Array, mask: JsValue, settings: JsValue, max_bytes: f64) -> Thrown<RawPlan> {
        let given = BlockInputs::read(&self.0, inputs, mask, settings)?;
        planned(self.0.plan(given.x(), given.memory(), given.mask.as_ref(), &given.options, limit(max_bytes)))
    }

    /// A pass whose dropout draws from the generator.
    #[wasm_bindgen(js_name = planTraining)]
    pub fn plan_training(
        &self,
        inputs: &Array,
        mask: JsValue,
        settings: JsValue,
        generator: &mut RawGenerator,
        max_bytes: f64,
    ) -> Thrown<RawPlan> {
        let given = BlockInputs::read(&self.0, inputs, mask, settings)?;
        let (mask, generator) = (given.mask.as_ref(), &mut generator.0);
        planned(self.0.plan_training(given.x(), given.memory(), mask, &given.options, generator, limit(max_bytes)))
    }
}

/// What a pass through blocks is given.
struct BlockInputs {
    /// `[x, memory]`
    tensors: Vec<Option<Tensor>>,
    mask: Option<Mask>,
    memory_mask: Option<Mask>,
    options: attnscope::ForwardOptions,
}

impl BlockInputs {
    fn read(module: &Transformer, inputs: &Array, mask: JsValue, settings: JsValue) -> Thrown<Self> {
        let also = if module.is_decoder() { DECODER } else { ENCODER };
        Ok(Self {
            tensors: tensors_in(&inputs.slice(0, 2))?,
            mask: optional_mask(mask)?,
            memory_mask: optional_mask(inputs.get(2))?,
            options: options(settings, also)?,
        })
    }

    fn x(&self) -> &Tensor {
        self.tensors[0].as_ref().expect("x is given")
    }

    fn memory(&self) -> Option<Memory<'_>> {
        self.tensors[1].as_ref().map(|rows| Memory { rows, mask: self.memory_mask.as_ref() })
    }
}

/// The inputs are the query, the key and the value, and the past's key and value where they are given.
#[wasm_bindgen(js_name = planAttention)]
pub fn plan_attention(inputs: &Array, mask: JsValue, settings: JsValue, max_bytes: f64) -> Thrown<RawPlan> {
    let given = tensors_in(inputs)?;
    let [Some(query), Some(key), Some(value), past_key, past_value] = &given[..] else {
        unreachable!("they are given")
    };
    let (mask, options) = (optional_mask(mask)?, options(settings, GIVEN_HEADS)?);
    let past = past_key.as_ref().zip(past_value.as_ref()).map(|(key, value)| [key, value]);
    let inputs = QueryKeyValue { query, key, value, past };
    planned(attnscope::plan_attention(inputs, mask.as_ref(), &options, limit(max_bytes)))
}

/// A pass that is checked and ready to be run, here or on a graphics processor.
#[wasm_bindgen]
pub struct RawPlan(Plan);

#[wasm_bindgen]
impl RawPlan {
    /// Runs the pass and gives `[result, trace]`: what [`RawTrace::result`] gives, and the trace where it keeps stages or is wanted
    /// anyhow, else null. `watch` is called with the part of the pass that is done, from 0 to 1.
    pub fn run(self, watch: Option<Function>, wants_trace: bool, spares: Option<Array>) -> Thrown<Array> {
        let mut watch = |part| tell(watch.as_ref(), part);
        let taken: Vec<_> = self.0.handed_out().into_iter().map(|info| Taken::new(info, spares.as_ref())).collect();
        let trace = self.0.run_handing_out(&mut watch, &mut |block| {
            let place = taken.iter().find(|taken| taken.is_of(block.stage, block.layer));
            place.expect("a place for all that is handed out").take(&block);
        });
        let trace = RawTrace::of(trace.map_err(throw)?, taken);
        let (result, is_kept) = (trace.result(spares)?, wants_trace || trace.trace.keeps_stages());
        Ok(Array::of2(&result, &if is_kept { trace.into() } else { JsValue::NULL }))
    }

    /// The same pass, which takes over the rows that an earlier one of the module made as it would.
    pub fn after(self, before: &RawTrace) -> Self {
        Self(self.0.after(&before.trace))
    }

    /// What the pass costs, in multiply-adds.
    pub fn work(&self) -> f64 {
        self.0.work()
    }

    /// What it costs where no rows are taken over.
    #[wasm_bindgen(js_name = wholeWork)]
    pub fn whole_work(&self) -> f64 {
        self.0.whole_work()
    }

    /// `[steps, tables]`: what the planner of another device needs to know of the pass.
    pub fn outline(&self) -> Thrown<Array> {
        let outline = self.0.outline().map_err(throw)?;
        let [steps, tables] = [&outline.words(), &outline.tables].map(|words| Uint32Array::from(&words[..]));
        Ok(Array::of2(&steps, &tables))
    }

    /// The numbers that a step is given, or those of its projection's weight.
    pub fn given(&self, step: usize) -> Thrown<Float32Array> {
        Ok(self.0.given(step).into())
    }

    /// `[name, layer, shape, step, strides]` of each stage that may be left on a graphics processor.
    pub fn stages(&self) -> Thrown<Array> {
        let entry = |(info, step, strides): (StageInfo, usize, &[usize])| {
            let [shape, strides] = [&info.shape, strides].map(list);
            Array::of5(&info.name.name().into(), &info.layer.into(), &shape, &step.into(), &strides)
        };
        Ok(self.0.stages().map(entry).collect())
    }

    /// The steps whose numbers the pass gives beside these.
    #[wasm_bindgen(js_name = givenBack)]
    pub fn given_back(&self) -> Vec<usize> {
        self.0.given_back()
    }

    /// A stage's tensor of its step's numbers.
    pub fn arranged(&self, step: usize, numbers: Vec<f32>) -> Thrown<JsValue> {
        Ok(tensor_out(&self.0.arranged(step, &numbers)))
    }

    /// The trace of the pass that another device computed: its numbers, and of steps that have a place of their own there the step
    /// and the place, one behind the other.
    pub fn computed(self, numbers: Vec<f32>, places: Vec<usize>) -> RawTrace {
        RawTrace::of(self.0.computed(numbers, places.as_chunks().0), Vec::new())
    }
}

/// Weights that a pass hands out, copied block by block.
struct Taken {
    info: StageInfo,
    numbers: Float32Array,
}

impl Taken {
    fn new(info: StageInfo, spares: Option<&Array>) -> Self {
        let size = info.shape.iter().product();
        let numbers = spare_of(size, spares).unwrap_or_else(|| Float32Array::new_with_length(size as u32));
        Self { info, numbers }
    }

    fn is_of(&self, stage: Stage, layer: usize) -> bool {
        (self.info.name, self.info.layer) == (stage, layer)
    }

    fn take(&self, block: &HandedOut) {
        // SAFETY: the view is gone before anything else can move the memory.
        let view = unsafe { Float32Array::view(block.numbers) };
        self.numbers.set(&view, block.at as u32);
    }
}

/// One pass, kept here so that its cells can be explained and its mask exchanged.
#[wasm_bindgen]
pub struct RawTrace {
    trace: Trace,
    taken: Vec<Taken>,
    copies: RefCell<Copies>,
}

impl RawTrace {
    fn of(trace: Trace, taken: Vec<Taken>) -> Self {
        Self { trace, taken, copies: RefCell::default() }
    }
}

/// What was copied out of a trace, and where it lies there: the same numbers share one array.
#[derive(Default)]
struct Copies(Vec<(*const [f32], Float32Array)>);

impl Copies {
    fn of(&mut self, numbers: Cow<[f32]>, spares: Option<&Array>) -> Float32Array {
        let Cow::Borrowed(lying) = numbers else { return copy(&numbers, spares) };
        match self.0.iter().find(|(known, _)| std::ptr::eq(*known, lying)) {
            Some((_, copied)) => copied.clone(),
            None => {
                let copied = copy(lying, spares);
                self.0.push((lying, copied.clone()));
                copied
            }
        }
    }
}

fn copy(numbers: &[f32], spares: Option<&Array>) -> Float32Array {
    match spare_of(numbers.len(), spares) {
        Some(spare) => {
            spare.copy_from(numbers);
            spare
        }
        None => Float32Array::from(numbers),
    }
}

/// One of the spares that has room for so many numbers, no more and no less; from then on it is none.
fn spare_of(length: usize, spares: Option<&Array>) -> Option<Float32Array> {
    let spares = spares?;
    (0..spares.length()).find_map(|at| {
        let fitting =
            spares.get(at).dyn_into::<Float32Array>().ok().filter(|spare| spare.length() as usize == length)?;
        spares.set(at, JsValue::NULL);
        Some(fitting)
    })
}

#[wasm_bindgen]
impl RawTrace {
    /// `[output, weights, crossWeights, present]`: each layer's weights, and its second attention's, null where there are none or they
    /// were not asked for; and the keys and values with the past in front, null where none was given. What fits goes into `spares`.
    pub fn result(&self, spares: Option<Array>) -> Thrown<Array> {
        let mut copies = self.copies.borrow_mut();
        let mut in_place = |InPlace { numbers, shape }| tensor_of(copies.of(numbers, spares.as_ref()), &shape);
        let [weights, cross] = [Stage::Weights, Stage::CrossWeights].map(|stage| -> Array {
            let of_layer = |layer| match self.taken.iter().find(|taken| taken.is_of(stage, layer)) {
                Some(taken) => tensor_of(taken.numbers.clone(), &taken.info.shape),
                None => self.trace.weights_in_place(stage, layer).map_or(JsValue::NULL, &mut in_place),
            };
            (0..self.trace.n_layers()).map(of_layer).collect()
        });
        let present = self.trace.present();
        let present = present.map(|[key, value]| Array::of2(&tensor_out(&key), &tensor_out(&value)).into());
        let output = in_place(self.trace.output_in_place());
        Ok(Array::of4(&output, &weights, &cross, &present.unwrap_or(JsValue::NULL)))
    }

    /// `[name, layer, tensor]` of each stage that was kept, or of those that another mask may change. Stages that are the same
    /// numbers, or those of the result, share one array. `watch` is called with the part that is copied.
    pub fn stages(&self, only_masked: bool, watch: Option<Function>) -> Thrown<Array> {
        let mut copies = self.copies.take();
        let mut stages = self.trace.stages();
        stages.retain(|info| !only_masked || self.trace.is_masked(info.name, info.layer));
        let size = |info: &StageInfo| info.shape.iter().product::<usize>() as f32;
        let (mut copied, all) = (0.0, stages.iter().map(size).sum::<f32>());
        stages
            .iter()
            .map(|info| {
                let numbers = self.trace.numbers(info.name, info.layer).map_err(throw)?;
                let tensor = tensor_of(copies.of(numbers, None), &info.shape);
                copied += size(info);
                tell(watch.as_ref(), copied / all);
                Ok(Array::of3(&info.name.name().into(), &info.layer.into(), &tensor))
            })
            .collect()
    }

    /// A stage's tensor; the weights also of a pass that kept no stages.
    pub fn stage(&self, stage: JsValue, layer: usize) -> Thrown<JsValue> {
        let stage = read(stage)?;
        match self.taken.iter().find(|taken| taken.is_of(stage, layer)) {
            Some(taken) => Ok(tensor_of(taken.numbers.clone(), &taken.info.shape)),
            None => result(self.trace.stage(stage, layer)),
        }
    }

    pub fn explain(&self, stage: JsValue, layer: usize, index: Vec<usize>) -> Thrown<JsValue> {
        let stage: Stage = read(stage)?;
        self.trace.explain(stage, layer, &index).map(plain).map_err(throw)
    }

    #[wasm_bindgen(js_name = planRemask)]
    pub fn plan_remask(&self, mask: JsValue, settings: JsValue) -> Thrown<RawPlan> {
        let (mask, options) = (optional_mask(mask)?, options(settings, REMASK)?);
        planned(self.trace.plan_remask(mask.as_ref(), &options))
    }
}

/// PyTorch's generator.
#[wasm_bindgen]
pub struct RawGenerator(Generator);

#[wasm_bindgen]
impl RawGenerator {
    #[wasm_bindgen(constructor)]
    pub fn new(seed: i64) -> Self {
        Self(Generator::new(seed))
    }

    /// Numbers of a kind, of which the sizes tell how many and which: float32, or whole ones, as float64 so that none is cut.
    pub fn draw(&mut self, kind: &str, a: f64, b: f64, c: f64, max_bytes: f64) -> Thrown<JsValue> {
        let generator = &mut self.0;
        let floats = |numbers: &[f32]| JsValue::from(Float32Array::from(numbers));
        let whole = |numbers: Vec<i64>| {
            let numbers: Vec<f64> = numbers.into_iter().map(|number| number as f64).collect();
            JsValue::from(Float64Array::from(&numbers[..]))
        };
        let count = |size: f64| count(size, max_bytes);
        let matrix = || count(a * b).map(|_| (a as usize, b as usize));
        Ok(match kind {
            "rand" => floats(&generator.rand(count(a)?)),
            "randn" => floats(&generator.randn(count(a)?)),
            "normal" => floats(&generator.normal(count(a)?, b, c)),
            "randperm" => whole(generator.randperm(count(2.0 * a)? / 2)),
            "randint" => {
                let numbers = generator.randint(a as i64, b as i64, count(2.0 * c)? / 2);
                whole(numbers.map_err(|error| {
                    let (option, found, expected) = ("high".into(), (b as i64).to_string(), error.to_string());
                    throw(Box::new(AttnError::InvalidOption { option, found, expected }))
                })?)
            }
            "xavierUniform" => {
                let (rows, columns) = matrix()?;
                floats(&generator.xavier_uniform(rows, columns))
            }
            "embedding" => {
                let (rows, columns) = matrix()?;
                floats(&generator.embedding(rows, columns, (!c.is_nan()).then_some(c as usize)))
            }
            "linear" => {
                let (d_in, d_out) = matrix()?;
                let linear = generator.linear(d_in, d_out, true);
                Array::of2(&floats(&linear.weight), &floats(&linear.bias.unwrap_or_default())).into()
            }
            _ => unreachable!("the package draws nothing else"),
        })
    }

    pub fn dropout(&mut self, numbers: &[f32], p: f64) -> Vec<f32> {
        self.0.dropout(numbers, p)
    }
}

/// `[allowed, bias, shape]` of a mask at a size, whose first query stands at a position among the keys.
#[wasm_bindgen]
pub fn materialize(rule: JsValue, size: JsValue, first: i32, max_bytes: f64) -> Thrown<Array> {
    let (mask, size) = (read::<Mask>(rule)?, options::<MaskSize>(size, &[])?);
    let resolved = mask.materialize_behind(size, first.into(), limit(max_bytes)).map_err(throw)?;
    let shape = list(&resolved.shape);
    let bias = resolved.bias.map_or(JsValue::NULL, |bias| Float32Array::from(&bias[..]).into());
    Ok(Array::of3(&Uint8Array::from(&resolved.allowed[..]), &bias, &shape))
}

#[wasm_bindgen(js_name = toTorch)]
pub fn to_torch(rule: JsValue, convention: JsValue) -> Thrown<String> {
    let convention: TorchConvention = read(convention)?;
    read::<Mask>(rule)?.to_torch(convention).map_err(throw)
}

/// Refuses so many numbers where they take more than there may be.
#[wasm_bindgen]
pub fn afford(numbers: f64, max_bytes: f64) -> Thrown<()> {
    count(numbers, max_bytes).map(drop)
}

/// The inputs are x, the weight, and the bias where it is given.
#[wasm_bindgen]
pub fn linear(inputs: &Array, max_bytes: f64) -> Thrown<JsValue> {
    let given = tensors_in(inputs)?;
    let [Some(x), Some(weight), bias] = &given[..] else { unreachable!("they are given") };
    result(ops::linear(x, weight, bias.as_ref(), limit(max_bytes)))
}

#[wasm_bindgen]
pub fn sinusoidal(n: usize, d_model: usize, max_bytes: f64) -> Thrown<JsValue> {
    count(n as f64 * d_model as f64, max_bytes)?;
    Ok(tensor_out(&attnscope::sinusoidal(n, d_model)))
}
