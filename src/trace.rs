//! What a pass leaves behind: every stage with its shape, ready to be read, explained, or run again from the mask on.

use std::borrow::Cow;
use std::sync::Arc;

use crate::changed::Before;
use crate::config::{EmptyRow, ForwardOptions, RemaskOptions};
use crate::error::{AttnError, Result};
use crate::explain::{self, Explanation};
use crate::given::words;
use crate::mask::{Mask, MaskSize, ResolvedMask, Scores};
use crate::outline::{Outline, outline};
use crate::recipe::{Made, Numbers, Recipe, Step, StepId};
use crate::tensor::Tensor;
use crate::text::Listed;

/// Declares the stages once: variant, name, meaning.
macro_rules! stages {
    ($($variant:ident $name:literal $meaning:literal,)*) => {
        /// The stages of a pass, in the field's terms. `query` to `context` are `[heads, n, ...]`, the others `[n, ...]`,
        /// with `[batch, ...]` in front where the input has it. `cross_...` are those of a decoder's second attention.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename_all = "snake_case"))]
        pub enum Stage {
            $(#[doc = $meaning] $variant,)*
        }

        impl Stage {
            /// The stage's name, such as `"feed_forward"`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        words!(Stage, str::to_owned, $($variant $name),*);
    };
}

stages! {
    Input "input" "x, or what the layer before gave",
    Positions "positions" "x + what is added for each position",
    Memory "memory" "what a decoder's second attention looks at",
    KeyInput "key_input" "what the keys are made from, where it is not x",
    ValueInput "value_input" "what the values are made from, where it is not the keys' input",
    Query "query" "input · W_Qᵀ + b_Q",
    Key "key" "input · W_Kᵀ + b_K",
    Value "value" "input · W_Vᵀ + b_V",
    NormedQuery "normed_query" "RMSNorm of each head's query",
    NormedKey "normed_key" "RMSNorm of each head's key",
    RotatedQuery "rotated_query" "the query turned by its position",
    RotatedKey "rotated_key" "the key turned by its position",
    PastKey "past_key" "the keys of earlier positions",
    PastValue "past_value" "the values of earlier positions",
    AllKeys "all_keys" "the past's keys, this call's, and those that the module adds",
    AllValues "all_values" "the past's values, this call's, and those that the module adds",
    Scores "scores" "query · keyᵀ",
    Scaled "scaled" "scores times the scale, by default 1 / sqrt(d_k)",
    Capped "capped" "softcap · tanh(scaled / softcap)",
    Masked "masked" "the scaled scores, hidden cells filled",
    Weights "weights" "softmax of each row",
    DroppedWeights "dropped_weights" "the weights after dropout",
    Context "context" "weights · value",
    Concat "concat" "the heads' contexts side by side",
    Output "output" "concat · W_Oᵀ + b_O",
    DroppedOutput "dropped_output" "the output after dropout",
    Residual "residual" "output + input",
    Norm "norm" "the first norm",
    CrossQuery "cross_query" "the second attention's query",
    CrossKey "cross_key" "its key, from the memory",
    CrossValue "cross_value" "its value, from the memory",
    CrossNormedQuery "cross_normed_query" "RMSNorm of each head's query",
    CrossNormedKey "cross_normed_key" "RMSNorm of each head's key",
    CrossScores "cross_scores" "its query · keyᵀ",
    CrossScaled "cross_scaled" "its scores times the scale",
    CrossMasked "cross_masked" "its scaled scores, hidden cells filled",
    CrossWeights "cross_weights" "softmax of each of its rows",
    CrossDroppedWeights "cross_dropped_weights" "its weights after dropout",
    CrossContext "cross_context" "its weights · value",
    CrossConcat "cross_concat" "its heads' contexts side by side",
    CrossOutput "cross_output" "its concat · W_Oᵀ + b_O",
    CrossDroppedOutput "cross_dropped_output" "its output after dropout",
    Residual2 "residual2" "the second branch + what entered it",
    Norm2 "norm2" "the second norm",
    Hidden "hidden" "the feed-forward network's first layer",
    Gate "gate" "the layer beside it, whose activation is multiplied into it",
    Activation "activation" "the non-linearity",
    Gated "gated" "activation · hidden",
    DroppedActivation "dropped_activation" "the feed-forward network's middle after dropout",
    FeedForward "feed_forward" "its last layer",
    DroppedFeedForward "dropped_feed_forward" "its result after dropout",
    Residual3 "residual3" "a decoder's third branch + what entered it",
    Norm3 "norm3" "a decoder's third norm",
    FinalNorm "final_norm" "the norm behind a stack",
}

impl Stage {
    /// The stage of a decoder's second attention that stands for this one of the first.
    pub(crate) fn crossed(self) -> Self {
        match self {
            Self::Query => Self::CrossQuery,
            Self::Key => Self::CrossKey,
            Self::Value => Self::CrossValue,
            Self::NormedQuery => Self::CrossNormedQuery,
            Self::NormedKey => Self::CrossNormedKey,
            Self::Scores => Self::CrossScores,
            Self::Scaled => Self::CrossScaled,
            Self::Masked => Self::CrossMasked,
            Self::Weights => Self::CrossWeights,
            Self::DroppedWeights => Self::CrossDroppedWeights,
            Self::Context => Self::CrossContext,
            Self::Concat => Self::CrossConcat,
            Self::Output => Self::CrossOutput,
            Self::DroppedOutput => Self::CrossDroppedOutput,
            other => other,
        }
    }
}

/// A stage that a trace holds.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct StageInfo {
    /// Its name.
    pub name: Stage,
    /// Its block, from 0.
    pub layer: usize,
    /// Its shape.
    pub shape: Vec<usize>,
}

/// Some weights of a pass: those of some queries of a head.
#[derive(Debug)]
pub struct HandedOut<'n> {
    /// Which attention's.
    pub stage: Stage,
    /// Its block, from 0.
    pub layer: usize,
    /// The place of the first of them among all the weights of the stage, row-major.
    pub at: usize,
    /// The weights.
    pub numbers: &'n [f32],
}

