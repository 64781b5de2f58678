//! A recipe as plain words: what a planner for another device needs to know of it. The planner is a module of its own, which a
//! page loads when a pass is first to go there; so only these words are made here.

use attnscope_kernels::attention::Visible;

use crate::config::{Activation, NormKind};
use crate::mask::ResolvedMask;
use crate::recipe::{Attended, Made, Recipe, Step, StepId};

/// A recipe's steps and their small tables.
#[derive(Debug)]
pub struct Outline {
    /// What holds of all.
    pub frame: Frame,
    /// Step by step.
    pub steps: Vec<Outlined>,
    /// Words of tables and masks, each from a multiple of 64 on; the first 64 are for those that are not there.
    pub tables: Vec<u32>,
}

/// Words from the start of one table to where the next may start: on every device a binding can start there.
pub const ALIGNMENT: usize = 64;

/// What holds of all steps.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// The first step that is to be made.
    pub first: u32,
    /// The first step that a mask reaches, 0 where no stages are kept.
    pub masked: u32,
    /// 1 where every stage is kept.
    pub keeps: u32,
    /// Numbers of the arena before the first step.
    pub shared: u32,
    /// Numbers of the arena.
    pub size: u32,
}

/// A step. What its kind has no use for is 0.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlined {
    /// One of the kinds below.
    pub kind: u32,
    /// The steps that it is made from, or [`NONE`].
    pub from: [u32; 3],
    /// `[batch, heads, n, width]`; heads are 1 where it is not cut into them.
    pub shape: [u32; 4],
    /// From one batch entry, head and row to the next.
    pub strides: [u32; 3],
    /// Its place in the arena.
    pub offset: u32,
    /// 1 where it is to be read where no stages are kept.
    pub is_wanted: u32,
    /// The largest magnitude of what is given, or there already.
    pub largest: f32,
    /// The factor or scale.
    pub scale: f32,
    /// The soft limit of scores, 0 is off.
    pub softcap: f32,
    /// What hidden scores become.
    pub fill: f32,
    /// 1 where rows that see nothing are 0.
    pub zero_empty_rows: u32,
    /// What a norm adds to the variance.
    pub eps: f32,
    /// An elementwise operation; 1 for interleaved rotary pairs; a weight's number.
    pub detail: u32,
    /// Bias, factors, tables of positions.
    pub tables: [Table; 3],
    /// The mask.
    pub mask: OutlinedMask,
}

/// Numbers among the tables, or a weight's, which is not among them.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Table {
    /// Its first word.
    pub at: u32,
    /// How many there are; 0 where there is none.
    pub numbers: u32,
    /// The largest magnitude.
    pub largest: f32,
}

/// A mask as shaders see it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutlinedMask {
    /// [`OPEN`], [`RUNS`] or [`BITS`].
    pub kind: u32,
    /// Its own batch; 1 serves all.
    pub batches: u32,
    /// Its own heads; 1 serves all.
    pub heads: u32,
    /// 1 where some row has no key that counts where fills are -infinity.
    pub has_empty_rows: u32,
    /// Which keys are allowed.
    pub words: Table,
    /// [`NO_BIAS`], [`BIAS`] or [`DISTANCES`].
    pub bias_kind: u32,
    /// What is added to the scores.
    pub bias: Table,
}

/// No step.
pub const NONE: u32 = u32::MAX;

#[allow(missing_docs)]
pub mod kind {
    pub const GIVEN: u32 = 0;
    pub const KEPT: u32 = 1;
    pub const SAME: u32 = 2;
    pub const LINEAR: u32 = 3;
    pub const JOINED: u32 = 4;
    pub const ROTATED: u32 = 5;
    pub const DOT: u32 = 6;
    pub const MASKED: u32 = 7;
    pub const SOFTMAX: u32 = 8;
    pub const CONTEXT: u32 = 9;
    pub const ATTENDED: u32 = 10;
    pub const LAYER_NORM: u32 = 11;
    pub const RMS_NORM: u32 = 12;
    pub const ELEMENTWISE: u32 = 13;
}

/// The operations of `shaders/elementwise.wgsl`.
#[allow(missing_docs)]
pub mod operation {
    pub const SUM: u32 = 0;
    pub const PRODUCT: u32 = 1;
    pub const SCALED: u32 = 2;
    pub const SOFTCAP: u32 = 3;
    pub const RELU: u32 = 4;
    pub const GELU: u32 = 5;
    pub const GELU_TANH: u32 = 6;
    pub const SILU: u32 = 7;
    pub const QUICK_GELU: u32 = 8;
}

