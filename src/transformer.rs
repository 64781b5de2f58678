//! The transformer's blocks and stacks of them: attention, residual, norm, feed-forward; a decoder's block attends a second
//! time, to a memory (<https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html>,
//! <https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerDecoderLayer.html>).

use std::sync::Arc;

use crate::config::{ForwardOptions, Init, MultiHeadAttentionOptions, Positions, TransformerOptions};
use crate::error::{AttnError, Result};
use crate::families::{Kind, Target};
use crate::mask::Mask;
use crate::multi_head_attention::{Attention, Dropout, MultiHeadAttention, rows};
use crate::parameters::{Linear, Norm, Parameter, Parameters, draw_linear};
use crate::positions::sinusoidal;
use crate::recipe::{Made, Recipe, StepId};
use crate::state_dict::{self, StateDict};
use crate::tensor::Tensor;
use crate::text::Listed;
use crate::torch::Generator;
use crate::trace::{Meeting, Plan, Returns, Stage, Trace};

/// A transformer block, or a stack of them where `n_layers` is given; an encoder's, or a decoder's.
#[derive(Debug, Clone)]
pub struct Transformer {
    options: TransformerOptions,
    blocks: Vec<Block>,
    /// `[max_length, d_model]`, of learned positions.
    positions: Option<Arc<Parameter>>,
    final_norm: Option<Norm>,
    is_decoder: bool,
}

#[derive(Debug, Clone)]
struct Block {
    attention: MultiHeadAttention,
    norm1: Norm,
    cross: Option<Cross>,
    linear1: Linear,
    gate: Option<Linear>,
    linear2: Linear,
    /// The norm of the feed-forward branch: `norm2`, in a decoder `norm3`.
    last_norm: Norm,
}

/// A decoder's attention to the memory, with its norm.
#[derive(Debug, Clone)]
struct Cross {
    attention: MultiHeadAttention,
    norm2: Norm,
}

/// What a decoder looks at.
#[derive(Debug, Clone, Copy)]
pub struct Memory<'a> {
    /// `[n_memory, d_model]` or `[batch, n_memory, d_model]`
    pub rows: &'a Tensor,
    /// Which of its rows a query may attend to; default all.
    pub mask: Option<&'a Mask>,
}

impl Transformer {
    /// An encoder. The weights are drawn block by block: attention's, then `linear1`, `gate`, `linear2`; positions come first.
    ///
    /// # Errors
    /// `not_divisible` where the heads do not divide dModel, `invalid_option` for a size that is none, `too_large` where the
    /// weights take more than `max_bytes`.
    pub fn encoder(options: TransformerOptions, generator: &mut Generator, max_bytes: usize) -> Result<Self> {
        Self::new(options, generator, max_bytes, false)
    }

    /// A decoder: each block attends to itself, then to a memory. Its second attention is drawn behind the first.
    ///
    /// # Errors
    /// As [`Transformer::encoder`].
    pub fn decoder(options: TransformerOptions, generator: &mut Generator, max_bytes: usize) -> Result<Self> {
        Self::new(options, generator, max_bytes, true)
    }

    fn new(options: TransformerOptions, generator: &mut Generator, max_bytes: usize, is_decoder: bool) -> Result<Self> {
        options.check(is_decoder, max_bytes)?;
        let (n_layers, d_ff) = options.sizes()?;
        let (d_model, bias) = (options.d_model, options.bias);
        let norm = || Norm::new(options.norm, d_model, bias, options.eps);
        let positions = (options.positions == Positions::Learned).then(|| {
            let data = generator.embedding(options.max_length, d_model, None);
            Parameter::new(Tensor { shape: vec![options.max_length, d_model], data })
        });
        let mut blocks = Vec::new();
        for _ in 0..n_layers {
            let mut attention = |of| MultiHeadAttention::new(&of, generator, max_bytes);
            let own = attention(options.attention())?;
            // A memory's rows stand nowhere beside the queries.
            let mut to_memory =
                || attention(MultiHeadAttentionOptions { positions: Positions::None, ..options.attention() });
            let cross = if is_decoder { Some(Cross { attention: to_memory()?, norm2: norm() }) } else { None };
            let mut linear = |name, d_in, d_out| draw_linear(generator, name, d_in, d_out, bias);
            blocks.push(Block {
                attention: own,
                norm1: norm(),
                cross,
                linear1: linear("linear1", d_model, d_ff),
                gate: options.gated.then(|| linear("gate", d_model, d_ff)),
                linear2: linear("linear2", d_ff, d_model),
                last_norm: norm(),
            });
        }
        let final_norm = options.final_norm.then(norm);
        Ok(Self { options, blocks, positions, final_norm, is_decoder })
    }

