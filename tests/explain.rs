//! `explain` for every cell of every stage: its arithmetic, done again in float64, gives the number that the kernels left there.

use attnscope::{
    Activation, EmptyRow, Explanation, ForwardOptions, Mask, Memory, MultiHeadAttention, MultiHeadAttentionOptions,
    NormKind, Operation, Positions, QueryKeyValue, RemaskOptions, ScaledDotProductOptions, Stage, Tensor, Trace,
    Transformer, TransformerOptions, scaled_dot_product_attention, torch::Generator,
};
use proptest::prelude::*;

const MAX_BYTES: usize = 1 << 30;

fn recompute(explanation: &Explanation) -> f64 {
    let find = |name| explanation.constants.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    let constant = |name| find(name).unwrap();
    let products = explanation.terms.iter().map(|term| term.product).sum::<f64>();
    let factor = find("head_mask").unwrap_or(1.0);
    match explanation.operation {
        Operation::Given => explanation.value,
        Operation::Dot => (products + constant("bias")) * factor,
        Operation::Scale | Operation::Sum => products,
        Operation::Softcap => constant("cap") * (constant("x") / constant("cap")).tanh(),
        Operation::Mask if constant("allowed") == 0.0 => constant("fill"),
        Operation::Mask => constant("scaled") + constant("bias"),
        Operation::Softmax => constant("exp") / constant("sum"),
        Operation::LayerNorm => {
            let spread = (constant("variance") + constant("eps")).sqrt();
            (constant("x") - constant("mean")) / spread * constant("weight") + constant("bias")
        }
        Operation::RmsNorm => constant("x") / (constant("mean_square") + constant("eps")).sqrt() * constant("weight"),
        Operation::Relu => constant("x").max(0.0),
        Operation::Gelu => constant("x") * 0.5 * (1.0 + erf_series(constant("x") / 2f64.sqrt())),
        Operation::GeluTanh => {
            let x = constant("x");
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
        }
        Operation::Silu => constant("x") / (1.0 + (-constant("x")).exp()),
        Operation::QuickGelu => constant("x") / (1.0 + (-1.702 * constant("x")).exp()),
    }
}

/// erf by its Maclaurin series: exact enough for |x| < 3, and not the library that the engine uses.
fn erf_series(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..60 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

/// Checks every cell and gives their number.
fn check(trace: &Trace) -> usize {
    let mut cells = 0;
    for info in trace.stages() {
        let tensor = trace.stage(info.name, info.layer).unwrap();
        assert_eq!(tensor.shape, info.shape);
        for (flat, &value) in tensor.data.iter().enumerate() {
            let mut index = vec![0; info.shape.len()];
            let mut rest = flat;
            for axis in (0..index.len()).rev() {
                index[axis] = rest % info.shape[axis];
                rest /= info.shape[axis];
            }
            let explanation = trace.explain(info.name, info.layer, &index).unwrap();
            assert_eq!(explanation.value.to_bits(), f64::from(value).to_bits());
            for term in &explanation.terms {
                let product = match explanation.operation {
                    Operation::Softmax => libm::exp(term.left - term.right),
                    _ => term.left * term.right,
                };
                assert_eq!(term.product.to_bits(), product.to_bits());
            }
            let again = recompute(&explanation);
            let scale =
                1.0 + value.abs().max(explanation.terms.iter().fold(0.0, |sum: f32, t| sum + t.product.abs() as f32));
            assert!(
                (f64::from(value) - again).abs() <= 2e-6 * f64::from(scale),
                "{:?}{index:?}: {value}, explained as {again}",
                info.name
            );
            cells += 1;
        }
    }
    cells
}

fn random(generator: &mut Generator, shape: &[usize]) -> Tensor {
    Tensor::new(generator.randn(shape.iter().product()), shape.to_vec()).unwrap()
}

fn to_itself(x: &Tensor) -> QueryKeyValue<'_> {
    QueryKeyValue { query: x, key: x, value: x, past: None }
}