/// No mask.
pub const OPEN: u32 = 0;
/// For each row its first allowed key and the one behind its last.
pub const RUNS: u32 = 1;
/// For each row a bit for each key.
pub const BITS: u32 = 2;

/// Nothing is added.
pub const NO_BIAS: u32 = 0;
/// A number for each query and key.
pub const BIAS: u32 = 1;
/// For each matrix a number for each distance of query and key.
pub const DISTANCES: u32 = 2;

/// Words of a step.
const STEP: usize = size_of::<Outlined>() / 4;
const FRAME: usize = size_of::<Frame>() / 4;

impl Outline {
    /// The frame and the steps.
    pub fn words(&self) -> Vec<u32> {
        // SAFETY: both are made of 4-byte numbers only, without gaps.
        let (frame, steps) = unsafe {
            (
                std::slice::from_raw_parts((&raw const self.frame).cast::<u32>(), FRAME),
                std::slice::from_raw_parts(self.steps.as_ptr().cast::<u32>(), self.steps.len() * STEP),
            )
        };
        [frame, steps].concat()
    }

    /// The frame and the steps again; none of words that are not theirs.
    pub fn read(words: &[u32]) -> Option<(Frame, Vec<Outlined>)> {
        let (frame, steps) = words.split_first_chunk::<FRAME>()?;
        let (steps, []) = steps.as_chunks::<STEP>() else { return None };
        // SAFETY: both are made of 4-byte numbers only, for which any bits are some.
        unsafe {
            let step = |words: &[u32; STEP]| words.as_ptr().cast::<Outlined>().read();
            Some((frame.as_ptr().cast::<Frame>().read(), steps.iter().map(step).collect()))
        }
    }
}

/// No numbers.
pub(crate) const NO_TABLE: Table = Table { at: 0, numbers: 0, largest: 0.0 };
const NO_MASK: OutlinedMask = OutlinedMask {
    kind: OPEN,
    batches: 1,
    heads: 1,
    has_empty_rows: 0,
    words: NO_TABLE,
    bias_kind: NO_BIAS,
    bias: NO_TABLE,
};

const NO_STEP: Outlined = Outlined {
    kind: kind::GIVEN,
    from: [NONE; 3],
    shape: [0; 4],
    strides: [0; 3],
    offset: 0,
    is_wanted: 0,
    largest: 0.0,
    scale: 0.0,
    softcap: 0.0,
    fill: 0.0,
    zero_empty_rows: 0,
    eps: 0.0,
    detail: 0,
    tables: [NO_TABLE; 3],
    mask: NO_MASK,
};

/// Outlines the steps; `shared` are the numbers of those before `first`, and `wanted` those to be read where no stages are kept.
pub(crate) fn outline(recipe: &Recipe, first: StepId, shared: &[f32], wanted: &[StepId]) -> Outline {
    let mut tables = Tables { words: vec![0; ALIGNMENT], masks: Vec::new() };
    let mut steps = Vec::new();
    for (id, step) in recipe.steps().iter().enumerate() {
        let mut outlined = tables.step(step, id < first);
        outlined.offset = step.offset as u32;
        outlined.is_wanted = wanted.contains(&id).into();
        let axes = step.shape.len();
        outlined.shape = [step.shape[0], if axes == 4 { step.shape[1] } else { 1 }, step.shape[axes - 2], step.width()]
            .map(|axis| axis as u32);
        outlined.strides = [step.strides[0], step.strides[1], step.strides[axes - 2]].map(|stride| stride as u32);
        if id < first && outlined.kind != kind::SAME {
            outlined.kind = kind::KEPT;
            outlined.largest = largest(&shared[step.offset..][..step.size()]);
        }
        steps.push(outlined);
    }
    let frame = Frame {
        first: first as u32,
        masked: recipe.masked().unwrap_or(0) as u32,
        keeps: recipe.keeps().into(),
        shared: if first > 0 { recipe.shared_size() } else { 0 } as u32,
        size: recipe.size() as u32,
    };
    Outline { frame, steps, tables: tables.words }
}

struct Tables<'r> {
    words: Vec<u32>,
    /// Masks that are among them.
    masks: Vec<(&'r ResolvedMask, OutlinedMask)>,
}