    /// Whether its blocks look at a memory.
    pub fn is_decoder(&self) -> bool {
        self.is_decoder
    }

    /// The parameters by name: `attention.query.weight` and so on, `norm1`, `linear1`, `linear2`, `norm2`; in a decoder
    /// `cross_attention` and `norm3` too, in a stack behind `layers.N.`; then what the options add: `gate`, `positions`, `norm`.
    pub fn state_dict(&self) -> StateDict {
        state_dict::copy(self.clone().parameters())
    }

    /// Takes the parameters from a state dict, its own or one of the families that `families.rs` knows; a single block
    /// takes those of `layer` where a dict has several.
    ///
    /// # Errors
    /// `bad_state_dict` naming the entry that is missing, extra or of the wrong shape; then nothing was loaded.
    pub fn load_state_dict(&mut self, dict: StateDict, layer: Option<usize>) -> Result<()> {
        self.load_own(self.target().translate(dict, layer)?)
    }

    /// [`load_state_dict`](Self::load_state_dict) of a dict with the module's own names, as [`state_dict`](Self::state_dict) gives it.
    ///
    /// # Errors
    /// `bad_state_dict`
    pub fn load_own(&mut self, dict: StateDict) -> Result<()> {
        state_dict::load(dict, self.parameters())
    }

    /// What dicts of other families are translated for.
    pub fn target(&self) -> Target {
        let kind = if self.options.n_layers.is_some() { Kind::Stack } else { Kind::Block };
        let turns_neighbours = self.options.positions == Positions::Rope && self.options.rope_interleaved;
        let (n_heads, shapes) = (self.options.n_heads, state_dict::shapes(self.clone().parameters()));
        Target { kind, is_decoder: self.is_decoder, n_heads, turns_neighbours, shapes }
    }

    fn parameters(&mut self) -> Parameters<'_> {
        let mut parameters = Parameters::new();
        if let Some(table) = &mut self.positions {
            parameters.push(("positions.weight".into(), table));
        }
        let is_stack = self.options.n_layers.is_some();
        for (layer, block) in self.blocks.iter_mut().enumerate() {
            let prefix = if is_stack { format!("layers.{layer}.") } else { String::new() };
            parameters.extend(block.parameters().into_iter().map(|(name, tensor)| (format!("{prefix}{name}"), tensor)));
        }
        if let Some(norm) = &mut self.final_norm {
            parameters.extend(norm.parameters("norm"));
        }
        parameters
    }

    /// Runs `x` `[n, d_model]` or `[batch, n, d_model]` through every block; the mask holds in each. A decoder needs a memory.
    ///
    /// # Errors
    /// `shape_mismatch`, `mask_shape`, `invalid_option`, or `too_large` where the pass needs more than `max_bytes`.
    pub fn forward(
        &self,
        x: &Tensor,
        memory: Option<Memory>,
        mask: Option<&Mask>,
        options: &ForwardOptions,
        max_bytes: usize,
    ) -> Result<Trace> {
        self.plan(x, memory, mask, options, max_bytes)?.run(&mut |_| {})
    }

    /// [`Transformer::forward`], ready to be run.
    ///
    /// # Errors
    /// As [`Transformer::forward`].
    pub fn plan(
        &self,
        x: &Tensor,
        memory: Option<Memory>,
        mask: Option<&Mask>,
        options: &ForwardOptions,
        max_bytes: usize,
    ) -> Result<Plan> {
        if options.training {
            return Err(AttnError::option("generator", "none", "a generator, since training is true"));
        }
        self.pass(x, memory, mask, options, None, max_bytes)
    }

    /// The same in training: dropout draws from the generator, in the order of the stages
    /// (<https://docs.pytorch.org/docs/stable/generated/torch.nn.Dropout.html>, as of PyTorch 2.7).
    ///
    /// # Errors
    /// As [`Transformer::forward`].
    pub fn train(
        &self,
        x: &Tensor,
        memory: Option<Memory>,
        mask: Option<&Mask>,
        options: &ForwardOptions,
        generator: &mut Generator,
        max_bytes: usize,
    ) -> Result<Trace> {
        self.plan_training(x, memory, mask, options, generator, max_bytes)?.run(&mut |_| {})
    }

    /// [`Transformer::train`], ready to be run: what dropout draws is drawn.
    ///
    /// # Errors
    /// As [`Transformer::forward`].
    pub fn plan_training(
        &self,
        x: &Tensor,
        memory: Option<Memory>,
        mask: Option<&Mask>,
        options: &ForwardOptions,
        generator: &mut Generator,
        max_bytes: usize,
    ) -> Result<Plan> {
        self.pass(x, memory, mask, options, Some(generator), max_bytes)
    }

    fn pass(
        &self,
        x: &Tensor,
        memory: Option<Memory>,
        mask: Option<&Mask>,
        options: &ForwardOptions,
        generator: Option<&mut Generator>,
        max_bytes: usize,
    ) -> Result<Plan> {
        let shape = rows("x", x, self.options.d_model)?;
        let mut recipe = Recipe::new(options.trace);
        let mut last = recipe.push(0, Stage::Input, shape.to_vec(), Made::Given(x.data.clone()));
        let memory = match (memory, self.is_decoder) {
            (None, false) => None,
            (Some(memory), true) => {
                let shape = rows("memory", memory.rows, self.options.d_model)?;
                if memory.rows.shape.len() != x.shape.len() || shape[0] != recipe.shape(last)[0] {
                    let expected = format!("the axes and batch of x {}", Listed(&x.shape));
                    return Err(AttnError::shape("memory", &memory.rows.shape, expected));
                }
                let given = Made::Given(memory.rows.data.clone());
                Some((recipe.push(0, Stage::Memory, shape.to_vec(), given), memory.mask))
            }
            (None, true) => return Err(AttnError::shape("memory", &[], "the rows that a decoder looks at")),
            (Some(memory), false) => {
                return Err(AttnError::shape("memory", &memory.rows.shape, "none: only a decoder has a memory"));
            }
        };
        if let Some(table) = self.position_table(shape[1])? {
            last = recipe.push(0, Stage::Positions, shape.to_vec(), Made::Positioned { from: last, table });
        }
        let mut pass = Pass { recipe, layer: 0, settings: &self.options, options, generator, max_bytes };
        for (layer, block) in self.blocks.iter().enumerate() {
            pass.layer = layer;
            if layer > 0 {
                last = pass.push(Stage::Input, last, Made::Same { from: last });
            }
            last = block.append(&mut pass, last, mask, memory)?;
        }
        if let Some(norm) = &self.final_norm {
            pass.push(Stage::FinalNorm, last, Made::Norm { from: last, norm: norm.clone() });
        }
        let (recipe, hidden_axes) = (pass.recipe, usize::from(x.shape.len() == 2));
        let (returns, meeting) = (Returns::of(options), Meeting::default());
        Ok(Plan { recipe, shared: None, before: None, hidden_axes, returns, meeting, max_bytes })
    }

    /// What is added to the first `n` rows.
    fn position_table(&self, n: usize) -> Result<Option<Arc<Parameter>>> {
        match (&self.positions, self.options.positions) {
            (Some(table), _) if n > table.shape[0] => {
                Err(AttnError::shape("x", &[n], format!("at most maxLength {} rows", table.shape[0])))
            }
            (Some(table), _) => Ok(Some(table.clone())),
            (None, Positions::Sinusoidal) => Ok(Some(Parameter::new(sinusoidal(n, self.options.d_model)))),
            (None, _) => Ok(None),
        }
    }
}

