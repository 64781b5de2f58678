//! The transformer's encoder block and a stack of them: attention, residual, LayerNorm, feed-forward
//! (<https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html>).

use crate::attention::{MultiHeadAttention, draw_linear, linear_parameters, new_norm, norm_parameters, rows};
use crate::config::{Activation, ForwardOptions, MultiHeadAttentionOptions, TransformerOptions};
use crate::error::Result;
use crate::mask::Mask;
use crate::recipe::{LayerNorm, Linear, Made, Recipe, StepId};
use crate::state_dict::{Parameters, StateDict};
use crate::tensor::Tensor;
use crate::torch::Generator;
use crate::trace::{Returns, Stage, Trace, resolve};

/// A transformer block, or a stack of them where `n_layers` is given.
#[derive(Debug, Clone)]
pub struct Transformer {
    d_model: usize,
    n_heads: usize,
    norm_first: bool,
    activation: Activation,
    blocks: Vec<Block>,
    /// A stack's parameters stand behind `layers.N.`, a single block's do not.
    is_stack: bool,
}

#[derive(Debug, Clone)]
struct Block {
    attention: MultiHeadAttention,
    norm1: LayerNorm,
    linear1: Linear,
    linear2: Linear,
    norm2: LayerNorm,
}

impl Transformer {
    /// The weights are drawn block by block: attention's `query, key, value, out`, then `linear1`, `linear2`.
    ///
    /// # Errors
    /// `not_divisible` where the heads do not divide dModel, `invalid_option` for a size that is none.
    pub fn new(options: TransformerOptions, generator: &mut Generator) -> Result<Self> {
        let (n_layers, d_ff) = options.sizes()?;
        let d_model = options.d_model;
        let draw_block = |_| {
            let attention = MultiHeadAttentionOptions::new(d_model, options.n_heads);
            Ok(Block {
                attention: MultiHeadAttention::new(attention, generator)?,
                norm1: new_norm(d_model, options.eps),
                linear1: draw_linear(generator, "linear1", d_model, d_ff, true)?,
                linear2: draw_linear(generator, "linear2", d_ff, d_model, true)?,
                norm2: new_norm(d_model, options.eps),
            })
        };
        Ok(Self {
            d_model,
            n_heads: options.n_heads,
            norm_first: options.norm_first,
            activation: options.activation,
            blocks: (0..n_layers).map(draw_block).collect::<Result<_>>()?,
            is_stack: options.n_layers.is_some(),
        })
    }

    /// The parameters by name: `attention.query.weight` and so on, `norm1.*`, `linear1.*`, `linear2.*`, `norm2.*`,
    /// in a stack behind `layers.N.`.
    pub fn state_dict(&self) -> StateDict {
        self.clone().parameters().into_iter().map(|(name, tensor)| (name, Tensor::clone(tensor))).collect()
    }

    /// Takes the parameters from a state dict, its own or one of the families that `state_dict.rs` knows.
    ///
    /// # Errors
    /// `bad_state_dict` naming the entry that is missing, extra or of the wrong shape; then nothing was loaded.
    pub fn load_state_dict(&mut self, dict: StateDict) -> Result<()> {
        let mut loaded = self.clone();
        crate::state_dict::load(dict, loaded.parameters())?;
        *self = loaded;
        Ok(())
    }

