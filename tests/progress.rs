//! A pass under watch: what is told of it, and that its numbers are those of a pass that nobody watches.

use attnscope::{
    ForwardOptions, Mask, Memory, MultiHeadAttention, MultiHeadAttentionOptions, Plan, QueryKeyValue, RemaskOptions,
    ScaledDotProductOptions, Stage, Tensor, Trace, Transformer, TransformerOptions, plan_attention, torch::Generator,
};

const MAX_BYTES: usize = 1 << 30;

/// The pass, and the parts that were told: from above 0 up to 1, none less than the one before.
fn watched(plan: Plan) -> (Trace, Vec<f32>) {
    let mut parts = Vec::new();
    let trace = plan.run(&mut |part| parts.push(part)).unwrap();
    assert!(parts[0] > 0.0 && parts.is_sorted());
    assert_eq!(parts.last(), Some(&1.0));
    (trace, parts)
}

fn random(shape: &[usize]) -> Tensor {
    Tensor::new(Generator::new(1).randn(shape.iter().product()), shape.to_vec()).unwrap()
}

fn options(trace: bool) -> ForwardOptions {
    ForwardOptions { trace, ..ForwardOptions::default() }
}

#[test]
fn multi_head_attention_tells_evenly_how_far_it_is() {
    let mha =
        MultiHeadAttention::new(&MultiHeadAttentionOptions::new(64, 4), &mut Generator::new(0), MAX_BYTES).unwrap();
    let x = random(&[300, 64]);
    for trace in [true, false] {
        let options = options(trace);
        let (pass, parts) = watched(mha.plan(&x, None, None, Some(&Mask::Causal), &options, MAX_BYTES).unwrap());
        assert!(parts.len() >= 6, "{parts:?}");
        assert!(parts.windows(2).all(|pair| pair[1] - pair[0] < 0.3), "{parts:?}");
        let alone = mha.forward(&x, None, None, Some(&Mask::Causal), &options, MAX_BYTES).unwrap();
        assert_eq!(pass.output(), alone.output());
        assert_eq!(pass.weights(0), alone.weights(0));
    }
}

#[test]
fn another_mask_is_watched_and_shares_what_it_does_not_reach() {
    let mha =
        MultiHeadAttention::new(&MultiHeadAttentionOptions::new(64, 4), &mut Generator::new(0), MAX_BYTES).unwrap();
    let x = random(&[300, 64]);
    let plain = mha.forward(&x, None, None, None, &options(true), MAX_BYTES).unwrap();
    let (causal, _) = watched(plain.plan_remask(Some(&Mask::Causal), &RemaskOptions::default()).unwrap());
    let direct = mha.forward(&x, None, None, Some(&Mask::Causal), &options(true), MAX_BYTES).unwrap();
    let (again, _) = watched(causal.plan_remask(None, &RemaskOptions::default()).unwrap());
    for info in plain.stages() {
        let (stage, layer) = (info.name, info.layer);
        assert_eq!(causal.stage(stage, layer), direct.stage(stage, layer), "{stage:?}");
        assert_eq!(again.stage(stage, layer), plain.stage(stage, layer), "{stage:?}");
        let is_shared =
            !matches!(stage, Stage::Masked | Stage::Weights | Stage::Context | Stage::Concat | Stage::Output);
        assert_eq!(plain.is_masked(stage, layer), !is_shared, "{stage:?}");
    }
    let place = |trace: &Trace, stage| trace.numbers(stage, 0).unwrap().as_ptr();
    assert_eq!(place(&plain, Stage::Scores), place(&causal, Stage::Scores));
    // Without a mask there is nothing to fill.
    assert_eq!(place(&plain, Stage::Masked), place(&plain, Stage::Scaled));
    assert_ne!(place(&causal, Stage::Masked), place(&causal, Stage::Scaled));
}

#[test]
fn blocks_stacks_decoders_and_training_are_watched() {
    let sizes = TransformerOptions { n_layers: Some(3), dropout: 0.1, ..TransformerOptions::new(32, 4) };
    let stack = Transformer::encoder(sizes.clone(), &mut Generator::new(0), MAX_BYTES).unwrap();
    let decoder = Transformer::decoder(sizes, &mut Generator::new(0), MAX_BYTES).unwrap();
    let (x, rows) = (random(&[2, 70, 32]), random(&[2, 50, 32]));
    for trace in [true, false] {
        let options = options(trace);
        let (pass, _) = watched(stack.plan(&x, None, Some(&Mask::Causal), &options, MAX_BYTES).unwrap());
        let alone = stack.forward(&x, None, Some(&Mask::Causal), &options, MAX_BYTES).unwrap();
        assert_eq!(pass.output(), alone.output());

        let memory = || Some(Memory { rows: &rows, mask: None });
        let (pass, _) = watched(decoder.plan(&x, memory(), None, &options, MAX_BYTES).unwrap());
        assert_eq!(pass.output(), decoder.forward(&x, memory(), None, &options, MAX_BYTES).unwrap().output());

        let training = ForwardOptions { training: true, ..options };
        let plan = stack.plan_training(&x, None, None, &training, &mut Generator::new(3), MAX_BYTES).unwrap();
        let alone = stack.train(&x, None, None, &training, &mut Generator::new(3), MAX_BYTES).unwrap();
        assert_eq!(watched(plan).0.output(), alone.output());
    }
}

#[test]
fn attention_alone_is_watched() {
    let [query, key, value] = [1, 2, 3].map(|_| random(&[2, 40, 8]));
    let inputs = QueryKeyValue { query: &query, key: &key, value: &value, past: None };
    for trace in [true, false] {
        let options = ScaledDotProductOptions { trace, is_causal: true, ..ScaledDotProductOptions::default() };
        let (pass, _) = watched(plan_attention(inputs, None, &options, MAX_BYTES).unwrap());
        let alone = attnscope::scaled_dot_product_attention(inputs, None, &options, MAX_BYTES).unwrap();
        assert_eq!(pass.output(), alone.output());
    }
}

#[test]
fn another_mask_needs_only_what_it_reaches() {
    let mha =
        MultiHeadAttention::new(&MultiHeadAttentionOptions::new(8, 2), &mut Generator::new(0), MAX_BYTES).unwrap();
    let x = random(&[64, 8]);
    // Scores, scaled and weights, but no room for a fourth matrix of each head.
    let matrix = 4 * 2 * 64 * 64;
    let plain = mha.forward(&x, None, None, None, &options(true), 7 * matrix / 2).unwrap();
    assert!(mha.forward(&x, None, None, Some(&Mask::Causal), &options(true), 7 * matrix / 2).is_err());
    assert!(plain.remask(Some(&Mask::Causal), &RemaskOptions::default()).is_ok());
}
