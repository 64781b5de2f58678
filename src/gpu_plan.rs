//! A pass as work for a graphics processor: which shader of `shaders/` runs, on which buffers, with which sizes, in how many
//! workgroups. Nothing here touches a device.
//!
//! A processor may treat NaN and infinity as it likes (<https://www.w3.org/TR/WGSL/#floating-point-evaluation>). A pass therefore
//! goes to it only where neither can come up: from how large the numbers are that a step takes follows how large those can be
//! that it gives. Hidden scores of -infinity are the exception; the shaders know them by their bits.

use crate::config::{Activation, NormKind};
use crate::given::words;
use crate::mask::ResolvedMask;
use crate::parameters::{Linear, Norm};
use crate::plain::Plain;
use crate::recipe::{Attended, Made, Recipe, Step, StepId};
use attnscope_kernels::attention::Weighing;

/// What a device can do.
#[derive(Debug, Clone, Copy)]
pub struct GpuLimits {
    /// The most bytes of a buffer that a shader sees: `maxStorageBufferBindingSize`.
    pub binding: u64,
    /// The most bytes that the threads of a workgroup share: `maxComputeWorkgroupStorageSize`.
    pub workgroup_storage: u64,
}

/// The most workgroups along an axis, on every device.
const MOST_WORKGROUPS: usize = 65_535;
/// Words from one entry of the constants to the next: where a binding may start, on every device.
const ALIGNMENT: usize = 64;
/// The largest number that may come up; what an infinity is not made of even where some are multiplied by a few.
const LARGEST: f64 = 1e37;

/// A pass as work for a graphics processor.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct GpuPlan {
    /// What the dispatches run on; the first holds the constants.
    pub buffers: Vec<Buffer>,
    /// Sizes, small parameters and masks, each at a multiple of 64 words.
    #[cfg_attr(feature = "typescript", ts(type = "Uint32Array"))]
    pub constants: Vec<u32>,
    /// The work, in order.
    pub dispatches: Vec<Dispatch>,
    /// What is copied back, one behind the other or at the places of the arena.
    pub reads: Vec<Read>,
    /// How many numbers that makes, with what lies between.
    pub size: usize,
    /// Buffers that a pass with another mask would use again.
    pub kept: Vec<usize>,
}

/// A buffer and what is in it at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Buffer {
    /// Where its numbers come from.
    pub source: Source,
    /// The step that they belong to.
    pub step: usize,
    /// A weight's own number, by which it is known again.
    pub id: u32,
    /// How many numbers there are.
    pub numbers: usize,
}

/// Where a buffer's numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "snake_case"))]
pub enum Source {
    /// The plan's constants.
    Constants,
    /// The caller, who gives this step.
    Given,
    /// A projection's weight.
    Weight,
    /// The pass before, which had another mask.
    Kept,
    /// A dispatch, which makes this step.
    Made,
    /// A dispatch, on the way to this step.
    Scratch,
}

words!(Source: Constants, Given, Weight, Kept, Made, Scratch);

/// One run of a shader.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Dispatch {
    /// The step that it makes, or helps to make.
    pub step: StepId,
    /// The shader's file.
    pub shader: &'static str,
    /// What is fixed when the shader is compiled.
    #[cfg_attr(feature = "typescript", ts(type = "Record<string, number>"))]
    pub overrides: Vec<(&'static str, f64)>,
    /// What it sees, the sizes first.
    pub bindings: Vec<Binding>,
    /// Workgroups along each axis.
    #[cfg_attr(feature = "typescript", ts(type = "[number, number, number]"))]
    pub workgroups: [u32; 3],
}

/// A part of a buffer that a shader sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Binding {
    /// Its number in the shader.
    pub at: u32,
    /// The buffer's place in the plan.
    pub buffer: usize,
    /// The first number.
    pub offset: usize,
    /// How many.
    pub numbers: usize,
}

/// A buffer that is copied back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Read {
    /// The step whose numbers these are.
    pub step: StepId,
    /// The buffer's place in the plan.
    pub buffer: usize,
    /// Where they go.
    pub at: usize,
}

/// Why a pass is left to the central processor.
pub(crate) type Unfit = &'static str;

type Fit<T> = std::result::Result<T, Unfit>;

/// The plan of a recipe's steps from `first` on. `wanted` are the steps to be read where no stages are kept.
pub(crate) fn plan(recipe: &Recipe, first: StepId, wanted: &[StepId], limits: GpuLimits) -> Fit<GpuPlan> {
    let mut planner = Planner {
        recipe,
        first,
        limits,
        buffers: vec![Buffer { source: Source::Constants, step: 0, id: 0, numbers: 0 }],
        constants: vec![0; ALIGNMENT],
        dispatches: Vec::new(),
        places: vec![None; recipe.steps().len()],
        largest: Vec::new(),
        masks: Vec::new(),
    };
    for (id, step) in recipe.steps().iter().enumerate() {
        let largest = planner.bound(step)?;
        // NaN is infinity times 0.
        if largest.is_nan() || largest > LARGEST {
            return Err("its numbers are not finite, or may grow too large");
        }
        planner.largest.push(largest);
        if id >= first {
            planner.step(id, step)?;
        }
    }
    planner.finish(wanted)
}

struct Planner<'r> {
    recipe: &'r Recipe,
    first: StepId,
    limits: GpuLimits,
    buffers: Vec<Buffer>,
    constants: Vec<u32>,
    dispatches: Vec<Dispatch>,
    /// Where each step's numbers lie.
    places: Vec<Option<usize>>,
    /// How large each step's numbers can be.
    largest: Vec<f64>,
    /// Masks whose words and bias are among the constants.
    masks: Vec<(&'r ResolvedMask, Masking)>,
}

/// A mask as shaders see it.
#[derive(Debug, Clone, Copy)]
struct Masking {
    kind: u32,
    shape: [usize; 4],
    words: Binding,
    bias: Option<Binding>,
    /// Whether some row has no key that counts where fills are -infinity.
    has_empty_rows: bool,
    largest_bias: f64,
}

const OPEN: u32 = 0;
const RUNS: u32 = 1;
const BITS: u32 = 2;