fn masks(n: usize) -> Vec<Option<Mask>> {
    let causal_alibi = |heads| Mask::And { left: Box::new(Mask::Causal), right: Box::new(Mask::Alibi { heads }) };
    vec![
        None,
        Some(Mask::Causal),
        Some(Mask::Padding { lengths: vec![n.div_ceil(2)] }),
        Some(causal_alibi(2)),
        Some(Mask::Not { mask: Box::new(Mask::Causal) }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn multi_head_attention(batch in 1usize..3, n in 1usize..7, n_k in 1usize..7, d_k in 1usize..6, d_v in 1usize..6, which in 0usize..5, added in 0usize..4, turned in 0usize..3, seed in 0i64..1000) {
        let mut generator = Generator::new(seed);
        let (positions, d_k) = if turned > 0 { (Positions::Rope, 2 * d_k) } else { (Positions::None, d_k) };
        let options = MultiHeadAttentionOptions {
            d_k: Some(d_k), d_v: Some(d_v), k_dim: Some(5), v_dim: Some(3), residual_norm: true,
            bias_kv: added & 1 > 0, add_zero_attn: added & 2 > 0, qk_norm: turned == 2, positions,
            rope_interleaved: turned == 2, rotary_dim: (turned == 2).then_some(2),
            ..MultiHeadAttentionOptions::new(7, 2)
        };
        let mha = MultiHeadAttention::new(&options, &mut generator, MAX_BYTES).unwrap();
        let (x, key) = (random(&mut generator, &[batch, n, 7]), random(&mut generator, &[batch, n_k, 5]));
        let value = random(&mut generator, &[batch, n_k, 3]);
        let forward = ForwardOptions { trace: true, head_mask: Some(vec![1.0, 0.5]), ..ForwardOptions::default() };
        let mask = &masks(n_k)[which];
        let trace = mha.forward(&x, Some(&key), Some(&value), mask.as_ref(), &forward, MAX_BYTES).unwrap();
        check(&trace);
        // Without a trace the stages share their places; the numbers are the same.
        let bare = ForwardOptions { trace: false, ..forward };
        let bare = mha.forward(&x, Some(&key), Some(&value), mask.as_ref(), &bare, MAX_BYTES).unwrap();
        prop_assert_eq!(bare.output(), trace.output());
        prop_assert_eq!(bare.weights(0).unwrap(), trace.weights(0).unwrap());
        prop_assert!(bare.stages().is_empty());
    }

    #[test]
    fn stack(n in 1usize..5, layers in 1usize..3, which in 0usize..5, function in 0usize..5, switches in 0usize..64, positions in 0usize..4, dropout in 0usize..2, seed in 0i64..1000) {
        let mut generator = Generator::new(seed);
        let on = |bit: usize| switches >> bit & 1 > 0;
        let options = TransformerOptions {
            n_layers: Some(layers),
            norm_first: on(0),
            activation: [Activation::Relu, Activation::Gelu, Activation::GeluTanh, Activation::Silu, Activation::QuickGelu][function],
            gated: on(1),
            norm: if on(2) { NormKind::Rms } else { NormKind::Layer },
            final_norm: on(3),
            parallel: on(0) && on(4),
            bias: on(5),
            n_kv_heads: on(4).then_some(1),
            d_k: Some(4),
            positions: [Positions::None, Positions::Rope, Positions::Sinusoidal, Positions::Learned][positions],
            dropout: 0.25,
            attention_dropout: 0.5,
            ..TransformerOptions::new(6, 2)
        };
        let x = random(&mut generator, &[n, 6]);
        let memory = random(&mut generator, &[3, 6]);
        let mask = &masks(n)[which];
        for is_decoder in [false, true] {
            let new = if is_decoder { Transformer::decoder } else { Transformer::encoder };
            let stack = new(options.clone(), &mut generator, MAX_BYTES).unwrap();
            let memory = is_decoder.then_some(Memory { rows: &memory, mask: None });
            let forward = |trace, draws: &mut Generator| {
                let options = ForwardOptions { trace, training: dropout > 0, ..ForwardOptions::default() };
                match dropout {
                    0 => stack.forward(&x, memory, mask.as_ref(), &options, MAX_BYTES),
                    _ => stack.train(&x, memory, mask.as_ref(), &options, draws, MAX_BYTES),
                }
            };
            let trace = forward(true, &mut Generator::new(seed)).unwrap();
            check(&trace);
            let bare = forward(false, &mut Generator::new(seed)).unwrap();
            prop_assert_eq!(bare.output(), trace.output());
            prop_assert_eq!(bare.weights(0).unwrap(), trace.weights(0).unwrap());
        }
    }

    #[test]
    fn running_again_from_the_mask_is_a_fresh_pass(n in 1usize..6, from in 0usize..5, to in 0usize..5, seed in 0i64..1000) {
        let mut generator = Generator::new(seed);
        let stack = TransformerOptions { n_layers: Some(2), ..TransformerOptions::new(6, 2) };
        let stack = Transformer::encoder(stack, &mut generator, MAX_BYTES).unwrap();
        let x = random(&mut generator, &[n, 6]);
        let options = ForwardOptions { trace: true, mask_fill: f32::NEG_INFINITY, empty_row: EmptyRow::Zero, ..ForwardOptions::default() };
        let first = stack.forward(&x, None, masks(n)[from].as_ref(), &ForwardOptions { trace: true, ..ForwardOptions::default() }, MAX_BYTES).unwrap();
        let remask = RemaskOptions { mask_fill: f32::NEG_INFINITY, empty_row: EmptyRow::Zero, is_causal: false };
        let again = first.remask(masks(n)[to].as_ref(), &remask).unwrap();
        let fresh = stack.forward(&x, None, masks(n)[to].as_ref(), &options, MAX_BYTES).unwrap();
        for info in fresh.stages() {
            prop_assert_eq!(again.stage(info.name, info.layer).unwrap(), fresh.stage(info.name, info.layer).unwrap());
        }
    }
}

#[test]
fn grouped_heads_and_softcap() {
    let mut generator = Generator::new(7);
    let query = random(&mut generator, &[2, 4, 3, 5]);
    let (key, value) = (random(&mut generator, &[2, 2, 6, 5]), random(&mut generator, &[2, 2, 6, 4]));
    let options = ScaledDotProductOptions { softcap: 2.0, trace: true, ..ScaledDotProductOptions::default() };
    let inputs = QueryKeyValue { query: &query, key: &key, value: &value, past: None };
    let trace = scaled_dot_product_attention(inputs, Some(&Mask::Causal), &options, MAX_BYTES).unwrap();
    assert!(trace.stages().iter().any(|info| info.name == Stage::Capped));
    assert!(check(&trace) > 500);
}

#[test]
fn a_past_stands_in_front() {
    let mut generator = Generator::new(8);
    let query = random(&mut generator, &[4, 3, 5]);
    let (key, value) = (random(&mut generator, &[2, 7, 5]), random(&mut generator, &[2, 7, 4]));
    let part = |tensor: &Tensor, from: usize, to: usize| {
        let width = tensor.shape[2];
        let data = tensor.data.chunks_exact(7 * width).flat_map(|head| &head[from * width..to * width]);
        Tensor::new(data.copied().collect(), vec![2, to - from, width]).unwrap()
    };
    let options = ScaledDotProductOptions { trace: true, is_causal: true, ..ScaledDotProductOptions::default() };
    let past = [part(&key, 0, 4), part(&value, 0, 4)];
    let inputs = QueryKeyValue {
        query: &query,
        key: &part(&key, 4, 7),
        value: &part(&value, 4, 7),
        past: Some([&past[0], &past[1]]),
    };
    let trace = scaled_dot_product_attention(inputs, None, &options, MAX_BYTES).unwrap();
    check(&trace);
    let [all_keys, all_values] = trace.present().unwrap();
    assert_eq!((&all_keys, &all_values), (&key, &value));
    // Query i stands at position 4 + i.
    let rows = [[1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1, 0], [1; 7]];
    let mask = Mask::Keep { shape: vec![3, 7], data: rows.concat(), axes: None };
    let inputs = QueryKeyValue { query: &query, key: &key, value: &value, past: None };
    let options = ScaledDotProductOptions { is_causal: false, ..options };
    let whole = scaled_dot_product_attention(inputs, Some(&mask), &options, MAX_BYTES).unwrap();
    assert_eq!(whole.output(), trace.output());
    // The mask may be exchanged afterwards.
    let open = trace.remask(None, &RemaskOptions::default()).unwrap();
    let fresh = scaled_dot_product_attention(inputs, None, &options, MAX_BYTES).unwrap();
    assert_eq!(open.output(), fresh.output());
    let causal = whole.remask(Some(&mask), &RemaskOptions::default()).unwrap();
    assert_eq!(
        causal.output(),
        trace.remask(None, &RemaskOptions { is_causal: true, ..Default::default() }).unwrap().output()
    );
}

#[test]
fn a_row_with_nothing_allowed() {
    let mut generator = Generator::new(7);
    let x = random(&mut generator, &[3, 4]);
    let hidden = Mask::Masked { shape: vec![3, 3], data: vec![0, 1, 1, 1, 1, 1, 0, 0, 0], axes: None };
    let middle_row = |mask_fill, empty_row| {
        let options = ScaledDotProductOptions { mask_fill, empty_row, ..ScaledDotProductOptions::default() };
        let trace = scaled_dot_product_attention(to_itself(&x), Some(&hidden), &options, MAX_BYTES).unwrap();
        trace.weights(0).unwrap().unwrap().data[3..6].to_vec()
    };
    assert_eq!(middle_row(-1e9, EmptyRow::Nan), [1.0 / 3.0; 3]);
    assert!(middle_row(f32::NEG_INFINITY, EmptyRow::Nan).iter().all(|x| x.is_nan()));
    assert_eq!(middle_row(f32::NEG_INFINITY, EmptyRow::Zero), [0.0; 3]);
}

#[test]
fn too_large_is_refused_before_it_is_allocated() {
    let x = Tensor::new(vec![0.0; 4096], vec![4096, 1]).unwrap();
    let options = ScaledDotProductOptions::default();
    let error = scaled_dot_product_attention(to_itself(&x), None, &options, 1 << 20).unwrap_err();
    assert_eq!(error.code().as_str(), "too_large");
}

#[test]
fn a_stage_that_was_not_kept_is_an_error() {
    let x = Tensor::new(vec![0.0; 4], vec![2, 2]).unwrap();
    let trace =
        scaled_dot_product_attention(to_itself(&x), None, &ScaledDotProductOptions::default(), MAX_BYTES).unwrap();
    assert_eq!(trace.stage(Stage::Scores, 0).unwrap_err().code().as_str(), "no_such_stage");
    assert_eq!(trace.explain(Stage::Scores, 0, &[0, 0]).unwrap_err().code().as_str(), "no_such_stage");
    assert_eq!(trace.remask(None, &RemaskOptions::default()).unwrap_err().code().as_str(), "no_such_stage");
}

#[test]
fn a_row_that_gives_zero_says_so_without_a_division() {
    let x = Tensor::new(vec![1.0, 2.0, 3.0, 4.0], vec![2, 2]).unwrap();
    let inputs = QueryKeyValue { query: &x, key: &x, value: &x, past: None };
    let mask = Mask::Keep { shape: vec![2, 2], data: vec![0, 0, 1, 1], axes: None };
    let options = ScaledDotProductOptions {
        mask_fill: f32::NEG_INFINITY,
        empty_row: EmptyRow::Zero,
        trace: true,
        ..ScaledDotProductOptions::default()
    };
    let trace = scaled_dot_product_attention(inputs, Some(&mask), &options, MAX_BYTES).unwrap();
    let empty = trace.explain(Stage::Weights, 0, &[0, 1]).unwrap();
    assert_eq!(empty.formula, "weights[i, j] = 0: no key is allowed");
    assert!(empty.terms.iter().all(|term| term.product == 0.0));
    assert_eq!((empty.value, recompute(&trace.explain(Stage::Weights, 0, &[1, 0]).unwrap()) > 0.0), (0.0, true));
}
