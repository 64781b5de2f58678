//! A pass as work for a graphics processor: which shader of `shaders/` runs, on which buffers, with which sizes, in how many
//! workgroups. Nothing here touches a device.
//!
//! A processor may treat NaN and infinity as it likes (<https://www.w3.org/TR/WGSL/#floating-point-evaluation>). A pass therefore
//! goes to it only where neither can come up: from how large the numbers are that a step takes follows how large those can be
//! that it gives. Hidden scores of -infinity are the exception; the shaders know them by their bits.

use crate::given::words;
use crate::outline::{
    ALIGNMENT, BIAS, DISTANCES, Frame, NO_TABLE, NONE, OPEN, Outlined, OutlinedMask, Table, kind, operation,
};
use crate::plain::Plain;

/// The most workgroups along an axis, on every device.
const MOST_WORKGROUPS: usize = 65_535;
/// The largest number that may come up; what an infinity is not made of even where some are multiplied by a few.
const LARGEST: f64 = 1e37;
/// The last user of numbers that are read when all is done.
const NEVER_FREE: usize = usize::MAX;

/// A pass as work for a graphics processor.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct GpuPlan {
    /// What the dispatches run on; the first holds the outline's tables, and behind them the sizes.
    pub buffers: Vec<Buffer>,
    /// The sizes of each dispatch, each at a multiple of 64 words.
    #[cfg_attr(feature = "typescript", ts(type = "Uint32Array"))]
    pub sizes: Vec<u32>,
    /// The work, in order.
    pub dispatches: Vec<Dispatch>,
    /// What is copied back, one behind the other or at the places of the arena.
    pub reads: Vec<ReadBack>,
    /// How many numbers that makes, with what lies between.
    pub size: usize,
    /// Buffers that a pass with another mask would use again.
    pub kept: Vec<usize>,
    /// The buffer that holds each step when all is done; -1 where none does.
    pub places: Vec<i32>,
}

/// A buffer and what is in it at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Buffer {
    /// Where its numbers come from.
    pub source: Source,
    /// The step that they belong to, the last of several in a place that they share.
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
    /// The tables and sizes.
    Constants,
    /// The caller, who gives this step.
    Given,
    /// A projection's weight.
    Weight,
    /// The pass before, which had another mask.
    Kept,
    /// A dispatch, which makes this step, or helps to make it.
    Made,
}

words!(Source: Constants, Given, Weight, Kept, Made);

/// One run of a shader.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Dispatch {
    /// The step that it makes, or helps to make.
    pub step: usize,
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
pub struct ReadBack {
    /// The step whose numbers these are.
    pub step: usize,
    /// The buffer's place in the plan.
    pub buffer: usize,
    /// Where they go.
    pub at: usize,
}

/// Why a pass is left to the central processor.
type Placed<T> = std::result::Result<T, &'static str>;

/// The plan of an outlined pass whose tables are so many words, for a device whose shaders see at most `most_bytes` of a buffer
/// (`maxStorageBufferBindingSize`); or why it is left to the central processor.
pub fn plan(frame: Frame, steps: &[Outlined], tables: usize, most_bytes: u64) -> Placed<GpuPlan> {
    let mut planner = Planner {
        frame,
        steps,
        tables,
        most_bytes,
        buffers: vec![Buffer { source: Source::Constants, step: 0, id: 0, numbers: 0 }],
        sizes: Vec::new(),
        dispatches: Vec::new(),
        places: vec![None; steps.len()],
        last_users: last_users(frame, steps),
        free: Vec::new(),
        largest: Vec::new(),
    };
    for (id, step) in steps.iter().enumerate() {
        let largest = planner.bound(step)?;
        // NaN is infinity times 0.
        if largest.is_nan() || largest > LARGEST {
            return Err("its numbers are not finite, or may grow too large");
        }
        planner.largest.push(largest);
        if id >= frame.first as usize {
            planner.step(id, step)?;
            planner.free_after(id);
        }
    }
    planner.finish()
}

/// The step that needs each step's numbers last; [`NEVER_FREE`] where they are to be read when all is done.
fn last_users(frame: Frame, steps: &[Outlined]) -> Vec<usize> {
    let is_read = |step: &Outlined| frame.keeps == 1 || step.is_wanted == 1;
    let users = steps.iter().enumerate().map(|(id, step)| if is_read(step) { NEVER_FREE } else { id });
    let mut last_users: Vec<_> = users.collect();
    for (id, step) in steps.iter().enumerate().rev() {
        let user = if step.kind == kind::SAME { last_users[id] } else { id };
        for from in step.froms() {
            if let Some(last) = last_users.get_mut(from) {
                *last = user.max(*last);
            }
        }
    }
    last_users
}

struct Planner<'r> {
    frame: Frame,
    steps: &'r [Outlined],
    tables: usize,
    most_bytes: u64,
    buffers: Vec<Buffer>,
    sizes: Vec<u32>,
    dispatches: Vec<Dispatch>,
    /// Where each step's numbers lie.
    places: Vec<Option<usize>>,
    last_users: Vec<usize>,
    /// Buffers whose numbers no step needs any more.
    free: Vec<usize>,
    /// How large each step's numbers can be.
    largest: Vec<f64>,
}

impl Outlined {
    fn numbers(&self) -> usize {
        self.shape.iter().map(|&axis| axis as usize).product()
    }

    fn width(&self) -> usize {
        self.shape[3] as usize
    }