/// A pass that is checked and ready to be run: nothing is computed yet.
#[derive(Debug)]
pub struct Plan {
    pub(crate) recipe: Recipe,
    /// What another pass computed before its mask.
    pub(crate) shared: Option<Arc<Vec<f32>>>,
    /// A pass of which rows are taken over.
    pub(crate) before: Option<Before>,
    pub(crate) hidden_axes: usize,
    pub(crate) returns: Returns,
    pub(crate) meeting: Meeting,
    pub(crate) max_bytes: usize,
}

impl Plan {
    /// Computes. `watch` is told which part of the work is done: from 0 to 1, never less than before, at the end 1. It is called
    /// after every head of a product, and after some ten thousand numbers of what is done one by one, or with several threads after what
    /// they do together; stages that are given, or
    /// are another's numbers under a name of their own, cost nothing.
    ///
    /// # Errors
    /// `too_large` where the pass needs more than `max_bytes`.
    pub fn run(self, watch: &mut dyn FnMut(f32)) -> Result<Trace> {
        self.carry_out(watch, None)
    }

    /// [`Plan::run`], where the trace does not hold the weights of [`Plan::handed_out`]: `take` is called with them, block by block,
    /// as soon as each is there, while other threads go on.
    ///
    /// # Errors
    /// As [`Plan::run`].
    pub fn run_handing_out(self, watch: &mut dyn FnMut(f32), take: &mut dyn FnMut(HandedOut)) -> Result<Trace> {
        self.carry_out(watch, Some(take))
    }

    /// The weights that the pass has in blocks and never as a whole: where they are wanted, each head's, of a pass that keeps no
    /// stages.
    pub fn handed_out(&self) -> Vec<StageInfo> {
        let steps = self.recipe.steps().iter().filter(|step| matches!(step.made, Made::HandedOut));
        steps.filter(|_| !self.returns.average_weights).map(|step| step.info(self.hidden_axes)).collect()
    }