    fn parameters(&mut self) -> Parameters<'_> {
        let is_stack = self.is_stack;
        let mut parameters = Parameters::new();
        for (layer, block) in self.blocks.iter_mut().enumerate() {
            let prefix = if is_stack { format!("layers.{layer}.") } else { String::new() };
            parameters.extend(block.parameters().into_iter().map(|(name, tensor)| (format!("{prefix}{name}"), tensor)));
        }
        parameters
    }

    /// Runs `x` `[n, d_model]` or `[batch, n, d_model]` through every block; the mask holds in each.
    ///
    /// # Errors
    /// `shape_mismatch`, `mask_shape`, `invalid_option`, or `too_large` where the pass needs more than `max_bytes`.
    pub fn forward(
        &self,
        x: &Tensor,
        mask: Option<&Mask>,
        options: &ForwardOptions,
        max_bytes: usize,
    ) -> Result<Trace> {
        let shape = rows("x", x, self.d_model)?;
        let mask = resolve(mask, options.is_causal, [shape[0], self.n_heads, shape[1], shape[1]])?;
        let mut recipe = Recipe::new(options.trace);
        let mut last = recipe.push(0, Stage::Input, shape.to_vec(), Made::Given(x.data.clone()));
        for (layer, block) in self.blocks.iter().enumerate() {
            if layer > 0 {
                last = recipe.push(layer, Stage::Input, shape.to_vec(), Made::Same { from: last });
            }
            let attention = |recipe: &mut Recipe, input: StepId| {
                block.attention.append(recipe, layer, [input; 3], mask.clone(), options)
            };
            last = if self.norm_first {
                // LayerNorm inside each branch: x + attention(norm(x)), then x + feed_forward(norm(x)).
                let norm = block.norm(&mut recipe, layer, Stage::Norm, last, &block.norm1);
                let output = attention(&mut recipe, norm)?;
                let residual = sum(&mut recipe, layer, Stage::Residual, output, last);
                let norm2 = block.norm(&mut recipe, layer, Stage::Norm2, residual, &block.norm2);
                let feed_forward = block.feed_forward(&mut recipe, layer, norm2, self.activation);
                sum(&mut recipe, layer, Stage::Residual2, feed_forward, residual)
            } else {
                // LayerNorm after each branch: norm(x + attention(x)), then norm(x + feed_forward(x)).
                let output = attention(&mut recipe, last)?;
                let residual = sum(&mut recipe, layer, Stage::Residual, output, last);
                let norm = block.norm(&mut recipe, layer, Stage::Norm, residual, &block.norm1);
                let feed_forward = block.feed_forward(&mut recipe, layer, norm, self.activation);
                let residual2 = sum(&mut recipe, layer, Stage::Residual2, feed_forward, norm);
                block.norm(&mut recipe, layer, Stage::Norm2, residual2, &block.norm2)
            };
        }
        let returns = Returns { weights: options.need_weights, average_weights: options.average_weights };
        Trace::run(recipe, usize::from(x.shape.len() == 2), returns, max_bytes)
    }
}

impl Block {
    fn parameters(&mut self) -> Parameters<'_> {
        let attention = self.attention.parameters();
        let mut parameters: Parameters =
            attention.into_iter().map(|(name, tensor)| (format!("attention.{name}"), tensor)).collect();
        parameters.extend(norm_parameters("norm1", &mut self.norm1));
        parameters.extend(linear_parameters(&mut self.linear1));
        parameters.extend(linear_parameters(&mut self.linear2));
        parameters.extend(norm_parameters("norm2", &mut self.norm2));
        parameters
    }

    fn norm(&self, recipe: &mut Recipe, layer: usize, stage: Stage, from: StepId, norm: &LayerNorm) -> StepId {
        let shape = recipe.shape(from).to_vec();
        recipe.push(layer, stage, shape, Made::LayerNorm { from, norm: norm.clone() })
    }

    /// linear2(activation(linear1(from)))
    fn feed_forward(&self, recipe: &mut Recipe, layer: usize, from: StepId, activation: Activation) -> StepId {
        let [batch, n, d_model] = recipe.shape(from)[..] else { unreachable!("a block's rows have three axes") };
        let wide = vec![batch, n, self.linear1.weight.shape[0]];
        let linear = |from, linear: &Linear| Made::Linear { from, linear: linear.clone() };
        let hidden = recipe.push(layer, Stage::Hidden, wide.clone(), linear(from, &self.linear1));
        let activated = recipe.push(layer, Stage::Activation, wide, Made::Activated { from: hidden, activation });
        recipe.push(layer, Stage::FeedForward, vec![batch, n, d_model], linear(activated, &self.linear2))
    }
}

fn sum(recipe: &mut Recipe, layer: usize, stage: Stage, left: StepId, right: StepId) -> StepId {
    let shape = recipe.shape(left).to_vec();
    recipe.push(layer, stage, shape, Made::Sum { left, right })
}