/// A pass under way, in one of its blocks.
struct Pass<'a> {
    recipe: Recipe,
    layer: usize,
    settings: &'a TransformerOptions,
    options: &'a ForwardOptions,
    generator: Option<&'a mut Generator>,
    max_bytes: usize,
}

impl Pass<'_> {
    /// Adds a step of the shape of another.
    fn push(&mut self, stage: Stage, like: StepId, made: Made) -> StepId {
        let shape = self.recipe.shape(like).to_vec();
        self.recipe.push(self.layer, stage, shape, made)
    }

    fn linear(&mut self, stage: Stage, from: StepId, linear: &Linear) -> StepId {
        let mut shape = self.recipe.shape(from).to_vec();
        shape[2] = linear.weight.shape[0];
        self.recipe.push(self.layer, stage, shape, Made::Linear { from, linear: linear.clone() })
    }

    fn norm(&mut self, stage: Stage, from: StepId, norm: &Norm) -> StepId {
        self.push(stage, from, Made::Norm { from, norm: norm.clone() })
    }

    /// In training, with some numbers dropped.
    fn dropped(&mut self, stage: Stage, from: StepId) -> Result<StepId> {
        let Some(generator) = &mut self.generator else { return Ok(from) };
        let shape = self.recipe.shape(from).to_vec();
        let mut dropout = Dropout { p: self.settings.dropout, generator };
        Ok(match dropout.factors(&mut self.recipe, &shape, self.max_bytes)? {
            Some(factors) => self.push(stage, from, Made::Dropped { from, factors }),
            None => from,
        })
    }

    fn attend(
        &mut self,
        attention: &MultiHeadAttention,
        inputs: [StepId; 3],
        mask: Option<&Mask>,
        named: fn(Stage) -> Stage,
    ) -> Result<StepId> {
        let is_causal = self.options.is_causal && named(Stage::Query) == Stage::Query;
        let p = self.settings.attention_dropout;
        let mut dropout = self.generator.as_deref_mut().map(|generator| Dropout { p, generator });
        let how =
            Attention { options: self.options, is_causal, named, dropout: dropout.as_mut(), max_bytes: self.max_bytes };
        let output = attention.append(&mut self.recipe, self.layer, inputs, mask, how)?;
        let dropped = self.dropped(named(Stage::DroppedOutput), output)?;
        // PyTorch's modules hold an attention's output token by token, each with its batch entries, and draw in that order.
        if dropped != output && self.settings.init == Init::Torch {
            let [batch, n, width] = self.recipe.shape(output)[..] else {
                unreachable!("a block's rows have three axes")
            };
            if let Made::Dropped { factors, .. } = &mut self.recipe.steps_mut()[dropped].made {
                let drawn = |at: usize| factors[(at / width % n * batch + at / width / n) * width + at % width];
                *factors = Arc::new((0..factors.len()).map(drawn).collect());
            }
        }
        Ok(dropped)
    }

    /// linear2(activation(linear1(from))), or with a gate linear2(activation(gate(from)) · linear1(from))
    fn feed_forward(&mut self, from: StepId, block: &Block) -> Result<StepId> {
        let hidden = self.linear(Stage::Hidden, from, &block.linear1);
        let activation = self.settings.activation;
        let middle = match &block.gate {
            None => self.push(Stage::Activation, hidden, Made::Activated { from: hidden, activation }),
            Some(gate) => {
                let gate = self.linear(Stage::Gate, from, gate);
                let activated = self.push(Stage::Activation, gate, Made::Activated { from: gate, activation });
                self.push(Stage::Gated, hidden, Made::Product { left: activated, right: hidden })
            }
        };
        let middle = self.dropped(Stage::DroppedActivation, middle)?;
        let result = self.linear(Stage::FeedForward, middle, &block.linear2);
        self.dropped(Stage::DroppedFeedForward, result)
    }
}