    fn carry_out(self, watch: &mut dyn FnMut(f32), take: Option<&mut dyn FnMut(HandedOut)>) -> Result<Trace> {
        let Self { mut recipe, shared, before, hidden_axes, mut returns, meeting, max_bytes } = self;
        let mut take = take.filter(|_| recipe.handed_out() > 0 && !returns.average_weights);
        let mut held = if take.is_none() { recipe.room_for_handed_out(max_bytes)? } else { Vec::new() };
        let mut hand_out = |step: &Step, at: usize, numbers: &[f32]| match &mut take {
            Some(take) => take(HandedOut { stage: step.stage, layer: step.layer, at, numbers }),
            None => held[step.offset + at..][..numbers.len()].copy_from_slice(numbers),
        };
        let (shared, own) = recipe.run(shared, before.as_ref(), max_bytes, watch, &mut hand_out)?;
        returns.weights &= take.is_none();
        let (own, handed_out) = (Arc::new(own), Arc::new(held));
        Ok(Trace { recipe, shared, own, handed_out, hidden_axes, returns, meeting, max_bytes })
    }

    /// The same pass, which takes over what `before`, an earlier one of the same module, made of the same rows: after another
    /// token in one place its row alone is projected again. What it gives is the same to the bit. Where the two have not the same
    /// stages and shapes, or one keeps none, nothing is taken over.
    #[must_use]
    pub fn after(mut self, before: &Trace) -> Self {
        if self.shared.is_none() {
            self.before = Before::new(&self.recipe, 0, &before.recipe, before.parts());
        }
        self
    }

    /// What it costs, in multiply-adds.
    pub fn work(&self) -> f64 {
        self.recipe.work(self.first(), self.before.as_ref())
    }

    /// What it costs where no rows are taken over, as another device runs it.
    pub fn whole_work(&self) -> f64 {
        self.recipe.work(self.first(), None)
    }

    /// What a planner for another device needs to know of the pass.
    ///
    /// # Errors
    /// `too_large` where the pass needs more than `max_bytes`.
    pub fn outline(&self) -> Result<Outline> {
        match self.shared {
            Some(_) => self.recipe.check_own_size(self.max_bytes)?,
            None => self.recipe.check_size(self.max_bytes)?,
        }
        let shared = self.shared.as_ref().map_or(&[][..], |shared| shared);
        Ok(outline(&self.recipe, self.first(), shared, &self.wanted()))
    }

    /// The numbers that a step is given, or those of its projection's weight.
    pub fn given(&self, step: StepId) -> &[f32] {
        match &self.recipe.steps()[step].made {
            Made::Given(numbers) => numbers,
            Made::Linear { linear, .. } => &linear.weight.data,
            _ => &[],
        }
    }

    /// What may be left on another device: the stages that are kept, or else the weights, where they are asked for. In order, each
    /// with its step and how far it is from one entry of each axis to the next.
    pub fn stages(&self) -> impl Iterator<Item = (StageInfo, StepId, &[usize])> {
        let steps = self.recipe.steps().iter().enumerate();
        let left = steps.filter(|(_, step)| self.recipe.keeps() || self.returns.have(step));
        left.map(|(id, step)| (step.info(self.hidden_axes), id, &step.strides[self.hidden_axes..]))
    }

    /// A stage's numbers, row-major, of those of its step as another device has them.
    pub fn arranged(&self, step: StepId, numbers: &[f32]) -> Tensor {
        let step = &self.recipe.steps()[step];
        Tensor { shape: step.shape[self.hidden_axes..].to_vec(), data: step.arranged(numbers).into_owned() }
    }

    /// The steps of what the pass gives beside [`Plan::stages`]: the output, and before it the keys and values with the past's in front
    /// where one was given.
    pub fn given_back(&self) -> Vec<StepId> {
        let is_weights = |id: &StepId| self.returns.have(&self.recipe.steps()[*id]);
        self.wanted().into_iter().filter(|id| !is_weights(id)).collect()
    }

    /// The trace of a pass that another device computed. `numbers` are those of the arena from the first step on that was to be
    /// made; where no stages are kept, those of the steps of `places`, each from a place of its own on.
    pub fn computed(self, mut numbers: Vec<f32>, places: &[[usize; 2]]) -> Trace {
        let Self { mut recipe, shared, hidden_axes, returns, meeting, max_bytes, .. } = self;
        let (shared, own) = match (recipe.keeps(), shared) {
            (false, _) => {
                recipe.move_to(places);
                (Arc::default(), numbers)
            }
            (true, Some(shared)) => (shared, numbers),
            (true, None) => {
                recipe.place_given(&mut numbers);
                let own = numbers.split_off(recipe.shared_size());
                (Arc::new(numbers), own)
            }
        };
        let (own, handed_out) = (Arc::new(own), Arc::default());
        Trace { recipe, shared, own, handed_out, hidden_axes, returns, meeting, max_bytes }
    }