impl<'r> Tables<'r> {
    /// A step but for its place. Of one that `is_there` nothing but what it is made from is needed.
    fn step(&mut self, step: &'r Step, is_there: bool) -> Outlined {
        let mut to = NO_STEP;
        let made = |to: &mut Outlined, kind| {
            to.kind = kind;
            to.from = step.made.sources().map(|id| id.map_or(NONE, |id| id as u32));
        };
        let elementwise = |to: &mut Outlined, operation| {
            made(to, kind::ELEMENTWISE);
            to.detail = operation;
        };
        match &step.made {
            Made::Same { .. } | Made::Masked { mask: None, .. } => made(&mut to, kind::SAME),
            _ if is_there => to.kind = kind::KEPT,
            Made::Given(numbers) => to.largest = largest(numbers),
            Made::HandedOut => {}
            Made::Linear { linear, .. } => {
                made(&mut to, kind::LINEAR);
                to.detail = linear.weight.id();
                to.tables[0] =
                    Table { at: 0, numbers: linear.weight.data.len() as u32, largest: linear.weight.largest() };
                to.tables[1] = self.optional(linear.bias.as_deref().map(|bias| &bias.data[..]));
            }
            Made::Joined { after, .. } => {
                made(&mut to, kind::JOINED);
                to.tables[0] = self.optional(after.as_ref().map(|after| &after.data[..]));
            }
            Made::Rotated { rotation, .. } => {
                made(&mut to, kind::ROTATED);
                to.detail = rotation.interleaved.into();
                to.tables[0] = self.table(&rotation.cos.data);
                to.tables[1] = self.table(&rotation.sin.data);
                to.tables[2].numbers = rotation.cos.width() as u32;
            }
            Made::Dot { .. } => made(&mut to, kind::DOT),
            Made::Masked { mask: Some(mask), fill, .. } => {
                made(&mut to, kind::MASKED);
                (to.scale, to.fill) = (1.0, *fill);
                to.mask = self.mask(mask);
            }
            Made::Softmax { zero_empty_rows, .. } => {
                made(&mut to, kind::SOFTMAX);
                (to.scale, to.zero_empty_rows) = (1.0, (*zero_empty_rows).into());
            }
            Made::Context { head_mask, .. } => {
                made(&mut to, kind::CONTEXT);
                to.tables[0] = self.optional(head_mask.as_deref());
            }
            Made::Attended { weights, how, .. } => {
                let Attended { weighing, mask, head_mask } = how;
                made(&mut to, kind::ATTENDED);
                (to.scale, to.softcap, to.fill) = (weighing.scale, weighing.softcap, weighing.fill);
                to.zero_empty_rows = weighing.zero_empty_rows.into();
                to.detail = weights.map_or(NONE, |weights| weights as u32);
                to.tables[0] = self.optional(head_mask.as_deref());
                if let Some(mask) = mask {
                    to.mask = self.mask(mask);
                }
            }
            Made::Norm { norm, .. } => {
                let kind = if norm.kind == NormKind::Rms { kind::RMS_NORM } else { kind::LAYER_NORM };
                made(&mut to, kind);
                to.eps = norm.eps;
                to.tables[0] = self.table(&norm.weight.data);
                to.tables[1] = self.optional(norm.bias.as_ref().map(|bias| &bias.data[..]));
            }
            Made::Positioned { table, .. } => {
                elementwise(&mut to, operation::SUM);
                // The table may have more rows.
                to.tables[0] = self.table(&table.data[..step.shape[1] * step.width()]);
            }
            Made::Dropped { factors, .. } => {
                elementwise(&mut to, operation::PRODUCT);
                to.tables[0] = self.table(factors);
            }
            Made::Sum { .. } => elementwise(&mut to, operation::SUM),
            Made::Product { .. } => elementwise(&mut to, operation::PRODUCT),
            Made::Scaled { factor, .. } => {
                elementwise(&mut to, operation::SCALED);
                to.scale = *factor;
            }
            Made::Softcap { cap, .. } => {
                elementwise(&mut to, operation::SOFTCAP);
                to.scale = *cap;
            }
            Made::Activated { activation, .. } => {
                let operation = match activation {
                    Activation::Relu => operation::RELU,
                    Activation::Gelu => operation::GELU,
                    Activation::GeluTanh => operation::GELU_TANH,
                    Activation::Silu => operation::SILU,
                    Activation::QuickGelu => operation::QUICK_GELU,
                };
                elementwise(&mut to, operation);
            }
        }
        to
    }