    /// The steps that it is made from.
    fn froms(&self) -> [usize; 3] {
        self.from.map(|id| id as usize)
    }

    fn is_infinite(&self) -> bool {
        self.fill == f32::NEG_INFINITY
    }
}

/// A size that is not below 1: for what multiplies only where there is one.
fn at_least_1(x: f32) -> f64 {
    if x.is_nan() { f64::INFINITY } else { f64::from(x.abs()).max(1.0) }
}

impl Planner<'_> {
    // ------------------------------------------------------------ how large numbers can be

    fn bound(&self, step: &Outlined) -> Placed<f64> {
        let of = |at: usize| self.largest[step.from[at] as usize];
        let width = |at: usize| self.steps[step.from[at] as usize].width() as f64;
        let table = |at: usize| f64::from(step.tables[at].largest);
        let factors = || at_least_1(step.tables[0].largest);
        let fill = if step.is_infinite() { 0.0 } else { at_least_1(step.fill) };
        Ok(match step.kind {
            kind::GIVEN | kind::KEPT => step.largest.into(),
            kind::LINEAR => of(0) * width(0) * table(0) + table(1),
            kind::JOINED => of(0).max(if step.from[1] == NONE { 0.0 } else { of(1) }).max(table(0)),
            kind::ROTATED => 2.0 * of(0) * table(0).max(table(1)),
            kind::DOT => width(0) * of(0) * of(1),
            kind::MASKED => (of(0) + f64::from(step.mask.bias.largest)).max(fill),
            kind::SOFTMAX => 1.0,
            kind::CONTEXT => of(0) * width(0) * of(1) * factors(),
            kind::ATTENDED => {
                let scores = width(0) * of(0) * of(1) * at_least_1(step.scale) + f64::from(step.mask.bias.largest);
                let met = [scores, fill, at_least_1(step.softcap)].into_iter().find(|x| x.is_nan() || *x > LARGEST);
                met.unwrap_or(of(2) * factors())
            }
            kind::LAYER_NORM | kind::RMS_NORM => {
                if 4.0 * width(0) * of(0) * of(0) > LARGEST || step.eps < 1e-12 {
                    return Err("a norm's squares may grow too large, or its eps is too small");
                }
                2.0 * width(0).sqrt() * table(0) + table(1)
            }
            kind::ELEMENTWISE => {
                let right = if step.from[1] == NONE { table(0) } else { of(1) };
                match step.detail {
                    operation::SUM => of(0) + right,
                    operation::PRODUCT => of(0) * right,
                    operation::SCALED => of(0) * at_least_1(step.scale),
                    operation::SOFTCAP => of(0).max(at_least_1(step.scale)),
                    _ => of(0),
                }
            }
            _ => of(0),
        })
    }

    // ------------------------------------------------------------ where numbers lie

    fn buffer(&mut self, source: Source, step: usize, id: u32, numbers: u64) -> Placed<Binding> {
        if numbers > self.most_bytes / 4 || numbers > u32::MAX.into() {
            return Err("one of its stages is larger than what a shader sees");
        }
        let numbers = numbers as usize;
        self.buffers.push(Buffer { source, step, id, numbers });
        Ok(self.whole(self.buffers.len() - 1))
    }

    fn whole(&self, buffer: usize) -> Binding {
        Binding { at: 0, buffer, offset: 0, numbers: self.buffers[buffer].numbers }
    }

    /// The numbers of a step, seen by a shader.
    fn from(&mut self, id: usize) -> Placed<Binding> {
        let step = &self.steps[id];
        let seen = match (self.places[id], step.kind) {
            (Some(buffer), _) => self.whole(buffer),
            (None, kind::SAME) => self.from(step.froms()[0])?,
            (None, kind::KEPT) => self.buffer(Source::Kept, id, 0, step.numbers() as u64)?,
            (None, _) => self.buffer(Source::Given, id, 0, step.numbers() as u64)?,
        };
        self.places[id] = Some(seen.buffer);
        Ok(seen)
    }

    /// The buffer that a step has already.
    fn place_of(&self, id: usize) -> Option<usize> {
        let step = &self.steps[id];
        self.places[id].or_else(|| if step.kind == kind::SAME { self.place_of(step.froms()[0]) } else { None })
    }

    /// Where a step's numbers go.
    fn place(&mut self, id: usize) -> Placed<Binding> {
        let seen = self.room(id, self.steps[id].numbers() as u64)?;
        self.places[id] = Some(seen.buffer);
        Ok(seen)
    }

    /// A buffer for what a step makes, if possible one that is free.
    fn room(&mut self, step: usize, numbers: u64) -> Placed<Binding> {
        let fits = |&buffer: &usize| self.buffers[buffer].numbers as u64 == numbers;
        match self.free.iter().position(fits) {
            None => self.buffer(Source::Made, step, 0, numbers),
            Some(at) => {
                let buffer = self.free.swap_remove(at);
                self.buffers[buffer].step = step;
                Ok(self.whole(buffer))
            }
        }
    }

    /// Frees what this step was the last to need.
    fn free_after(&mut self, id: usize) {
        let is_over = |buffer: &Buffer| buffer.source == Source::Made && self.last_users[buffer.step] == id;
        self.free.extend((0..self.buffers.len()).filter(|&at| is_over(&self.buffers[at])));
    }

    /// A weight, which several steps may use.
    fn weight(&mut self, id: usize, step: &Outlined) -> Placed<Binding> {
        let known = |buffer: &Buffer| buffer.source == Source::Weight && buffer.id == step.detail;
        match self.buffers.iter().position(known) {
            Some(buffer) => Ok(self.whole(buffer)),
            None => self.buffer(Source::Weight, id, step.detail, step.tables[0].numbers.into()),
        }
    }

    // ------------------------------------------------------------ masks

    /// The words of `Scoring` in `score.wgsl`.
    fn scoring(step: &Outlined, mask: &OutlinedMask) -> [u32; 8] {
        [
            step.scale.to_bits(),
            step.softcap.to_bits(),
            if step.is_infinite() { 0 } else { step.fill.to_bits() },
            step.is_infinite().into(),
            mask.kind,
            mask.batches,
            mask.heads,
            mask.bias_kind,
        ]
    }

    fn mask_seen(mask: &OutlinedMask) -> [Binding; 2] {
        [Binding { at: 6, ..seen(&mask.words) }, Binding { at: 7, ..seen(&mask.bias) }]
    }

    /// An empty row that is to be NaN is left to the central processor.
    fn check_empty_rows(mask: &OutlinedMask, fill_is_infinite: bool, zero_empty_rows: u32) -> Placed<()> {
        let hides = fill_is_infinite || matches!(mask.bias_kind, BIAS | DISTANCES);
        match mask.has_empty_rows == 1 && zero_empty_rows == 0 && hides {
            true => Err("a row that sees nothing is NaN"),
            false => Ok(()),
        }
    }

    // ------------------------------------------------------------ dispatches

    /// Adds a dispatch: its sizes, then what it sees from binding 1 on, then the mask where it has one.
    fn run(
        &mut self,
        step: usize,
        shader: &'static str,
        overrides: Vec<(&'static str, f64)>,
        sizes: &[u32],
        seen: &[Binding],
        workgroups: [usize; 3],
    ) -> Placed<()> {
        if workgroups.iter().any(|&count| count > MOST_WORKGROUPS) {
            return Err("it has more rows than a device counts workgroups");
        }
        let offset = self.tables + self.sizes.len();
        self.sizes.extend(sizes);
        self.sizes.resize(self.sizes.len().next_multiple_of(ALIGNMENT), 0);
        let mut bindings = vec![Binding { at: 0, buffer: 0, offset, numbers: sizes.len() }];
        for (seen, at) in seen.iter().zip(1..) {
            bindings.push(if seen.at == 0 { Binding { at, ..*seen } } else { *seen });
        }
        let workgroups = workgroups.map(|count| count as u32);
        self.dispatches.push(Dispatch { step, shader, overrides, bindings, workgroups });
        Ok(())
    }

    fn step(&mut self, id: usize, step: &Outlined) -> Placed<()> {
        let [first, second, third] = step.froms();
        let [batch, heads, n, width] = step.shape;
        let numbers = step.numbers();
        let each = spread(numbers.div_ceil(256));
        match step.kind {
            kind::LINEAR => {
                let k = self.steps[first].width();
                let rows = self.steps[first].numbers() / k;
                let columns = step.tables[0].numbers as usize / k;
                let [x, weight, out] = [self.from(first)?, self.weight(id, step)?, self.place(id)?];
                let [k, n] = [k as u32, columns as u32];
                let product = Product {
                    sizes: [rows as u32, n, k],
                    heads: 1,
                    group: 1,
                    strides: [[0, 0, k], [0, 0, k], [0, 0, n]],
                    is_transposed: true,
                    matrices: 1,
                };
                self.matmul(id, product, [x, weight, out], [&step.tables[1], &NO_TABLE])
            }
            kind::DOT => {
                let out = self.place(id)?;
                self.dot(id, first, second, out)
            }
            kind::CONTEXT => {
                let weights = self.from(first)?;
                self.mix(id, weights, second, &step.tables[0])
            }
            kind::ATTENDED => self.attend(id, step, [first, second, third]),
            kind::JOINED => {
                let mut sizes = vec![numbers as u32, heads, n, width];
                let mut parts = [NOTHING; 2];
                for (part, from) in parts.iter_mut().zip([second, first]) {
                    match self.steps.get(from) {
                        Some(step) => {
                            sizes.extend([step.shape[2], step.strides[0], step.strides[1], step.strides[2]]);
                            *part = self.from(from)?;
                        }
                        None => sizes.extend([0; 4]),
                    }
                }
                let [before, middle] = parts;
                let out = self.place(id)?;
                self.run(id, "join", vec![], &sizes, &[before, middle, seen(&step.tables[0]), out], each)
            }
            kind::ROTATED => {
                let [cos, sin, pairs] = &step.tables;
                let sizes = [numbers as u32, width, n, step.strides[2], pairs.numbers, step.detail];
                let [from, out] = [self.from(first)?, self.place(id)?];
                self.run(id, "rotary", vec![], &sizes, &[from, seen(cos), seen(sin), out], each)
            }
            kind::MASKED => {
                let sizes = [&Self::scoring(step, &step.mask)[..], &[numbers as u32, heads, n, width]].concat();
                let [words, bias] = Self::mask_seen(&step.mask);
                let [from, out] = [self.from(first)?, self.place(id)?];
                self.run(id, "mask", vec![], &sizes, &[from, out, words, bias], each)
            }
            kind::SOFTMAX => {
                let from = &self.steps[first];
                if from.kind == kind::MASKED {
                    Self::check_empty_rows(&from.mask, from.is_infinite(), step.zero_empty_rows)?;
                }
                let [from, out] = [self.from(first)?, self.place(id)?];
                self.softmax(id, step, [batch, heads, n, width], Some(from), out)
            }
            kind::LAYER_NORM | kind::RMS_NORM => {
                let [weight, bias] = [&step.tables[0], &step.tables[1]];
                let rows = numbers / step.width();
                let mut sizes = vec![rows as u32, width, step.eps.to_bits()];
                let mut bindings = vec![self.from(first)?, seen(weight)];
                let shader = if step.kind == kind::RMS_NORM { "rms_norm" } else { "layer_norm" };
                if step.kind == kind::LAYER_NORM {
                    sizes.push(has(bias));
                    bindings.push(seen(bias));
                }
                bindings.push(self.place(id)?);
                self.run(id, shader, vec![], &sizes, &bindings, spread(rows))
            }
            kind::ELEMENTWISE => {
                let left = self.from(first)?;
                let right = if step.from[1] == NONE { seen(&step.tables[0]) } else { self.from(second)? };
                let sizes = [numbers as u32, right.numbers as u32, step.scale.to_bits()];
                let out = self.place(id)?;
                self.run(id, "elementwise", vec![("OPERATION", step.detail.into())], &sizes, &[left, right, out], each)
            }
            _ => Ok(()),
        }
    }

    fn matmul(
        &mut self,
        id: usize,
        product: Product,
        [a, b, out]: [Binding; 3],
        [bias, factors]: [&Table; 2],
    ) -> Placed<()> {
        let Product { sizes: [m, n, k], matrices, heads, group, strides, is_transposed } = product;
        let is_aligned = |strides: [u32; 3]| strides.iter().all(|stride| stride.is_multiple_of(4));
        let overrides = vec![
            ("TRANSPOSED", is_transposed.into()),
            ("A_ALIGNED", is_aligned(strides[0]).into()),
            ("B_ALIGNED", is_aligned(strides[1]).into()),
        ];
        let sizes = [&[m, n, k, heads, group], strides.as_flattened(), &[has(bias), has(factors)]].concat();
        let workgroups = [n.div_ceil(32), m.div_ceil(32), matrices].map(|count| count as usize);
        self.run(id, "matmul", overrides, &sizes, &[a, b, seen(bias), seen(factors), out], workgroups)
    }

    /// query · keyᵀ, row-major.
    fn dot(&mut self, id: usize, query: usize, key: usize, out: Binding) -> Placed<()> {
        let (from, to) = (&self.steps[query], &self.steps[key]);
        let [batch, heads, n_q, d_k] = from.shape;
        let [_, kv_heads, n_k, _] = to.shape;
        let product = Product {
            sizes: [n_q, n_k, d_k],
            matrices: batch * heads,
            heads,
            group: heads / kv_heads,
            strides: [from.strides, to.strides, [heads * n_q * n_k, n_q * n_k, n_k]],
            is_transposed: true,
        };
        let [query, key] = [self.from(query)?, self.from(key)?];
        self.matmul(id, product, [query, key, out], [&NO_TABLE; 2])
    }

    /// weights · value, the weights row-major.
    fn mix(&mut self, id: usize, weights: Binding, value: usize, factors: &Table) -> Placed<()> {
        let (step, from) = (&self.steps[id], &self.steps[value]);
        let [batch, heads, n_q, d_v] = step.shape;
        let [_, kv_heads, n_k, _] = from.shape;
        let product = Product {
            sizes: [n_q, d_v, n_k],
            matrices: batch * heads,
            heads,
            group: heads / kv_heads,
            strides: [[heads * n_q * n_k, n_q * n_k, n_k], from.strides, step.strides],
            is_transposed: false,
        };
        let [value, out] = [self.from(value)?, self.place(id)?];
        self.matmul(id, product, [weights, value, out], [&NO_TABLE, factors])
    }

    /// Without `scores` these lie where the weights go.
    fn softmax(
        &mut self,
        id: usize,
        how: &Outlined,
        shape: [u32; 4],
        scores: Option<Binding>,
        weights: Binding,
    ) -> Placed<()> {
        let [batch, heads, n_q, n_k] = shape;
        let rows = batch * heads * n_q;
        let sizes = [&Self::scoring(how, &how.mask)[..], &[rows, heads, n_q, n_k]].concat();
        let [words, bias] = Self::mask_seen(&how.mask);
        let overrides = vec![("IN_PLACE", scores.is_none().into())];
        let bindings = [scores.unwrap_or(NOTHING), weights, words, bias];
        self.run(id, "softmax", overrides, &sizes, &bindings, spread(rows.div_ceil(ROWS) as usize))
    }

    /// In one sweep where the weights are not wanted and a row of values fits; else one after the other.
    fn attend(&mut self, id: usize, step: &Outlined, [query, key, value]: [usize; 3]) -> Placed<()> {
        let mask = &step.mask;
        Self::check_empty_rows(mask, step.is_infinite(), step.zero_empty_rows)?;
        let [from_query, from_key, from_value] = [query, key, value].map(|id| &self.steps[id]);
        let [batch, heads, n_q, d_v] = step.shape;
        let [_, kv_heads, n_k, d_k] = from_key.shape;
        if step.detail != NONE || d_v > MOST_COLUMNS {
            let shape = [batch, heads, n_q, n_k];
            // May be more than there are addresses.
            let numbers = shape.iter().fold(1, |numbers: u64, &axis| numbers.saturating_mul(axis.into()));
            let owner = if step.detail == NONE { id } else { step.detail as usize };
            let weights = self.room(owner, numbers)?;
            self.dot(id, query, key, weights)?;
            self.softmax(id, step, shape, None, weights)?;
            if owner != id {
                self.places[owner] = Some(weights.buffer);
            }
            return self.mix(id, weights, value, &step.tables[0]);
        }
        // Where every row sees a key and fills lie so far below all scores, a hidden key's weight is 0 and it need not be met.
        let dot = f64::from(d_k) * self.largest[query] * self.largest[key] * f64::from(step.scale.abs());
        let lowest = -(dot + f64::from(mask.bias.largest));
        let counts_nothing = mask.kind != OPEN && mask.has_empty_rows == 0 && f64::from(step.fill) < lowest - 104.0;
        let how = Outlined { fill: if counts_nothing { f32::NEG_INFINITY } else { step.fill }, ..*step };
        let is_aligned = |steps: &[&Outlined], width: u32| {
            steps.iter().flat_map(|step| step.strides).chain([width]).all(|stride| stride.is_multiple_of(4))
        };
        let mut sizes = Self::scoring(&how, mask).to_vec();
        sizes.extend([n_q, n_k, d_k, heads, heads / kv_heads]);
        for step in [from_query, from_key, from_value, step] {
            sizes.extend(step.strides);
        }
        let factors = &step.tables[0];
        sizes.push(has(factors));
        let overrides = vec![
            ("D_V", d_v.into()),
            ("ALIGNED", is_aligned(&[from_query, from_key], d_k).into()),
            ("VALUES_ALIGNED", is_aligned(&[from_value], d_v).into()),
        ];
        let [words, bias] = Self::mask_seen(mask);
        let [query, key, value, out] = [self.from(query)?, self.from(key)?, self.from(value)?, self.place(id)?];
        let workgroups = [n_q.div_ceil(QUERIES), batch * heads, 1].map(|count| count as usize);
        self.run(id, "attention", overrides, &sizes, &[query, key, value, seen(factors), out, words, bias], workgroups)
    }

    // ------------------------------------------------------------ what comes back

    fn finish(mut self) -> Placed<GpuPlan> {
        let Frame { masked, keeps, shared, size, .. } = self.frame;
        self.buffers[0].numbers = self.tables + self.sizes.len();
        if 4 * self.buffers[0].numbers as u64 > self.most_bytes {
            return Err("its masks and tables are larger than what a shader sees");
        }
        let mut reads = Vec::new();
        let mut end = 0;
        if keeps == 1 {
            end = (size - shared) as usize;
            for (buffer, &Buffer { source, step, .. }) in self.buffers.iter().enumerate() {
                if source == Source::Made {
                    reads.push(ReadBack { step, buffer, at: (self.steps[step].offset - shared) as usize });
                }
            }
        } else {
            for step in 0..self.steps.len() {
                if self.steps[step].is_wanted == 1 {
                    let Binding { buffer, numbers, .. } = self.from(step)?;
                    reads.push(ReadBack { step, buffer, at: end });
                    end += numbers;
                }
            }
        }
        let mut kept = Vec::new();
        for (at, buffer) in self.buffers.iter().enumerate() {
            let is_before =
                matches!(buffer.source, Source::Given | Source::Made | Source::Kept) && buffer.step < masked as usize;
            let sees = |dispatch: &Dispatch| dispatch.bindings.iter().any(|seen| seen.buffer == at);
            if is_before && self.dispatches.iter().any(|run| run.step >= masked as usize && sees(run)) {
                kept.push(at);
            }
        }
        let place = |id: usize| match self.place_of(id) {
            Some(buffer) if self.last_users[id] == NEVER_FREE => buffer as i32,
            _ => -1,
        };
        let places = (0..self.steps.len()).map(place).collect();
        let Self { buffers, sizes, dispatches, .. } = self;
        Ok(GpuPlan { buffers, sizes, dispatches, reads, size: end, kept, places })
    }
}