    /// The first step that is to be made.
    fn first(&self) -> StepId {
        if self.shared.is_some() { self.recipe.masked().unwrap_or(0) } else { 0 }
    }

    /// What [`Trace`] reads of a pass that keeps no stages.
    fn wanted(&self) -> Vec<StepId> {
        let is_wanted = |(_, step): &(StepId, &Step)| match step.stage {
            Stage::AllKeys | Stage::AllValues => self.recipe.find(Stage::PastKey, 0).is_some(),
            _ => self.returns.have(step),
        };
        let steps = self.recipe.steps().iter().enumerate().filter(is_wanted).map(|(id, _)| id);
        steps.chain([self.recipe.steps().len() - 1]).collect()
    }
}

/// One pass. Clones share its numbers.
#[derive(Debug, Clone)]
pub struct Trace {
    recipe: Recipe,
    /// What no mask reaches; passes under other masks hold the same.
    shared: Arc<Vec<f32>>,
    own: Arc<Vec<f32>>,
    /// Weights that the pass handed out, one step's behind the other's; none where they lie among its own numbers.
    handed_out: Arc<Vec<f32>>,
    /// Leading axes that the input did not have and the shapes therefore do not show.
    hidden_axes: usize,
    returns: Returns,
    meeting: Meeting,
    max_bytes: usize,
}

/// What the caller asked to have back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Returns {
    pub weights: bool,
    pub average_weights: bool,
}

impl Returns {
    pub fn of(options: &ForwardOptions) -> Self {
        Self { weights: options.need_weights, average_weights: options.average_weights }
    }

    /// Whether a step's numbers are weights that the caller wants.
    fn have(self, step: &Step) -> bool {
        self.weights && matches!(step.stage, Stage::Weights | Stage::CrossWeights)
    }
}

/// How a mask meets the scores of a pass.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meeting {
    /// Keys in front of this call's, which every query stands behind.
    pub past: usize,
    /// Real keys of each batch entry; the last query stands at the last of them.
    pub kv_lengths: Option<Vec<usize>>,
    /// Keys that the module adds behind the others, open to all.
    pub open_keys: usize,
}

impl Meeting {
    /// The mask at the size of the scores, causality and padding joined to it; none where every key is open.
    pub fn resolve(
        &self,
        mask: Option<&Mask>,
        is_causal: bool,
        scores: [usize; 4],
        max_bytes: usize,
    ) -> Result<Option<Arc<ResolvedMask>>> {
        let [batch, n_heads, n_q, n_k] = scores;
        let size = MaskSize { n_q, n_k: n_k - self.open_keys, n_heads, batch };
        let padding = self.kv_lengths.as_ref().map(|lengths| Mask::Padding { lengths: lengths.clone() });
        let causal = is_causal.then_some(&Mask::Causal);
        let masks: Vec<&Mask> = [mask, causal, padding.as_ref()].into_iter().flatten().collect();
        if masks.is_empty() {
            return Ok(None);
        }
        let first: Vec<i64> = match &self.kv_lengths {
            Some(lengths) => lengths.iter().map(|&length| length as i64 - n_q as i64).collect(),
            None => vec![self.past as i64],
        };
        let real_keys = self.kv_lengths.as_ref().and_then(|lengths| lengths.iter().copied().max()).unwrap_or(size.n_k);
        let resolved = Mask::meet_all(&masks, Scores { size, first: &first, real_keys, max_bytes })?;
        Ok(Some(Arc::new(if self.open_keys > 0 { resolved.with_open_keys(self.open_keys) } else { resolved })))
    }
}

impl Trace {
    /// The result: the last stage, `[n, d_model]` or as the input has it.
    pub fn output(&self) -> Tensor {
        self.output_in_place().into()
    }