impl Block {
    fn parameters(&mut self) -> Parameters<'_> {
        fn within<'a>(prefix: &str, parameters: Parameters<'a>) -> Parameters<'a> {
            parameters.into_iter().map(|(name, tensor)| (format!("{prefix}.{name}"), tensor)).collect()
        }
        let last_norm = if self.cross.is_some() { "norm3" } else { "norm2" };
        let mut parameters = within("attention", self.attention.parameters());
        parameters.extend(self.norm1.parameters("norm1"));
        if let Some(Cross { attention, norm2 }) = &mut self.cross {
            parameters.extend(within("cross_attention", attention.parameters()));
            parameters.extend(norm2.parameters("norm2"));
        }
        for linear in [&mut self.linear1].into_iter().chain(&mut self.gate).chain([&mut self.linear2]) {
            parameters.extend(linear.parameters());
        }
        parameters.extend(self.last_norm.parameters(last_norm));
        parameters
    }

    /// Each branch reads what the one before gave, is normalised before or after, and is added to what it read.
    fn append(
        &self,
        pass: &mut Pass,
        input: StepId,
        mask: Option<&Mask>,
        memory: Option<(StepId, Option<&Mask>)>,
    ) -> Result<StepId> {
        let norm_first = pass.settings.norm_first;
        let mut last = input;
        // 1. Attention to itself.
        let from = if norm_first { pass.norm(Stage::Norm, last, &self.norm1) } else { last };
        let output = pass.attend(&self.attention, [from; 3], mask, |stage| stage)?;
        last = pass.push(Stage::Residual, last, Made::Sum { left: output, right: last });
        if !norm_first {
            last = pass.norm(Stage::Norm, last, &self.norm1);
        }
        // 2. In a decoder, attention to the memory.
        let [mut residual, mut norm] = [Stage::Residual2, Stage::Norm2];
        if let (Some(cross), Some((memory, memory_mask))) = (&self.cross, memory) {
            let from = if norm_first { pass.norm(norm, last, &cross.norm2) } else { last };
            let output = pass.attend(&cross.attention, [from, memory, memory], memory_mask, Stage::crossed)?;
            last = pass.push(residual, last, Made::Sum { left: output, right: last });
            if !norm_first {
                last = pass.norm(norm, last, &cross.norm2);
            }
            [residual, norm] = [Stage::Residual3, Stage::Norm3];
        }
        // 3. The feed-forward network; a parallel one reads the block's input.
        let read = if pass.settings.parallel { input } else { last };
        let from = if norm_first { pass.norm(norm, read, &self.last_norm) } else { read };
        let output = pass.feed_forward(from, self)?;
        last = pass.push(residual, last, Made::Sum { left: output, right: last });
        if !norm_first {
            last = pass.norm(norm, last, &self.last_norm);
        }
        Ok(last)
    }
}