/// Queries that a workgroup of `attention.wgsl` takes, and the widest values that it mixes.
const QUERIES: u32 = 16;
const MOST_COLUMNS: u32 = 128;

/// Rows that a workgroup of `softmax.wgsl` takes.
const ROWS: u32 = 4;

/// Some of the constants, for a binding that a shader does not read.
const NOTHING: Binding = Binding { at: 0, buffer: 0, offset: 0, numbers: ALIGNMENT };

/// A table as a shader sees it.
fn seen(table: &Table) -> Binding {
    match table.numbers {
        0 => NOTHING,
        numbers => Binding { at: 0, buffer: 0, offset: table.at as usize, numbers: numbers as usize },
    }
}

fn has(table: &Table) -> u32 {
    u32::from(table.numbers > 0)
}

/// A product of matrices, one for each batch entry and head: `out[m, n] = a[m, k] · b`.
struct Product {
    /// m, n, k
    sizes: [u32; 3],
    /// Batch entries times heads.
    matrices: u32,
    heads: u32,
    /// Heads of a that share one of b.
    group: u32,
    /// Of a, b and out: from one batch entry, head and row to the next.
    strides: [[u32; 3]; 3],
    is_transposed: bool,
}

/// So many workgroups over two axes, since one counts to 65535 only.
fn spread(count: usize) -> [usize; 3] {
    let columns = count.clamp(1, MOST_WORKGROUPS);
    [columns, count.div_ceil(columns), 1]
}