impl<'r> Planner<'r> {
    // ------------------------------------------------------------ how large numbers can be

    fn bound(&self, step: &Step) -> Fit<f64> {
        let of = |id: &StepId| self.largest[*id];
        let width = |id: &StepId| self.recipe.steps()[*id].width() as f64;
        let factor = |factors: &Option<Vec<f32>>| factors.as_ref().map_or(1.0, |factors| largest(factors).max(1.0));
        Ok(match &step.made {
            Made::Given(numbers) => largest(numbers),
            Made::Linear { from, linear } => {
                of(from) * width(from) * linear.largest() + linear.bias.as_ref().map_or(0.0, |bias| largest(&bias.data))
            }
            Made::Joined { before, from, after } => {
                let before = before.as_ref().map_or(0.0, of);
                before.max(of(from)).max(after.as_ref().map_or(0.0, |after| largest(&after.data)))
            }
            Made::Rotated { from, rotation } => {
                2.0 * of(from) * largest(&rotation.cos.data).max(largest(&rotation.sin.data))
            }
            Made::Positioned { from, table } => of(from) + largest(&table.data),
            Made::Dot { query, key } => width(query) * of(query) * of(key),
            Made::Scaled { from, factor } => of(from) * largest(&[*factor]).max(1.0),
            Made::Softcap { from, cap } => of(from).max(largest(&[*cap])),
            Made::Masked { from, mask: None, .. } => of(from),
            Made::Masked { from, mask: Some(mask), fill } => {
                let bias = mask.bias.as_ref().map_or(0.0, |bias| largest_but_hidden(bias));
                let fill = largest_but_hidden(&[*fill]);
                (of(from) + bias).max(fill)
            }
            Made::Softmax { .. } => 1.0,
            Made::Context { weights, value, head_mask } => of(weights) * width(weights) * of(value) * factor(head_mask),
            Made::Attended { query, key, value, how, .. } => {
                let Weighing { scale, softcap, fill, .. } = how.weighing;
                let scores = width(query) * of(query) * of(key) * largest(&[scale]).max(1.0);
                let bias = how.mask.as_ref().and_then(|mask| mask.bias.as_ref()).map_or(0.0, |b| largest_but_hidden(b));
                let fill = largest_but_hidden(&[fill]);
                let met = [scores + bias, fill, largest(&[softcap])].into_iter().find(|x| x.is_nan() || *x > LARGEST);
                met.unwrap_or(of(value) * factor(&how.head_mask))
            }
            Made::Same { from } | Made::Activated { from, .. } => of(from),
            Made::Sum { left, right } => of(left) + of(right),
            Made::Product { left, right } => of(left) * of(right),
            Made::Dropped { from, factors } => of(from) * largest(factors),
            Made::Norm { from, norm } => {
                let width = width(from);
                if 4.0 * width * of(from) * of(from) > LARGEST || norm.eps < 1e-12 {
                    return Err("a norm's squares may grow too large, or its eps is too small");
                }
                let bias = norm.bias.as_ref().map_or(0.0, |bias| largest(&bias.data));
                2.0 * width.sqrt() * largest(&norm.weight.data) + bias
            }
        })
    }

    // ------------------------------------------------------------ where numbers lie

    fn buffer(&mut self, source: Source, step: StepId, id: u32, numbers: usize) -> Fit<usize> {
        if 4 * numbers as u64 > self.limits.binding {
            return Err("one of its stages is larger than what a shader sees");
        }
        self.buffers.push(Buffer { source, step, id, numbers });
        Ok(self.buffers.len() - 1)
    }

    /// The numbers of a step, seen by a shader.
    fn from(&mut self, id: StepId) -> Fit<Binding> {
        let step = &self.recipe.steps()[id];
        let buffer = match (self.places[id], &step.made) {
            (Some(buffer), _) => buffer,
            (None, Made::Same { from } | Made::Masked { from, mask: None, .. }) => self.from(*from)?.buffer,
            (None, Made::Given(_)) if self.first == 0 => self.buffer(Source::Given, id, 0, step.size())?,
            // Only what lies before the first step that is made again.
            (None, _) => self.buffer(Source::Kept, id, 0, step.size())?,
        };
        self.places[id] = Some(buffer);
        Ok(self.whole(buffer))
    }

    fn whole(&self, buffer: usize) -> Binding {
        Binding { at: 0, buffer, offset: 0, numbers: self.buffers[buffer].numbers }
    }

    /// Where a step's numbers go.
    fn place(&mut self, id: StepId) -> Fit<Binding> {
        let buffer = self.buffer(Source::Made, id, 0, self.recipe.steps()[id].size())?;
        self.places[id] = Some(buffer);
        Ok(self.whole(buffer))
    }

    fn weight(&mut self, id: StepId, linear: &Linear) -> Fit<Binding> {
        let known = |buffer: &Buffer| buffer.source == Source::Weight && buffer.id == linear.id();
        let buffer = match self.buffers.iter().position(known) {
            Some(buffer) => buffer,
            None => self.buffer(Source::Weight, id, linear.id(), linear.weight.data.len())?,
        };
        Ok(self.whole(buffer))
    }

    /// Words among the constants.
    fn words(&mut self, words: impl IntoIterator<Item = u32>) -> Binding {
        let offset = self.constants.len();
        self.constants.extend(words);
        let numbers = self.constants.len() - offset;
        self.constants.resize(self.constants.len().next_multiple_of(ALIGNMENT), 0);
        Binding { at: 0, buffer: 0, offset, numbers }
    }

    fn floats(&mut self, numbers: &[f32]) -> Binding {
        self.words(numbers.iter().map(|x| x.to_bits()))
    }

    /// The numbers where there are some, else none, and whether there are.
    fn optional(&mut self, numbers: Option<&[f32]>) -> (Binding, u32) {
        match numbers {
            Some(numbers) => (self.floats(numbers), 1),
            None => (NOTHING, 0),
        }
    }

    // ------------------------------------------------------------ masks