    /// [`Trace::output`] where it lies.
    pub fn output_in_place(&self) -> InPlace<'_> {
        self.read(self.recipe.last())
    }

    /// The number of layers; 1 but for a stack.
    pub fn n_layers(&self) -> usize {
        self.recipe.last().layer + 1
    }

    /// A layer's attention weights, `[heads, n_q, n_k]`, or `[n_q, n_k]` where their mean was asked for; none where they were not.
    ///
    /// # Errors
    /// `no_such_stage` for a layer that is not there.
    pub fn weights(&self, layer: usize) -> Result<Option<Tensor>> {
        self.weights_of(Stage::Weights, layer)
    }

    /// The weights of a decoder's second attention, as [`Trace::weights`].
    ///
    /// # Errors
    /// `no_such_stage` for a layer that is not there, or that attends once.
    pub fn cross_weights(&self, layer: usize) -> Result<Option<Tensor>> {
        self.weights_of(Stage::CrossWeights, layer)
    }

    fn weights_of(&self, stage: Stage, layer: usize) -> Result<Option<Tensor>> {
        let weights = self.weights_in_place(stage, layer);
        if weights.is_none() && (self.returns.weights || layer >= self.n_layers()) {
            return Err(self.no_such(stage, layer));
        }
        Ok(weights.map(Tensor::from))
    }

    /// The keys and values with the past's in front, `[..., n_past + n_k, d]`; none where no past was given.
    pub fn present(&self) -> Option<[Tensor; 2]> {
        self.recipe.find(Stage::PastKey, 0)?;
        let read = |stage| self.recipe.find(stage, 0).map(|step| self.read(step).into());
        Some([read(Stage::AllKeys)?, read(Stage::AllValues)?])
    }

    /// A layer's weights where they lie, those of [`Trace::weights`] or [`Trace::cross_weights`]; none where these give none.
    pub fn weights_in_place(&self, stage: Stage, layer: usize) -> Option<InPlace<'_>> {
        let step = self.recipe.find(stage, layer).filter(|_| self.returns.weights)?;
        let weights = self.read(step);
        Some(if self.returns.average_weights { mean_over_heads(&weights) } else { weights })
    }

    /// Whether it holds every stage.
    pub fn keeps_stages(&self) -> bool {
        self.recipe.keeps()
    }

    /// The stages that were kept, in order.
    pub fn stages(&self) -> Vec<StageInfo> {
        let steps = if self.recipe.keeps() { self.recipe.steps() } else { &[] };
        steps.iter().map(|step| step.info(self.hidden_axes)).collect()
    }

    /// A stage's numbers; the weights, where they were asked for, also of a pass that kept no stages.
    ///
    /// # Errors
    /// `no_such_stage` where it was not kept.
    pub fn stage(&self, stage: Stage, layer: usize) -> Result<Tensor> {
        let weights = self.recipe.find(stage, layer).filter(|step| self.returns.have(step));
        weights.map_or_else(|| self.kept(stage, layer), Ok).map(|step| self.read(step).into())
    }

    /// A stage's numbers where they lie, row-major; copied where they lie in another order. Stages that lie at the same place are
    /// the same numbers.
    ///
    /// # Errors
    /// `no_such_stage` where it was not kept.
    pub fn numbers(&self, stage: Stage, layer: usize) -> Result<Cow<'_, [f32]>> {
        self.kept(stage, layer).map(|step| step.read(self.all()))
    }

    /// Whether another mask may change a stage: not the projections and scores of the first layer.
    pub fn is_masked(&self, stage: Stage, layer: usize) -> bool {
        let masked = self.recipe.masked().map(|first| &self.recipe.steps()[first..]).unwrap_or_default();
        masked.iter().any(|step| step.stage == stage && step.layer == layer)
    }

    /// How one cell of a stage was made, as arithmetic with the real numbers.
    ///
    /// # Errors
    /// `no_such_stage` where the stage was not kept, `shape_mismatch` where it has no such cell.
    pub fn explain(&self, stage: Stage, layer: usize, index: &[usize]) -> Result<Explanation> {
        let step = self.kept(stage, layer)?;
        let shape = &step.shape[self.hidden_axes..];
        if index.len() != shape.len() || index.iter().zip(shape).any(|(index, axis)| index >= axis) {
            return Err(AttnError::shape("index", index, format!("a cell of {} {}", stage.name(), Listed(shape))));
        }
        let mut inside = vec![0; self.hidden_axes];
        inside.extend_from_slice(index);
        let mut explanation = explain::explain(&self.recipe, self.all(), step, &inside);
        explanation.index = index.to_vec();
        Ok(explanation)
    }

    /// The same pass with another mask: the mask, the softmax and what follows are done again, no projection before them; and of a
    /// layer only the rows from the first to the last query that this mask lets see otherwise, as long as no later layer mixes them.
    ///
    /// # Errors
    /// `no_such_stage` where the pass kept no stages, `mask_shape` where the mask does not fit, `too_large` where what is done again
    /// needs more than the pass's `max_bytes`.
    pub fn remask(&self, mask: Option<&Mask>, options: &RemaskOptions) -> Result<Self> {
        self.plan_remask(mask, options)?.run(&mut |_| {})
    }

    /// [`Trace::remask`], ready to be run.
    ///
    /// # Errors
    /// As [`Trace::remask`].
    pub fn plan_remask(&self, mask: Option<&Mask>, options: &RemaskOptions) -> Result<Plan> {
        let Some(first) = self.recipe.masked() else { return Err(self.no_such(Stage::Masked, 0)) };
        let shape = &self.recipe.steps()[first].shape;
        let meeting = self.meeting.clone();
        let mask =
            meeting.resolve(mask, options.is_causal, [shape[0], shape[1], shape[2], shape[3]], self.max_bytes)?;
        let recipe = self.recipe.remade(|stage, made| match (stage, made) {
            (Stage::Masked, Made::Masked { mask: old, fill, .. }) => {
                old.clone_from(&mask);
                *fill = options.mask_fill;
            }
            (Stage::Weights, Made::Softmax { zero_empty_rows, .. }) => {
                *zero_empty_rows = options.empty_row == EmptyRow::Zero;
            }
            _ => {}
        });
        let before = Before::new(&recipe, first, &self.recipe, self.parts());
        Ok(Plan {
            recipe,
            shared: Some(self.shared.clone()),
            before,
            hidden_axes: self.hidden_axes,
            returns: self.returns,
            meeting,
            max_bytes: self.max_bytes,
        })
    }

    fn all(&self) -> Numbers<'_> {
        Numbers { shared: &self.shared, own: &self.own }
    }

    fn parts(&self) -> [Arc<Vec<f32>>; 2] {
        [self.shared.clone(), self.own.clone()]
    }

    fn kept(&self, stage: Stage, layer: usize) -> Result<&Step> {
        self.recipe.find(stage, layer).filter(|_| self.recipe.keeps()).ok_or_else(|| self.no_such(stage, layer))
    }

    fn no_such(&self, stage: Stage, layer: usize) -> Box<AttnError> {
        let available =
            self.stages().into_iter().filter(|info| info.layer == layer).map(|info| info.name.name().into());
        Box::new(AttnError::NoSuchStage { stage: stage.name().into(), layer, available: available.collect() })
    }

    fn read(&self, step: &Step) -> InPlace<'_> {
        let is_beside = matches!(step.made, Made::HandedOut) && !self.handed_out.is_empty();
        let numbers = if is_beside { Numbers { shared: &[], own: &self.handed_out } } else { self.all() };
        InPlace { shape: step.shape[self.hidden_axes..].to_vec(), numbers: step.read(numbers) }
    }
}

/// A tensor whose numbers are those of a pass, where they lie row-major; copied where they lie in another order.
#[derive(Debug)]
pub struct InPlace<'t> {
    /// Its shape, outermost axis first.
    pub shape: Vec<usize>,
    /// Its numbers.
    pub numbers: Cow<'t, [f32]>,
}

impl From<InPlace<'_>> for Tensor {
    fn from(InPlace { shape, numbers }: InPlace) -> Self {
        Self { shape, data: numbers.into_owned() }
    }
}

fn mean_over_heads(weights: &InPlace) -> InPlace<'static> {
    let heads_axis = weights.shape.len() - 3;
    let heads = weights.shape[heads_axis];
    let cells = weights.shape[heads_axis + 1] * weights.shape[heads_axis + 2];
    let mut shape = weights.shape.clone();
    shape.remove(heads_axis);
    let mut data = Vec::with_capacity(weights.numbers.len() / heads);
    for entry in weights.numbers.chunks_exact(heads * cells) {
        data.extend((0..cells).map(|cell| {
            let sum: f64 = entry.iter().skip(cell).step_by(cells).map(|&weight| f64::from(weight)).sum();
            (sum / heads as f64) as f32
        }));
    }
    InPlace { shape, numbers: Cow::Owned(data) }
}