fn plain_list<T>(items: Vec<T>, plain: impl Fn(T) -> Plain) -> Plain {
    Plain::List(items.into_iter().map(plain).collect())
}

/// All but the sizes, which are many.
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
        let read = |ReadBack { step, buffer, at }: ReadBack| {
            Self::Object(vec![("step", step.into()), ("buffer", buffer.into()), ("at", at.into())])
        };
        Self::Object(vec![
            ("buffers", plain_list(plan.buffers, buffer)),
            ("dispatches", plain_list(plan.dispatches, dispatch)),
            ("reads", plain_list(plan.reads, read)),
            ("size", plan.size.into()),
            ("kept", plan.kept.into()),
            ("places", plain_list(plan.places, |buffer| f64::from(buffer).into())),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::{QueryKeyValue, plan_attention};
    use crate::config::NormKind;
    use crate::config::{
        EmptyRow, ForwardOptions, MultiHeadAttentionOptions, Positions, RemaskOptions, ScaledDotProductOptions,
        TransformerOptions,
    };
    use crate::mask::Mask;
    use crate::multi_head_attention::MultiHeadAttention;
    use crate::outline::{BITS, NO_BIAS, Outline, RUNS};
    use crate::recipe::Made;
    use crate::tensor::Tensor;
    use crate::torch::Generator;
    use crate::trace::{Plan, Stage};
    use crate::transformer::{Memory, Transformer};

    #[test]
    fn the_shaders_have_the_same_constants() {
        let score = include_str!("shaders/score.wgsl");
        let elementwise = include_str!("shaders/elementwise.wgsl");
        let attention = include_str!("shaders/attention.wgsl");
        let softmax = include_str!("shaders/softmax.wgsl");
        for (shader, name, number) in [
            (score, "OPEN", OPEN),
            (score, "RUNS", RUNS),
            (score, "BITS", BITS),
            (score, "NO_BIAS", NO_BIAS),
            (score, "BIAS", BIAS),
            (score, "DISTANCES", DISTANCES),
            (elementwise, "SUM", operation::SUM),
            (elementwise, "PRODUCT", operation::PRODUCT),
            (elementwise, "SCALED", operation::SCALED),
            (elementwise, "SOFTCAP", operation::SOFTCAP),
            (elementwise, "RELU", operation::RELU),
            (elementwise, "GELU", operation::GELU),
            (elementwise, "GELU_TANH", operation::GELU_TANH),
            (elementwise, "SILU", operation::SILU),
            (elementwise, "QUICK_GELU", operation::QUICK_GELU),
            (attention, "QUERIES", QUERIES),
            // As many at a time, twice.
            (attention, "COLUMNS", MOST_COLUMNS / 2),
            (attention, "PARTS", 2),
            (softmax, "ROWS", ROWS),
        ] {
            assert!(shader.contains(&format!("const {name} = {number}u;")), "{name}");
        }
    }

    const DEFAULT: u64 = 128 << 20;
    const MAX_BYTES: usize = 1 << 30;

    const BEFORE: [&str; 4] = [
        include_str!("shaders/reduce.wgsl"),
        include_str!("shaders/exp.wgsl"),
        include_str!("shaders/score.wgsl"),
        include_str!("shaders/four.wgsl"),
    ];
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

    /// The plan, through words as it goes there.
    fn planned(pass: &Plan, most_bytes: u64) -> Placed<(GpuPlan, Vec<u32>)> {
        let outline = pass.outline().unwrap();
        let (frame, steps) = Outline::read(&outline.words()).unwrap();
        assert_eq!((frame, &steps), (outline.frame, &outline.steps));
        let gpu = plan(frame, &steps, outline.tables.len(), most_bytes)?;
        let constants = [&outline.tables[..], &gpu.sizes].concat();
        Ok((gpu, constants))
    }

    fn kernel(dispatch: &Dispatch) -> (&'static str, u32) {
        let found = KERNELS.iter().find(|(name, ..)| *name == dispatch.shader);
        let (_, text, written) = found.expect("a shader of this name");
        (text, *written)
    }

    fn sizes<'a>(constants: &'a [u32], dispatch: &Dispatch) -> &'a [u32] {
        &constants[dispatch.bindings[0].offset..][..dispatch.bindings[0].numbers]
    }

    /// What holds of every plan.
    fn check(plan: &Plan, first: usize) -> (GpuPlan, Vec<u32>) {
        let (gpu, constants) = planned(plan, DEFAULT).expect("a pass for the GPU");
        let steps = plan.recipe.steps();
        let is_there = |id: usize| matches!(steps[id].made, Made::Same { .. } | Made::Masked { mask: None, .. });
        let maker = |mut id: usize| {
            while is_there(id) {
                id = steps[id].made.sources()[0].unwrap();
            }
            id
        };
        // Which step's numbers a buffer holds.
        let mut holds = vec![None; gpu.buffers.len()];
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
                if seen.at == output {
                    assert_eq!(buffer.source, Source::Made);
                    assert!(!plan.recipe.keeps() || holds[seen.buffer].is_none(), "{dispatch:?} writes what is there");
                    assert_eq!(dispatch.bindings.iter().filter(|other| other.buffer == seen.buffer).count(), 1);
                } else if buffer.source == Source::Made {
                    let froms = steps[dispatch.step].made.sources().into_iter().flatten().map(maker);
                    let is_from = froms.chain([dispatch.step]).any(|from| holds[seen.buffer] == Some(from));
                    assert!(is_from, "{dispatch:?} reads {:?}", holds[seen.buffer]);
                }
            }
            holds[dispatch.bindings.iter().find(|seen| seen.at == output).unwrap().buffer] = Some(dispatch.step);
            cover(&constants, dispatch);
        }
        // Every step is made.
        for (id, step) in steps.iter().enumerate().skip(first) {
            let is_made = !is_there(id) && !matches!(step.made, Made::Given(_) | Made::HandedOut);
            assert_eq!(gpu.dispatches.iter().any(|run| run.step == id), is_made, "{:?}", step.stage);
        }
        let is_still_there = |buffer: usize, id: usize| {
            let makes = |run: usize| match steps[run].made {
                Made::Attended { weights, .. } if weights == Some(id) => true,
                _ => run == maker(id),
            };
            holds[buffer].is_none_or(makes)
        };
        for read in &gpu.reads {
            assert!(read.at + gpu.buffers[read.buffer].numbers <= gpu.size);
            assert!(is_still_there(read.buffer, read.step), "{:?}", steps[read.step].stage);
        }
        // What is left on the device is found there, under each of its names.
        for (info, id, strides) in plan.stages() {
            let Ok(place) = usize::try_from(gpu.places[id]) else {
                assert!(id < first || matches!(steps[id].made, Made::Given(_)), "{:?} is nowhere", info.name);
                continue;
            };
            let holder = &steps[gpu.buffers[place].step];
            assert_eq!((holder.offset, holder.size()), (steps[id].offset, steps[id].size()), "{:?}", info.name);
            assert!(is_still_there(place, id), "{:?}", info.name);
            assert!(steps[id].strides.ends_with(strides) && strides.len() == info.shape.len());
        }
        (gpu, constants)
    }

    /// The workgroups reach every number.
    fn cover(constants: &[u32], dispatch: &Dispatch) {
        let [x, y, z] = dispatch.workgroups;
        assert!(dispatch.workgroups.iter().all(|&count| (1..=65_535).contains(&count)));
        let sizes = sizes(constants, dispatch);
        let (reached, needed) = match dispatch.shader {
            "matmul" => {
                assert!(32 * x >= sizes[1] && 32 * y >= sizes[0]);
                (z % sizes[3], 0)
            }
            "attention" => (16 * x, sizes[8]),
            "softmax" => (4 * x * y, sizes[8]),
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
        assert_eq!(shaders(&check(&attention(65, 8, None, &wanted), 0).0), ["matmul", "softmax", "matmul"]);
        let unwanted = ScaledDotProductOptions { need_weights: false, ..wanted };
        let (gpu, _) = check(&attention(65, 8, None, &unwanted), 0);
        assert_eq!(shaders(&gpu), ["attention"]);
        assert!(gpu.buffers.iter().all(|buffer| buffer.numbers < 65 * 65));
        // A row of values that does not fit goes the long way.
        assert_eq!(shaders(&check(&attention(3, 256, None, &unwanted), 0).0), ["matmul", "softmax", "matmul"]);
    }

    #[test]
    fn scores_share_the_place_of_the_weights() {
        let matrices = |plan: &Plan, numbers| {
            let (gpu, _) = check(plan, 0);
            gpu.buffers.iter().filter(|buffer| buffer.numbers == numbers).count()
        };
        let mask = Some(&Mask::Causal);
        for (trace, expected) in [(false, 1), (true, 5)] {
            let options = ScaledDotProductOptions { softcap: 5.0, trace, ..Default::default() };
            assert_eq!(matrices(&attention(65, 8, mask, &options), 4 * 65 * 65), expected);
        }
        // Each layer has weights of its own; rows of values that do not fit meet weights that nobody wants, in one place.
        let mut settings = TransformerOptions::new(258, 2);
        settings.n_layers = Some(3);
        let stack = Transformer::encoder(settings.clone(), &mut Generator::new(1), MAX_BYTES).unwrap();
        let x = random(&[33, 258]);
        for (need_weights, expected) in [(true, 3), (false, 1)] {
            let options = ForwardOptions { need_weights, ..Default::default() };
            let plan = stack.plan(&x, None, mask, &options, MAX_BYTES).unwrap();
            assert_eq!(matrices(&plan, 2 * 33 * 33), expected);
        }
        // In training the stages are steps, of which two meet at a time.
        settings.attention_dropout = 0.5;
        let stack = Transformer::encoder(settings, &mut Generator::new(1), MAX_BYTES).unwrap();
        let options = ForwardOptions { need_weights: false, ..Default::default() };
        let plan = stack.plan_training(&x, None, mask, &options, &mut Generator::new(2), MAX_BYTES).unwrap();
        assert_eq!(matrices(&plan, 2 * 33 * 33), 2);
    }

    #[test]
    fn layers_share_the_places_of_stages_that_nobody_keeps() {
        let places = |n_layers, trace| {
            let mut settings = TransformerOptions::new(8, 2);
            settings.n_layers = Some(n_layers);
            let stack = Transformer::encoder(settings, &mut Generator::new(1), MAX_BYTES).unwrap();
            let options = ForwardOptions { trace, need_weights: false, ..Default::default() };
            let (gpu, _) = check(&stack.plan(&random(&[5, 8]), None, None, &options, MAX_BYTES).unwrap(), 0);
            gpu.buffers.iter().filter(|buffer| buffer.source == Source::Made).count()
        };
        assert_eq!(places(2, false), places(12, false));
        assert!(places(2, true) < places(12, true));
    }

    #[test]
    fn masks_cross_as_runs_or_bits_and_biases_as_distances() {
        let options = ScaledDotProductOptions { need_weights: false, ..Default::default() };
        let seen = |mask: Mask| {
            let (gpu, constants) = check(&attention(129, 8, Some(&mask), &options), 0);
            let dispatch = &gpu.dispatches[0];
            let numbers = |at| dispatch.bindings.iter().find(|seen| seen.at == at).unwrap().numbers;
            let sizes = sizes(&constants, dispatch);
            [(sizes[4], numbers(6)), (sizes[7], numbers(7))]
        };
        let and = |left: Mask, right: Mask| Mask::And { left: Box::new(left), right: Box::new(right) };
        let window = Mask::SlidingWindow { left: 5, right: 2 };
        let no_bias = (NO_BIAS, ALIGNMENT);
        assert_eq!(seen(window.clone()), [(RUNS, 2 * 129), no_bias]);
        assert_eq!(seen(and(Mask::Causal, window)), [(RUNS, 2 * 129), no_bias]);
        assert_eq!(seen(Mask::Dilated { width: 9, stride: 2 }), [(BITS, 129 * 5), no_bias]);
        let distances = (DISTANCES, 4 * (129 + 129 - 1));
        assert_eq!(seen(and(Mask::Causal, Mask::Alibi { heads: 4 })), [(RUNS, 4 * 2 * 129), distances]);
        let data = random(&[129, 129]).data.into_iter().flat_map(f32::to_le_bytes).collect();
        let matrix = Mask::Additive { shape: vec![129, 129], data, axes: None };
        assert_eq!(seen(matrix), [(RUNS, 2 * 129), (BIAS, 129 * 129)]);
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
        let (before, _) = check(&plan, 0);
        let masked = plan.recipe.masked().unwrap();
        let kept: Vec<_> = before.kept.iter().map(|&at| before.buffers[at].step).collect();
        let again = plan.run(&mut |_| {}).unwrap().plan_remask(None, &RemaskOptions::default()).unwrap();
        let (gpu, _) = check(&again, masked);
        let reused = gpu.buffers.iter().filter(|buffer| buffer.source == Source::Kept);
        let reused: Vec<_> = reused.map(|buffer| buffer.step).collect();
        assert!(!reused.is_empty() && reused.iter().all(|step| kept.contains(step)), "{reused:?} of {kept:?}");
        assert!(gpu.dispatches.iter().all(|dispatch| dispatch.step >= masked));
        // No weight of a projection before the mask is asked for.
        let weights = |gpu: &GpuPlan| gpu.buffers.iter().filter(|buffer| buffer.source == Source::Weight).count();
        assert_eq!((weights(&before), weights(&gpu)), (12, 9));
    }

    #[test]
    fn a_pass_whose_stages_are_left_gives_the_rest() {
        let options = ForwardOptions { trace: true, ..Default::default() };
        let settings = MultiHeadAttentionOptions::new(12, 3);
        let attention = MultiHeadAttention::new(&settings, &mut Generator::new(1), MAX_BYTES).unwrap();
        let x = random(&[2, 5, 12]);
        let plan = |options: &ForwardOptions| attention.plan(&x, None, None, None, options, MAX_BYTES).unwrap();
        let trace = plan(&options).run(&mut |_| {}).unwrap();
        let left = plan(&options);
        // The heads of a context lie side by side, as they are joined.
        let (_, context, _) = left.stages().find(|(info, ..)| info.name == Stage::Context).unwrap();
        let concat = trace.stage(Stage::Concat, 0).unwrap();
        assert_eq!(left.arranged(context, &concat.data), trace.stage(Stage::Context, 0).unwrap());
        let last = left.recipe.steps().len() - 1;
        assert_eq!(left.given_back(), [last]);
        assert_eq!(left.arranged(last, &trace.output().data), trace.output());
        // Without stages the weights are what may be left, if they are wanted.
        let names = |plan: Plan| plan.stages().map(|(info, ..)| info.name).collect::<Vec<_>>();
        let options = ForwardOptions::default();
        assert_eq!(names(plan(&options)), [Stage::Weights]);
        assert_eq!(
            plan(&options).run(&mut |_| {}).unwrap().stage(Stage::Weights, 0).unwrap(),
            trace.stage(Stage::Weights, 0).unwrap()
        );
        assert_eq!(names(plan(&ForwardOptions { need_weights: false, ..options })), []);
    }

    #[test]
    fn what_may_not_be_faithful_stays() {
        let plan = |number: f32, mask: Option<&Mask>, options: &ScaledDotProductOptions| {
            let mut query = random(&[3, 4]);
            let key = query.clone();
            query.data[5] = number;
            let inputs = QueryKeyValue { query: &query, key: &key, value: &key, past: None };
            planned(&plan_attention(inputs, mask, options, MAX_BYTES).unwrap(), DEFAULT).is_ok()
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
        assert!(planned(&plan, 4 * 4 * 65 * 65 - 1).is_err());
        assert!(planned(&plan, 4 * 4 * 65 * 65).is_ok());
    }
}