    fn masking(&mut self, mask: &'r ResolvedMask) -> Fit<Masking> {
        if let Some((_, known)) = self.masks.iter().find(|(known, _)| *known == mask) {
            return Ok(*known);
        }
        let n_k = mask.shape[3];
        let visible = mask.visible();
        let rows = || mask.allowed.chunks_exact(n_k);
        // A row whose allowed keys stand side by side is said by its first and last, whatever rule made it.
        let is_runs = rows().zip(&visible).all(|(row, run)| row[run.clone()].iter().all(|&allowed| allowed != 0));
        let words = if is_runs {
            self.words(visible.iter().flat_map(|run| [run.start as u32, run.end as u32]))
        } else {
            let bits = |keys: &[u8]| keys.iter().rev().fold(0, |word, &allowed| word << 1 | u32::from(allowed != 0));
            self.words(rows().flat_map(|row| row.chunks(32).map(bits)))
        };
        let bias = mask.bias.as_ref().map(|bias| self.floats(bias));
        let has_empty_rows = match &mask.bias {
            None => visible.iter().any(|run| run.is_empty()),
            Some(bias) => rows().zip(bias.chunks_exact(n_k)).any(|(row, bias)| {
                row.iter().zip(bias).all(|(&allowed, &bias)| allowed == 0 || bias == f32::NEG_INFINITY)
            }),
        };
        let largest_bias = mask.bias.as_ref().map_or(0.0, |bias| largest_but_hidden(bias));
        let kind = if is_runs { RUNS } else { BITS };
        let masking = Masking { kind, shape: mask.shape, words, bias, has_empty_rows, largest_bias };
        self.masks.push((mask, masking));
        Ok(masking)
    }

    /// The words of `Scoring` in `score.wgsl`, and what it sees of the mask.
    fn scoring(how: Weighing, masking: Option<Masking>) -> ([u32; 8], [Binding; 2]) {
        let is_infinite = how.fill == f32::NEG_INFINITY;
        let fill = if is_infinite { 0.0 } else { how.fill };
        let [batches, heads] = masking.map_or([1, 1], |masking| [masking.shape[0], masking.shape[1]]);
        let words = [
            how.scale.to_bits(),
            how.softcap.to_bits(),
            fill.to_bits(),
            u32::from(is_infinite),
            masking.map_or(OPEN, |masking| masking.kind),
            batches as u32,
            heads as u32,
            u32::from(masking.is_some_and(|masking| masking.bias.is_some())),
        ];
        let seen = masking.map_or([NOTHING; 2], |masking| [masking.words, masking.bias.unwrap_or(NOTHING)]);
        let [mask, bias] = seen;
        (words, [Binding { at: 6, ..mask }, Binding { at: 7, ..bias }])
    }