    fn push(&mut self, words: &mut dyn Iterator<Item = u32>) -> Table {
        let at = self.words.len();
        self.words.extend(words);
        let numbers = self.words.len() - at;
        self.words.resize(self.words.len().next_multiple_of(ALIGNMENT), 0);
        Table { at: at as u32, numbers: numbers as u32, largest: 0.0 }
    }

    fn table(&mut self, numbers: &[f32]) -> Table {
        Table { largest: largest(numbers), ..self.push(&mut numbers.iter().map(|x| x.to_bits())) }
    }

    fn optional(&mut self, numbers: Option<&[f32]>) -> Table {
        numbers.map_or(NO_TABLE, |numbers| self.table(numbers))
    }

    fn mask(&mut self, mask: &'r ResolvedMask) -> OutlinedMask {
        if let Some((_, known)) = self.masks.iter().find(|(known, _)| *known == mask) {
            return *known;
        }
        let [batches, heads, _, n_k] = mask.shape;
        let visible = mask.visible();
        let rows = || mask.allowed.chunks_exact(n_k);
        // A row whose allowed keys stand side by side is said by its first and last, whatever rule made it.
        let is_runs = visible.iter().all(|seen| seen.are_all);
        let words = if is_runs {
            self.push(&mut visible.iter().flat_map(|Visible { keys, .. }| [keys.start as u32, keys.end as u32]))
        } else {
            let bits = |keys: &[u8]| keys.iter().rev().fold(0, |word, &allowed| word << 1 | u32::from(allowed != 0));
            self.push(&mut rows().flat_map(|row| row.chunks(32).map(bits)))
        };
        let mut has_empty_rows = visible.iter().any(|seen| seen.keys.is_empty());
        let (mut bias_kind, mut bias) = (NO_BIAS, NO_TABLE);
        if let Some(numbers) = &mask.bias {
            let hides = |(&allowed, &bias): (&u8, &f32)| allowed == 0 || bias == f32::NEG_INFINITY;
            has_empty_rows |= rows().zip(numbers.chunks_exact(n_k)).any(|(row, bias)| row.iter().zip(bias).all(hides));
            let distances = distances(numbers, mask.shape);
            bias_kind = if distances.is_some() { DISTANCES } else { BIAS };
            bias = self.push(&mut distances.as_ref().unwrap_or(numbers).iter().map(|x| x.to_bits()));
            // -infinity hides, and is known by its bits.
            let hidden = |x: &f32| if *x == f32::NEG_INFINITY { 0.0 } else { *x };
            bias.largest = largest(&numbers.iter().map(hidden).collect::<Vec<_>>());
        }
        let outlined = OutlinedMask {
            kind: if is_runs { RUNS } else { BITS },
            batches: batches as u32,
            heads: heads as u32,
            has_empty_rows: has_empty_rows.into(),
            words,
            bias_kind,
            bias,
        };
        self.masks.push((mask, outlined));
        outlined
    }
}

/// Where a bias depends on the distance of query and key alone: its numbers from the last query's first key to the first query's
/// last, matrix by matrix.
fn distances(bias: &[f32], [_, _, n_q, n_k]: [usize; 4]) -> Option<Vec<f32>> {
    let mut distances = Vec::new();
    for matrix in bias.chunks_exact(n_q * n_k) {
        let mut rows = matrix.chunks_exact(n_k);
        let mut above = rows.next()?;
        let mut firsts = vec![above[0]];
        for row in rows {
            if row[1..].iter().zip(above).any(|(one, other)| one.to_bits() != other.to_bits()) {
                return None;
            }
            firsts.push(row[0]);
            above = row;
        }
        distances.extend(firsts.iter().rev());
        distances.extend(&matrix[1..n_k]);
    }
    Some(distances)
}

/// The largest magnitude; infinity where one is infinite or NaN.
pub(crate) fn largest(numbers: &[f32]) -> f32 {
    // As bits without a sign, numbers are in order: NaN stands behind infinity, which stands behind all others.
    let bits = numbers.iter().map(|x| x.to_bits() & !(1 << 31)).fold(0, u32::max);
    f32::from_bits(bits.min(f32::INFINITY.to_bits()))
}
