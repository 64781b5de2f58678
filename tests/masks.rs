//! What masks do to attention, for every rule: the same as their matrix does, the same behind a past, and nothing leaks.

use attnscope::{
    EmptyRow, ForwardOptions, Mask, MaskAxes, MaskSize, Memory, MultiHeadAttention, MultiHeadAttentionOptions,
    QueryKeyValue, ScaledDotProductOptions, Tensor, Trace, Transformer, TransformerOptions,
    scaled_dot_product_attention, torch::Generator,
};
use proptest::prelude::*;

const MAX_BYTES: usize = 1 << 28;
const N: usize = 6;
const HEADS: usize = 2;

fn random(generator: &mut Generator, shape: &[usize]) -> Tensor {
    Tensor::new(generator.randn(shape.iter().product()), shape.to_vec()).unwrap()
}

fn exact() -> ScaledDotProductOptions {
    ScaledDotProductOptions {
        mask_fill: f32::NEG_INFINITY,
        empty_row: EmptyRow::Zero,
        ..ScaledDotProductOptions::default()
    }
}

fn attend(query: &Tensor, key: &Tensor, value: &Tensor, mask: &Mask, options: &ScaledDotProductOptions) -> Trace {
    let inputs = QueryKeyValue { query, key, value, past: None };
    scaled_dot_product_attention(inputs, Some(mask), options, MAX_BYTES).unwrap()
}

fn weights(trace: &Trace) -> Tensor {
    trace.weights(0).unwrap().unwrap()
}

/// Rules over N positions and HEADS heads; with `matrices` also those that are given cell by cell.
fn any_mask(matrices: bool) -> BoxedStrategy<Mask> {
    let rules = prop_oneof![
        Just(Mask::Causal),
        (0..=N).prop_map(|length| Mask::Padding { lengths: vec![length] }),
        (0..N, 0..N).prop_map(|(left, right)| Mask::SlidingWindow { left, right }),
        (0..N).prop_map(|keys| Mask::Prefix { keys }),
        prop::collection::vec(0..3, N).prop_map(|ids| Mask::Documents { ids }),
        prop::collection::vec(0..N, 0..3).prop_map(|indices| Mask::Global { indices }),
        (1usize..4, 1usize..4).prop_map(|(width, stride)| Mask::Dilated { width, stride }),
        Just(Mask::Alibi { heads: HEADS }),
        prop::collection::vec(any::<i8>(), 8 * HEADS).prop_map(|numbers| Mask::Relative {
            buckets: 8,
            heads: HEADS,
            table: numbers.iter().flat_map(|&number| (f32::from(number) / 32.0).to_le_bytes()).collect(),
            bidirectional: true,
            max_distance: 16,
        }),
    ];
    let leaves = if matrices {
        let cells = prop::collection::vec(0u8..2, N * N);
        let added = prop::collection::vec(-2f32..2.0, N * N);
        prop_oneof![
            rules,
            cells.clone().prop_map(|data| Mask::Keep { shape: vec![N, N], data, axes: None }),
            cells.prop_map(|data| Mask::Masked { shape: vec![N, N], data, axes: None }),
            added.prop_map(|numbers| Mask::Additive {
                shape: vec![N, N],
                data: numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
                axes: None
            }),
        ]
        .boxed()
    } else {
        rules.boxed()
    };
    leaves
        .prop_recursive(2, 6, 2, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(a, b)| Mask::And { left: Box::new(a), right: Box::new(b) }),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| Mask::Or { left: Box::new(a), right: Box::new(b) }),
                prop::collection::vec(inner, HEADS).prop_map(|masks| Mask::PerHead { masks }),
            ]
        })
        .boxed()
}

/// Rows `from..to` of `[heads, n, width]`.
fn rows(tensor: &Tensor, from: usize, to: usize) -> Tensor {
    let [heads, n, width] = tensor.shape[..] else { panic!("three axes") };
    let data = tensor.data.chunks_exact(n * width).flat_map(|head| &head[from * width..to * width]).copied().collect();
    Tensor::new(data, vec![heads, to - from, width]).unwrap()
}