    /// An empty row that is to be NaN is left to the central processor.
    fn check_empty_rows(masking: Option<Masking>, fill: f32, zero_empty_rows: bool) -> Fit<()> {
        match masking {
            Some(masking) if masking.has_empty_rows && !zero_empty_rows => {
                let hides_by_bias = masking.bias.is_some();
                if fill == f32::NEG_INFINITY || hides_by_bias { Err("a row that sees nothing is NaN") } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    // ------------------------------------------------------------ dispatches

    /// Adds a dispatch: its sizes, then what it sees from binding 1 on, then the mask where it has one.
    fn run(
        &mut self,
        step: StepId,
        shader: &'static str,
        overrides: Vec<(&'static str, f64)>,
        sizes: &[u32],
        seen: &[Binding],
        workgroups: [usize; 3],
    ) -> Fit<()> {
        if workgroups.iter().any(|&count| count > MOST_WORKGROUPS) {
            return Err("it has more rows than a device counts workgroups");
        }
        let sizes = self.words(sizes.iter().copied());
        let behind = seen.iter().zip(1..).map(|(seen, at)| if seen.at == 0 { Binding { at, ..*seen } } else { *seen });
        let bindings = std::iter::once(sizes).chain(behind).collect();
        let workgroups = workgroups.map(|count| count as u32);
        self.dispatches.push(Dispatch { step, shader, overrides, bindings, workgroups });
        Ok(())
    }

    fn step(&mut self, id: StepId, step: &'r Step) -> Fit<()> {
        let (numbers, width) = (step.size(), step.width());
        let each = spread(numbers.div_ceil(256));
        match &step.made {
            Made::Given(_) | Made::Same { .. } | Made::Masked { mask: None, .. } => Ok(()),
            Made::Linear { from, linear } => {
                let (rows, k) = (self.recipe.steps()[*from].size() / self.width(*from), self.width(*from));
                let (x, weight) = (self.from(*from)?, self.weight(id, linear)?);
                let bias = self.optional(linear.bias.as_ref().map(|bias| &bias.data[..]));
                let out = self.place(id)?;
                let n = linear.weight.shape[0];
                let strides = [[0, 0, k], [0, 0, k], [0, 0, n]];
                self.matmul(
                    id,
                    Product { sizes: [rows, n, k], matrices: [1, 1], group: 1, strides, is_transposed: true },
                    [x, weight, bias.0, NOTHING, out],
                    [bias.1, 0],
                )
            }
            Made::Dot { query, key } => {
                let out = self.place(id)?;
                self.dot(id, *query, *key, out)
            }
            Made::Context { weights, value, head_mask } => {
                let from = self.from(*weights)?;
                self.mix(id, from, *value, head_mask.as_deref())
            }
            Made::Attended { query, key, value, weights, how } => {
                self.attend(id, [*query, *key, *value], *weights, how)
            }
            Made::Joined { before, from, after } => {
                let out_of = |planner: &mut Self, id: &StepId| -> Fit<_> {
                    let step = &planner.recipe.steps()[*id];
                    Ok((
                        planner.from(*id)?,
                        sizes_of([step.shape[2], step.strides[0], step.strides[1], step.strides[2]]),
                    ))
                };
                let (before, before_sizes) = match before {
                    Some(before) => out_of(self, before)?,
                    None => (NOTHING, [0; 4]),
                };
                let (middle, middle_sizes) = out_of(self, from)?;
                let (after, _) = self.optional(after.as_ref().map(|after| &after.data[..]));
                let own = sizes_of([numbers, step.shape[1], step.shape[2], width]);
                let sizes = [own, before_sizes, middle_sizes].concat();
                let out = self.place(id)?;
                self.run(id, "join", vec![], &sizes, &[before, middle, after, out], each)
            }
            Made::Rotated { from, rotation } => {
                let pairs = rotation.cos.width();
                let sizes = [numbers, width, step.shape[2], step.strides[2], pairs, usize::from(rotation.interleaved)];
                let from = self.from(*from)?;
                let [cos, sin] = [&rotation.cos, &rotation.sin].map(|table| self.floats(&table.data));
                let out = self.place(id)?;
                self.run(id, "rotary", vec![], &sizes_of(sizes), &[from, cos, sin, out], each)
            }
            Made::Masked { from, mask: Some(mask), fill } => {
                let masking = self.masking(mask)?;
                let how = Weighing { scale: 1.0, softcap: 0.0, fill: *fill, zero_empty_rows: false };
                let (scoring, [words_of_mask, bias]) = Self::scoring(how, Some(masking));
                let sizes = [&scoring[..], &sizes_of([numbers, step.shape[1], step.shape[2], width])].concat();
                let (from, out) = (self.from(*from)?, self.place(id)?);
                self.run(id, "mask", vec![], &sizes, &[from, out, words_of_mask, bias], each)
            }
            Made::Softmax { from, zero_empty_rows } => {
                if let Made::Masked { mask: Some(mask), fill, .. } = &self.recipe.steps()[*from].made {
                    Self::check_empty_rows(Some(self.masking(mask)?), *fill, *zero_empty_rows)?;
                }
                let how = Weighing { scale: 1.0, softcap: 0.0, fill: 0.0, zero_empty_rows: false };
                let (from, out) = (self.from(*from)?, self.place(id)?);
                self.softmax(id, &step.shape, from, out, how, None)
            }
            Made::Norm { from, norm } => self.norm(id, *from, norm),
            Made::Positioned { from, table } => {
                let period = step.shape[1] * width;
                let table = self.floats(&table.data[..period]);
                self.elementwise(id, SUM, *from, Some(table), 0.0)
            }
            Made::Sum { left, right } => {
                let right = self.from(*right)?;
                self.elementwise(id, SUM, *left, Some(right), 0.0)
            }
            Made::Product { left, right } => {
                let right = self.from(*right)?;
                self.elementwise(id, PRODUCT, *left, Some(right), 0.0)
            }
            Made::Dropped { from, factors } => {
                let factors = self.floats(factors);
                self.elementwise(id, PRODUCT, *from, Some(factors), 0.0)
            }
            Made::Scaled { from, factor } => self.elementwise(id, SCALED, *from, None, *factor),
            Made::Softcap { from, cap } => self.elementwise(id, SOFTCAP, *from, None, *cap),
            Made::Activated { from, activation } => {
                let operation = match activation {
                    Activation::Relu => RELU,
                    Activation::Gelu => GELU,
                    Activation::GeluTanh => GELU_TANH,
                    Activation::Silu => SILU,
                };
                self.elementwise(id, operation, *from, None, 0.0)
            }
        }
    }

    fn width(&self, id: StepId) -> usize {
        self.recipe.steps()[id].width()
    }

    fn elementwise(
        &mut self,
        id: StepId,
        operation: u32,
        left: StepId,
        right: Option<Binding>,
        factor: f32,
    ) -> Fit<()> {
        let numbers = self.recipe.steps()[id].size();
        let right = right.unwrap_or(NOTHING);
        let sizes = [numbers as u32, right.numbers.max(1) as u32, factor.to_bits()];
        let (left, out) = (self.from(left)?, self.place(id)?);
        let overrides = vec![("OPERATION", operation.into())];
        self.run(id, "elementwise", overrides, &sizes, &[left, right, out], spread(numbers.div_ceil(256)))
    }

    fn norm(&mut self, id: StepId, from: StepId, norm: &Norm) -> Fit<()> {
        let width = self.width(id);
        let rows = self.recipe.steps()[id].size() / width;
        let (from, weight, out) = (self.from(from)?, self.floats(&norm.weight.data), self.place(id)?);
        let sizes = [rows as u32, width as u32, norm.eps.to_bits()];
        match norm.kind {
            NormKind::Rms => self.run(id, "rms_norm", vec![], &sizes, &[from, weight, out], spread(rows)),
            NormKind::Layer => {
                let (bias, has_bias) = self.optional(norm.bias.as_ref().map(|bias| &bias.data[..]));
                let sizes = [&sizes[..], &[has_bias]].concat();
                self.run(id, "layer_norm", vec![], &sizes, &[from, weight, bias, out], spread(rows))
            }
        }
    }

    fn matmul(&mut self, id: StepId, product: Product, seen: [Binding; 5], [bias, factors]: [u32; 2]) -> Fit<()> {
        let Product { sizes: [m, n, k], matrices: [batch, heads], group, strides: [a, b, out], is_transposed } =
            product;
        let is_aligned = |strides: [usize; 3]| strides.iter().all(|stride| stride.is_multiple_of(4));
        let overrides = vec![
            ("TRANSPOSED", is_transposed.into()),
            ("A_ALIGNED", is_aligned(a).into()),
            ("B_ALIGNED", is_aligned(b).into()),
        ];
        let mut sizes = sizes_of([m, n, k, heads, group]).to_vec();
        sizes.extend([a, b, out].as_flattened().iter().map(|&stride| stride as u32));
        sizes.extend([bias, factors]);
        self.run(id, "matmul", overrides, &sizes, &seen, [n.div_ceil(32), m.div_ceil(32), batch * heads])
    }

    /// query · keyᵀ, row-major.
    fn dot(&mut self, id: StepId, query: StepId, key: StepId, out: Binding) -> Fit<()> {
        let (from, to) = (&self.recipe.steps()[query], &self.recipe.steps()[key]);
        let [batch, heads, n_q, d_k] = four(&from.shape);
        let n_k = to.shape[2];
        let product = Product {
            sizes: [n_q, n_k, d_k],
            matrices: [batch, heads],
            group: heads / to.shape[1],
            strides: [three(&from.strides), three(&to.strides), [heads * n_q * n_k, n_q * n_k, n_k]],
            is_transposed: true,
        };
        let (query, key) = (self.from(query)?, self.from(key)?);
        self.matmul(id, product, [query, key, NOTHING, NOTHING, out], [0, 0])
    }

    /// weights · value, the weights row-major.
    fn mix(&mut self, id: StepId, weights: Binding, value: StepId, head_mask: Option<&[f32]>) -> Fit<()> {
        let (step, from) = (&self.recipe.steps()[id], &self.recipe.steps()[value]);
        let [batch, heads, n_q, d_v] = four(&step.shape);
        let n_k = from.shape[2];
        let product = Product {
            sizes: [n_q, d_v, n_k],
            matrices: [batch, heads],
            group: heads / from.shape[1],
            strides: [[heads * n_q * n_k, n_q * n_k, n_k], three(&from.strides), three(&step.strides)],
            is_transposed: false,
        };
        let (factors, has_factors) = self.optional(head_mask);
        let (value, out) = (self.from(value)?, self.place(id)?);
        self.matmul(id, product, [weights, value, NOTHING, factors, out], [0, has_factors])
    }

    fn softmax(
        &mut self,
        id: StepId,
        shape: &[usize],
        scores: Binding,
        weights: Binding,
        how: Weighing,
        masking: Option<Masking>,
    ) -> Fit<()> {
        let [batch, heads, n_q, n_k] = four(shape);
        let rows = batch * heads * n_q;
        let (scoring, [mask, bias]) = Self::scoring(how, masking);
        let sizes = [&scoring[..], &sizes_of([rows, heads, n_q, n_k])].concat();
        self.run(id, "softmax", vec![], &sizes, &[scores, weights, mask, bias], spread(rows))
    }

    /// In one sweep where the weights are not wanted and a row of values fits; else one after the other.
    fn attend(
        &mut self,
        id: StepId,
        [query, key, value]: [StepId; 3],
        weights: Option<StepId>,
        how: &'r Attended,
    ) -> Fit<()> {
        let Attended { weighing, mask, head_mask } = how;
        let masking = mask.as_ref().map(|mask| self.masking(mask)).transpose()?;
        Self::check_empty_rows(masking, weighing.fill, weighing.zero_empty_rows)?;
        let step = &self.recipe.steps()[id];
        let [from_query, from_key, from_value] = [query, key, value].map(|id| &self.recipe.steps()[id]);
        let [batch, heads, n_q, d_v] = four(&step.shape);
        let (n_k, d_k) = (from_key.shape[2], from_query.width());
        if weights.is_some() || 4 * (QUERIES * (d_v + KEYS)) as u64 > self.limits.workgroup_storage {
            let shape = [batch, heads, n_q, n_k];
            let numbers = shape.iter().product();
            let scores = self.buffer(Source::Scratch, id, 0, numbers)?;
            let scores = self.whole(scores);
            let shares = match weights {
                Some(weights) => self.place(weights)?,
                None => {
                    let shares = self.buffer(Source::Scratch, id, 0, numbers)?;
                    self.whole(shares)
                }
            };
            self.dot(id, query, key, scores)?;
            self.softmax(id, &shape, scores, shares, *weighing, masking)?;
            return self.mix(id, shares, value, head_mask.as_deref());
        }
        let mut weighing = *weighing;
        if let Some(masking) = masking {
            // Where every row sees a key and fills lie so far below all scores, a hidden key's weight is 0 and it need not be met.
            let dot = d_k as f64 * self.largest[query] * self.largest[key] * f64::from(weighing.scale.abs());
            let lowest = -(dot + masking.largest_bias);
            if !masking.has_empty_rows && f64::from(weighing.fill) < lowest - 104.0 {
                weighing.fill = f32::NEG_INFINITY;
            }
        }
        let is_aligned = [&from_query.strides, &from_key.strides]
            .into_iter()
            .flatten()
            .all(|stride| stride % 4 == 0 || *stride == 1);
        let is_aligned = is_aligned && d_k.is_multiple_of(4);
        let group = heads / from_key.shape[1];
        let (scoring, [words_of_mask, bias]) = Self::scoring(weighing, masking);
        let mut sizes = scoring.to_vec();
        sizes.extend(sizes_of([n_q, n_k, d_k, heads, group]));
        for step in [from_query, from_key, from_value, step] {
            sizes.extend(sizes_of(three(&step.strides)));
        }
        let (factors, has_factors) = self.optional(head_mask.as_deref());
        sizes.push(has_factors);
        let (query, key, value) = (self.from(query)?, self.from(key)?, self.from(value)?);
        let out = self.place(id)?;
        let overrides = vec![("D_V", d_v as f64), ("ALIGNED", is_aligned.into())];
        let seen = [query, key, value, factors, out, words_of_mask, bias];
        self.run(id, "attention", overrides, &sizes, &seen, [n_q.div_ceil(QUERIES), batch * heads, 1])
    }

    // ------------------------------------------------------------ what comes back

    fn finish(mut self, wanted: &[StepId]) -> Fit<GpuPlan> {
        self.buffers[0].numbers = self.constants.len();
        if 4 * self.constants.len() as u64 > self.limits.binding {
            return Err("its masks and tables are larger than what a shader sees");
        }
        let recipe = self.recipe;
        let mut reads = Vec::new();
        let mut size = 0;
        if recipe.keeps() {
            let before = if self.first > 0 { recipe.shared_size() } else { 0 };
            size = recipe.size() - before;
            let made = self.buffers.iter().enumerate().filter(|(_, buffer)| buffer.source == Source::Made);
            reads.extend(made.map(|(buffer, &Buffer { step, .. })| Read {
                step,
                buffer,
                at: recipe.steps()[step].offset - before,
            }));
        } else {
            for &step in wanted {
                let Binding { buffer, numbers, .. } = self.from(step)?;
                reads.push(Read { step, buffer, at: size });
                size += numbers;
            }
        }
        let masked = recipe.masked().unwrap_or(0);
        let is_before = |buffer: &usize| {
            let Buffer { source, step, .. } = self.buffers[*buffer];
            matches!(source, Source::Given | Source::Made | Source::Kept) && step < masked
        };
        let seen_behind = self.dispatches.iter().filter(|dispatch| dispatch.step >= masked);
        let mut kept: Vec<usize> =
            seen_behind.flat_map(|dispatch| &dispatch.bindings).map(|seen| seen.buffer).collect();
        kept.retain(is_before);
        kept.sort_unstable();
        kept.dedup();
        let Self { buffers, constants, dispatches, .. } = self;
        Ok(GpuPlan { buffers, constants, dispatches, reads, size, kept })
    }
}

/// Queries that a workgroup of `attention.wgsl` takes, and keys that it meets at a time.
const QUERIES: usize = 16;
const KEYS: usize = 32;

/// The operations of `elementwise.wgsl`.
const SUM: u32 = 0;
const PRODUCT: u32 = 1;
const SCALED: u32 = 2;
const SOFTCAP: u32 = 3;
const RELU: u32 = 4;
const GELU: u32 = 5;
const GELU_TANH: u32 = 6;
const SILU: u32 = 7;

/// Some of the constants, for a binding that a shader does not read.
const NOTHING: Binding = Binding { at: 0, buffer: 0, offset: 0, numbers: ALIGNMENT };

/// A product of matrices, one for each batch entry and head: `out[m, n] = a[m, k] · b`.
struct Product {
    /// m, n, k
    sizes: [usize; 3],
    /// batch, heads
    matrices: [usize; 2],
    /// Heads of a that share one of b.
    group: usize,
    /// Of a, b and out: from one batch entry, head and row to the next.
    strides: [[usize; 3]; 3],
    is_transposed: bool,
}

/// So many workgroups over two axes, since one counts to 65535 only.
fn spread(count: usize) -> [usize; 3] {
    let columns = count.clamp(1, MOST_WORKGROUPS);
    [columns, count.div_ceil(columns), 1]
}

fn sizes_of<const N: usize>(sizes: [usize; N]) -> [u32; N] {
    sizes.map(|size| size as u32)
}

fn four(shape: &[usize]) -> [usize; 4] {
    let [batch, heads, rows, width] = shape[..] else { unreachable!("queries, keys and values are cut into heads") };
    [batch, heads, rows, width]
}

fn three(strides: &[usize]) -> [usize; 3] {
    [strides[0], strides[1], strides[2]]
}

/// The largest magnitude; infinity where one is infinite or NaN.
pub(crate) fn largest(numbers: &[f32]) -> f64 {
    largest_of(numbers.iter())
}

/// The same where -infinity hides.
fn largest_but_hidden(bias: &[f32]) -> f64 {
    largest_of(bias.iter().filter(|x| **x != f32::NEG_INFINITY))
}

fn largest_of<'a>(numbers: impl Iterator<Item = &'a f32>) -> f64 {
    // As bits without a sign, numbers are in order: NaN stands behind infinity, which stands behind all others.
    let bits = numbers.map(|x| x.to_bits() & !(1 << 31)).max().unwrap_or(0);
    f32::from_bits(bits.min(f32::INFINITY.to_bits())).into()
}

fn plain_list<T>(items: Vec<T>, plain: impl Fn(T) -> Plain) -> Plain {
    Plain::List(items.into_iter().map(plain).collect())
}

/// All but the constants, which are many.
impl From<GpuPlan> for Plain {
    fn from(plan: GpuPlan) -> Self {
        let buffer = |Buffer { source, step, id, numbers }: Buffer| {
            let id = (id as usize).into();
            Self::Object(vec![
                ("source", source.into()),
                ("step", step.into()),
                ("id", id),
                ("numbers", numbers.into()),
            ])
        };
        let binding = |Binding { at, buffer, offset, numbers }: Binding| {
            let at = (at as usize).into();
            let place = [("at", at), ("buffer", buffer.into()), ("offset", offset.into()), ("numbers", numbers.into())];
            Self::Object(place.into())
        };
        let dispatch = |Dispatch { step, shader, overrides, bindings, workgroups }: Dispatch| {
            let overrides = overrides.into_iter().map(|(name, value)| (name, value.into()));
            Self::Object(vec![
                ("step", step.into()),
                ("shader", String::from(shader).into()),
                ("overrides", Self::Object(overrides.collect())),
                ("bindings", plain_list(bindings, binding)),
                ("workgroups", plain_list(workgroups.to_vec(), |count| (count as usize).into())),
            ])
        };
        let read = |Read { step, buffer, at }: Read| {
            Self::Object(vec![("step", step.into()), ("buffer", buffer.into()), ("at", at.into())])
        };
        Self::Object(vec![
            ("buffers", plain_list(plan.buffers, buffer)),
            ("dispatches", plain_list(plan.dispatches, dispatch)),
            ("reads", plain_list(plan.reads, read)),
            ("size", plan.size.into()),
            ("kept", plan.kept.into()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::{QueryKeyValue, plan_attention};
    use crate::config::{
        EmptyRow, ForwardOptions, MultiHeadAttentionOptions, Positions, RemaskOptions, ScaledDotProductOptions,
        TransformerOptions,
    };
    use crate::mask::Mask;
    use crate::multi_head_attention::MultiHeadAttention;
    use crate::tensor::Tensor;
    use crate::torch::Generator;
    use crate::trace::Plan;
    use crate::transformer::{Memory, Transformer};

    const DEFAULT: GpuLimits = GpuLimits { binding: 128 << 20, workgroup_storage: 16 << 10 };
    const MAX_BYTES: usize = 1 << 30;

    const BEFORE: [&str; 2] = [include_str!("shaders/exp.wgsl"), include_str!("shaders/score.wgsl")];
    /// Each kernel with the binding that it writes.
    const KERNELS: [(&str, &str, u32); 9] = [
        ("attention", include_str!("shaders/attention.wgsl"), 5),
        ("elementwise", include_str!("shaders/elementwise.wgsl"), 3),
        ("join", include_str!("shaders/join.wgsl"), 4),
        ("layer_norm", include_str!("shaders/layer_norm.wgsl"), 4),
        ("mask", include_str!("shaders/mask.wgsl"), 2),
        ("matmul", include_str!("shaders/matmul.wgsl"), 5),
        ("rms_norm", include_str!("shaders/rms_norm.wgsl"), 3),
        ("rotary", include_str!("shaders/rotary.wgsl"), 4),
        ("softmax", include_str!("shaders/softmax.wgsl"), 2),
    ];

    fn random(shape: &[usize]) -> Tensor {
        Tensor { shape: shape.to_vec(), data: Generator::new(7).randn(shape.iter().product()) }
    }

    fn on_gpu(plan: &Plan) -> std::result::Result<GpuPlan, &'static str> {
        plan.on_gpu(DEFAULT).unwrap()
    }

    fn kernel(dispatch: &Dispatch) -> (&'static str, u32) {
        let found = KERNELS.iter().find(|(name, ..)| *name == dispatch.shader);
        let (_, text, written) = found.expect("a shader of this name");
        (text, *written)
    }

    fn sizes<'a>(gpu: &'a GpuPlan, dispatch: &Dispatch) -> &'a [u32] {
        &gpu.constants[dispatch.bindings[0].offset..][..dispatch.bindings[0].numbers]
    }

    /// What holds of every plan.
    fn check(plan: &Plan, first: StepId) -> GpuPlan {
        let gpu = on_gpu(plan).expect("a pass for the GPU");
        let mut written = vec![false; gpu.buffers.len()];
        for dispatch in &gpu.dispatches {
            let (text, output) = kernel(dispatch);
            let source = BEFORE.iter().chain([&text]).copied().collect::<String>();
            for (name, _) in &dispatch.overrides {
                assert!(text.contains(&format!("override {name}:")), "{name} of {}", dispatch.shader);
            }
            for (place, seen) in dispatch.bindings.iter().enumerate() {
                assert!(source.contains(&format!("@binding({})", seen.at)), "{} has no {}", dispatch.shader, seen.at);
                assert!(dispatch.bindings[..place].iter().all(|other| other.at != seen.at));
                let buffer = gpu.buffers[seen.buffer];
                assert!(seen.offset + seen.numbers <= buffer.numbers, "{dispatch:?}");
                assert_eq!(seen.offset % ALIGNMENT, 0);
                let is_made = matches!(buffer.source, Source::Made | Source::Scratch);
                if seen.at == output {
                    assert!(is_made && !written[seen.buffer], "{dispatch:?} writes what is there");
                    assert_eq!(dispatch.bindings.iter().filter(|other| other.buffer == seen.buffer).count(), 1);
                } else {
                    assert!(!is_made || written[seen.buffer], "{dispatch:?} reads what is not there yet");
                }
            }
            written[dispatch.bindings.iter().find(|seen| seen.at == output).unwrap().buffer] = true;
            cover(&gpu, dispatch);
        }
        // Every step is made once.
        for (id, step) in plan.recipe.steps().iter().enumerate().skip(first) {
            let is_there = matches!(step.made, Made::Same { .. } | Made::Masked { mask: None, .. });
            let is_given = matches!(&step.made, Made::Given(numbers) if !numbers.is_empty());
            let made = gpu.buffers.iter().filter(|buffer| buffer.source == Source::Made && buffer.step == id);
            assert_eq!(made.count(), usize::from(!is_there && !is_given), "{:?}", step.stage);
        }
        for read in &gpu.reads {
            assert!(read.at + gpu.buffers[read.buffer].numbers <= gpu.size);
        }
        gpu
    }

    /// The workgroups reach every number.
    fn cover(gpu: &GpuPlan, dispatch: &Dispatch) {
        let [x, y, z] = dispatch.workgroups;
        assert!(dispatch.workgroups.iter().all(|&count| (1..=65_535).contains(&count)));
        let sizes = sizes(gpu, dispatch);
        let (reached, needed) = match dispatch.shader {
            "matmul" => {
                assert!(32 * x >= sizes[1] && 32 * y >= sizes[0]);
                (z % sizes[3], 0)
            }
            "attention" => (16 * x, sizes[8]),
            "softmax" => (x * y, sizes[8]),
            "layer_norm" | "rms_norm" => (x * y, sizes[0]),
            "mask" => (256 * x * y, sizes[8]),
            _ => (256 * x * y, sizes[0]),
        };
        assert!(reached >= needed, "{dispatch:?}");
    }

    fn shaders(gpu: &GpuPlan) -> Vec<&'static str> {
        gpu.dispatches.iter().map(|dispatch| dispatch.shader).collect()
    }

    fn attention(n: usize, d: usize, mask: Option<&Mask>, options: &ScaledDotProductOptions) -> Plan {
        let [query, key] = [random(&[4, n, d]), random(&[2, n, d])];
        let inputs = QueryKeyValue { query: &query, key: &key, value: &key, past: None };
        plan_attention(inputs, mask, options, MAX_BYTES).unwrap()
    }

    #[test]
    fn attention_of_any_size() {
        for n in [1, 3, 17, 65, 129] {
            for d in [1, 3, 4, 6, 65] {
                for (trace, need_weights) in [(true, true), (false, true), (false, false)] {
                    let options = ScaledDotProductOptions { trace, need_weights, ..Default::default() };
                    for mask in [None, Some(&Mask::Causal), Some(&Mask::Alibi { heads: 4 })] {
                        check(&attention(n, d, mask, &options), 0);
                    }
                }
            }
        }
    }

    #[test]
    fn weights_that_nobody_wants_are_never_held() {
        let wanted = ScaledDotProductOptions::default();
        assert_eq!(shaders(&check(&attention(65, 8, None, &wanted), 0)), ["matmul", "softmax", "matmul"]);
        let unwanted = ScaledDotProductOptions { need_weights: false, ..wanted };
        let gpu = check(&attention(65, 8, None, &unwanted), 0);
        assert_eq!(shaders(&gpu), ["attention"]);
        assert!(gpu.buffers.iter().all(|buffer| buffer.numbers < 65 * 65));
        // A row of values that does not fit goes the long way.
        assert_eq!(shaders(&check(&attention(3, 256, None, &unwanted), 0)), ["matmul", "softmax", "matmul"]);
    }

    #[test]
    fn masks_cross_as_runs_or_bits() {
        let options = ScaledDotProductOptions { need_weights: false, ..Default::default() };
        let words = |mask: Mask| {
            let gpu = check(&attention(129, 8, Some(&mask), &options), 0);
            let dispatch = &gpu.dispatches[0];
            (sizes(&gpu, dispatch)[4], dispatch.bindings.iter().find(|seen| seen.at == 6).unwrap().numbers)
        };
        let window = Mask::SlidingWindow { left: 5, right: 2 };
        assert_eq!(words(window.clone()), (RUNS, 2 * 129));
        assert_eq!(words(Mask::And { left: Box::new(Mask::Causal), right: Box::new(window) }), (RUNS, 2 * 129));
        assert_eq!(words(Mask::Dilated { width: 9, stride: 2 }), (BITS, 129 * 5));
    }

    #[test]
    fn modules_and_blocks() {
        let mut generator = Generator::new(1);
        for (n, batch) in [(1, 1), (3, 2), (17, 1), (65, 1)] {
            let x = random(&[batch, n, 12]);
            for trace in [false, true] {
                let options = ForwardOptions { trace, head_mask: Some(vec![1.0, 0.0]), ..Default::default() };
                let mut settings = MultiHeadAttentionOptions::new(12, 2);
                settings.residual_norm = true;
                settings.bias_kv = true;
                settings.add_zero_attn = true;
                settings.qk_norm = true;
                let mha = MultiHeadAttention::new(&settings, &mut generator, MAX_BYTES).unwrap();
                check(&mha.plan(&x, None, None, Some(&Mask::Causal), &options, MAX_BYTES).unwrap(), 0);

                let options = ForwardOptions { trace, ..Default::default() };
                let mut settings = TransformerOptions::new(12, 2);
                settings.n_layers = Some(2);
                settings.gated = true;
                settings.positions = Positions::Sinusoidal;
                settings.final_norm = true;
                settings.norm = NormKind::Rms;
                let stack = Transformer::encoder(settings.clone(), &mut generator, MAX_BYTES).unwrap();
                check(&stack.plan(&x, None, Some(&Mask::Causal), &options, MAX_BYTES).unwrap(), 0);
                let decoder = Transformer::decoder(settings.clone(), &mut generator, MAX_BYTES).unwrap();
                let memory = Some(Memory { rows: &x, mask: None });
                check(&decoder.plan(&x, memory, Some(&Mask::Causal), &options, MAX_BYTES).unwrap(), 0);
                settings.dropout = 0.5;
                settings.positions = Positions::Rope;
                let stack = Transformer::encoder(settings, &mut generator, MAX_BYTES).unwrap();
                let training = stack.plan_training(&x, None, None, &options, &mut generator, MAX_BYTES).unwrap();
                check(&training, 0);
            }
        }
    }

    #[test]
    fn another_mask_begins_where_it_reaches() {
        let options = ForwardOptions { trace: true, ..Default::default() };
        let mut settings = TransformerOptions::new(8, 2);
        settings.n_layers = Some(2);
        let stack = Transformer::encoder(settings, &mut Generator::new(1), MAX_BYTES).unwrap();
        let plan = stack.plan(&random(&[5, 8]), None, Some(&Mask::Causal), &options, MAX_BYTES).unwrap();
        let before = check(&plan, 0);
        let masked = plan.recipe.masked().unwrap();
        let kept: Vec<_> = before.kept.iter().map(|&at| before.buffers[at].step).collect();
        let again = plan.run(&mut |_| {}).unwrap().plan_remask(None, &RemaskOptions::default()).unwrap();
        let gpu = check(&again, masked);
        let reused = gpu.buffers.iter().filter(|buffer| buffer.source == Source::Kept);
        let reused: Vec<_> = reused.map(|buffer| buffer.step).collect();
        assert!(!reused.is_empty() && reused.iter().all(|step| kept.contains(step)), "{reused:?} of {kept:?}");
        assert!(gpu.dispatches.iter().all(|dispatch| dispatch.step >= masked));
        // No weight of a projection before the mask is asked for.
        let weights = |gpu: &GpuPlan| gpu.buffers.iter().filter(|buffer| buffer.source == Source::Weight).count();
        assert_eq!((weights(&before), weights(&gpu)), (12, 9));
    }

    #[test]
    fn what_may_not_be_faithful_stays() {
        let plan = |number: f32, mask: Option<&Mask>, options: &ScaledDotProductOptions| {
            let mut query = random(&[3, 4]);
            let key = query.clone();
            query.data[5] = number;
            let inputs = QueryKeyValue { query: &query, key: &key, value: &key, past: None };
            on_gpu(&plan_attention(inputs, mask, options, MAX_BYTES).unwrap()).is_ok()
        };
        for trace in [false, true] {
            let options = ScaledDotProductOptions { trace, ..Default::default() };
            assert!(plan(1.0, None, &options));
            for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e37] {
                assert!(!plan(number, None, &options), "{number}");
            }
            // A row that sees nothing: shares of the fill, NaN, or zeros.
            let nothing = Mask::Padding { lengths: vec![0] };
            assert!(plan(1.0, Some(&nothing), &options));
            let infinite = ScaledDotProductOptions { mask_fill: f32::NEG_INFINITY, ..options };
            assert!(plan(1.0, Some(&Mask::Causal), &infinite));
            assert!(!plan(1.0, Some(&nothing), &infinite));
            let zero = ScaledDotProductOptions { empty_row: EmptyRow::Zero, ..infinite };
            assert!(plan(1.0, Some(&nothing), &zero));
            // The same by a bias.
            let bias = |number: f32| Mask::Additive {
                shape: vec![3],
                data: [0.0, 0.0, number].into_iter().flat_map(f32::to_le_bytes).collect(),
                axes: None,
            };
            assert!(plan(1.0, Some(&bias(f32::NEG_INFINITY)), &zero));
            assert!(!plan(1.0, Some(&bias(f32::INFINITY)), &zero));
            assert!(!plan(1.0, Some(&bias(f32::NAN)), &zero));
        }
    }

    #[test]
    fn what_does_not_fit_stays() {
        let plan = attention(65, 8, None, &ScaledDotProductOptions::default());
        let small = GpuLimits { binding: 4 * 4 * 65 * 65 - 1, ..DEFAULT };
        assert!(plan.on_gpu(small).unwrap().is_err());
        assert!(plan.on_gpu(GpuLimits { binding: 4 * 4 * 65 * 65, ..DEFAULT }).unwrap().is_ok());
    }
}