proptest! {
    #[test]
    fn a_rule_is_its_matrix(mask in any_mask(true), seed in 0i64..100) {
        let mut generator = Generator::new(seed);
        let x = random(&mut generator, &[HEADS, N, 4]);
        let size = MaskSize { n_q: N, n_k: N, n_heads: HEADS, batch: 1 };
        let resolved = mask.materialize(size, MAX_BYTES).unwrap();
        let shape = resolved.shape.to_vec();
        let mut matrix = Mask::Keep { shape: shape.clone(), data: resolved.allowed, axes: None };
        if let Some(bias) = resolved.bias {
            let data = bias.iter().flat_map(|number| number.to_le_bytes()).collect();
            let added = Mask::Additive { shape, data, axes: None };
            matrix = Mask::And { left: Box::new(matrix), right: Box::new(added) };
        }
        let (rule, matrix) = (attend(&x, &x, &x, &mask, &exact()), attend(&x, &x, &x, &matrix, &exact()));
        prop_assert_eq!(rule.output(), matrix.output());
        prop_assert_eq!(weights(&rule), weights(&matrix));
    }

    #[test]
    fn behind_a_past_a_rule_sees_the_whole(mask in any_mask(false), past in 1..N, causal: bool, seed in 0i64..100) {
        let mut generator = Generator::new(seed);
        let x = random(&mut generator, &[HEADS, N, 4]);
        let options = ScaledDotProductOptions { is_causal: causal, ..exact() };
        let whole = attend(&x, &x, &x, &mask, &options);
        let (earlier, now) = (rows(&x, 0, past), rows(&x, past, N));
        let inputs = QueryKeyValue { query: &now, key: &now, value: &now, past: Some([&earlier, &earlier]) };
        let step = scaled_dot_product_attention(inputs, Some(&mask), &options, MAX_BYTES).unwrap();
        let (found, expected) = (weights(&step), rows(&weights(&whole), past, N));
        for (found, expected) in found.data.iter().zip(&expected.data) {
            prop_assert!((found - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn padding_behind_the_real_keys_changes_nothing(mask in any_mask(false), length in 1..N, seed in 0i64..100) {
        let mut generator = Generator::new(seed);
        let x = random(&mut generator, &[1, HEADS, N, 4]);
        let query = random(&mut generator, &[1, HEADS, length, 4]);
        let lengths = ScaledDotProductOptions { kv_lengths: Some(vec![length]), ..exact() };
        let padded = attend(&query, &x, &x, &mask, &lengths);
        let mut other = x.clone();
        for (at, number) in other.data.iter_mut().enumerate() {
            if at / 4 % N >= length {
                *number = f32::MAX / 1e9;
            }
        }
        prop_assert_eq!(attend(&query, &other, &x, &mask, &lengths).weights(0).unwrap(), padded.weights(0).unwrap());
    }

    /// A hidden key may hold anything: its score is replaced, so it cannot reach the weights, whatever the fill.
    #[test]
    fn a_hidden_key_reaches_no_weight(hidden in 0..N, fill in 0usize..2, poison in 0usize..3, seed in 0i64..100) {
        let mut generator = Generator::new(seed);
        let (query, value) = (random(&mut generator, &[HEADS, N, 4]), random(&mut generator, &[HEADS, N, 4]));
        let key = random(&mut generator, &[HEADS, N, 4]);
        let mut poisoned = key.clone();
        for head in 0..HEADS {
            poisoned.data[(head * N + hidden) * 4..][..4].fill([f32::NAN, f32::INFINITY, f32::MAX][poison]);
        }
        let cells = (0..N).map(|at| u8::from(at != hidden)).collect();
        let mask = Mask::Keep { shape: vec![N], data: cells, axes: None };
        let options = ScaledDotProductOptions { mask_fill: [-1e9, f32::NEG_INFINITY][fill], ..exact() };
        let (clean, dirty) = (attend(&query, &key, &value, &mask, &options), attend(&query, &poisoned, &value, &mask, &options));
        prop_assert_eq!(weights(&dirty), weights(&clean));
        prop_assert_eq!(dirty.output(), clean.output());
    }
}

/// The second row of every attention that there is, with all its keys hidden.
fn empty_rows(mask_fill: f32, empty_row: EmptyRow) -> Vec<Vec<f32>> {
    let generator = &mut Generator::new(3);
    let x = random(generator, &[3, 4]);
    let hidden = Mask::Masked { shape: vec![3, 3], data: vec![0, 0, 0, 1, 1, 1, 0, 0, 0], axes: None };
    let options = ForwardOptions { mask_fill, empty_row, ..ForwardOptions::default() };
    let row = |weights: Tensor| weights.data[3..6].to_vec();

    let sdpa = ScaledDotProductOptions { mask_fill, empty_row, ..ScaledDotProductOptions::default() };
    let sdpa = attend(&x, &x, &x, &hidden, &sdpa);
    let mha = MultiHeadAttention::new(&MultiHeadAttentionOptions::new(4, 1), generator, MAX_BYTES).unwrap();
    let mha = mha.forward(&x, None, None, Some(&hidden), &options, MAX_BYTES).unwrap();
    let sizes = TransformerOptions { n_layers: Some(1), ..TransformerOptions::new(4, 1) };
    let encoder = Transformer::encoder(sizes.clone(), generator, MAX_BYTES).unwrap();
    let encoder = encoder.forward(&x, None, Some(&hidden), &options, MAX_BYTES).unwrap();
    let decoder = Transformer::decoder(sizes, generator, MAX_BYTES).unwrap();
    let memory = Some(Memory { rows: &x, mask: Some(&hidden) });
    let decoder = decoder.forward(&x, memory, None, &options, MAX_BYTES).unwrap();
    vec![
        row(weights(&sdpa)),
        row(weights(&mha)),
        row(weights(&encoder)),
        row(decoder.cross_weights(0).unwrap().unwrap()),
    ]
}

#[test]
fn an_empty_row_is_what_the_options_say_on_every_path() {
    for row in empty_rows(-1e9, EmptyRow::Nan) {
        assert_eq!(row, [1.0 / 3.0; 3]);
    }
    for row in empty_rows(f32::NEG_INFINITY, EmptyRow::Nan) {
        assert!(row.iter().all(|weight| weight.is_nan()), "{row:?}");
    }
    for row in empty_rows(f32::NEG_INFINITY, EmptyRow::Zero) {
        assert_eq!(row, [0.0; 3]);
    }
}

/// 0 · NaN is NaN, here as in PyTorch; the other rows are clean.
#[test]
fn a_hidden_nan_value_reaches_the_output_as_in_pytorch() {
    let mut value = Tensor::new(vec![1.0; 4], vec![2, 2]).unwrap();
    value.data[2] = f32::NAN;
    let x = Tensor::new(vec![0.5; 4], vec![2, 2]).unwrap();
    let trace = attend(&x, &x, &value, &Mask::Causal, &exact());
    assert_eq!(weights(&trace).data, [1.0, 0.0, 0.5, 0.5]);
    let output = trace.output().data;
    assert!(output[0].is_nan() && output[2].is_nan());
    assert_eq!([output[1], output[3]], [1.0, 1.0]);
}

#[test]
fn a_matrix_of_one_axis_is_keys_and_a_batch_is_said() {
    let size = MaskSize { n_q: 2, n_k: 3, n_heads: 2, batch: 2 };
    let keys = Mask::Keep { shape: vec![3], data: vec![1, 0, 1], axes: None };
    assert_eq!(keys.materialize(size, MAX_BYTES).unwrap().allowed, [1, 0, 1, 1, 0, 1]);
    let batch = Mask::Keep { shape: vec![2, 1, 3], data: vec![1, 0, 1, 1, 1, 0], axes: Some(MaskAxes::Batch) };
    assert_eq!(batch.materialize(size, MAX_BYTES).unwrap().shape, [2, 1, 2, 3]);
}

#[test]
fn a_mask_that_takes_too_much_is_refused_before_it_is_made() {
    let size = MaskSize { n_q: 1 << 20, n_k: 1 << 20, n_heads: 8, batch: 1 };
    assert_eq!(Mask::Causal.materialize(size, 1 << 30).unwrap_err().code().as_str(), "too_large");
    let size = MaskSize { n_q: 100, n_k: 100, n_heads: 2, batch: 1 };
    assert_eq!(Mask::Causal.materialize(size, 10_000).unwrap().allowed.len(), 10_000);
    assert_eq!(Mask::Alibi { heads: 2 }.materialize(size, 10_000).unwrap_err().code().as_str(), "too_large");
}

#[test]
fn key_lengths_and_a_past_exclude_each_other_and_must_fit() {
    let x = Tensor::new(vec![0.0; 12], vec![1, 1, 3, 4]).unwrap();
    let refused = |lengths: Vec<usize>, past| {
        let options = ScaledDotProductOptions { kv_lengths: Some(lengths), ..exact() };
        let inputs = QueryKeyValue { query: &x, key: &x, value: &x, past };
        scaled_dot_product_attention(inputs, None, &options, MAX_BYTES).unwrap_err().to_string()
    };
    assert!(refused(vec![3], Some([&x, &x])).contains("both kvLengths and a past"));
    assert!(refused(vec![4], None).contains("each at most 3"));
    assert!(refused(vec![3, 3], None).contains("one length for each of 1 batch entries"));
}

#[test]
fn a_table_that_is_none_is_refused_wherever_it_is_read() {
    for (buckets, heads, numbers, max_distance) in [
        (1, 1, 1, 16),
        (1, 1, 2, 16),
        (0, 1, 0, 16),
        (8, 0, 0, 16),
        (8, 2, 15, 16),
        (8, 2, 16, 2),
        (usize::MAX, 2, 2, 16),
    ] {
        let table = vec![0; 4 * numbers];
        let mask = Mask::Relative { buckets, heads, table, bidirectional: true, max_distance };
        let size = MaskSize { n_q: 2, n_k: 2, n_heads: heads.max(1), batch: 1 };
        let code = attnscope::TorchConvention::Additive;
        assert!(mask.materialize(size, MAX_BYTES).is_err(), "{buckets} {heads} {numbers}");
        assert_eq!(mask.to_torch(code).unwrap_err().code().as_str(), "invalid_option", "{buckets} {heads} {numbers}");
    }
}
