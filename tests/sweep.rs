//! Attention in one sweep, as a pass that keeps no stages does it, gives to the bit what the passes one by one give.

use attnscope::{
    EmptyRow, ForwardOptions, Mask, MultiHeadAttention, MultiHeadAttentionOptions, QueryKeyValue,
    ScaledDotProductOptions, Tensor, Trace, scaled_dot_product_attention, torch::Generator,
};
use proptest::prelude::*;

const MAX_BYTES: usize = 1 << 30;

fn any_mask(n_q: usize, n_k: usize, heads: usize) -> BoxedStrategy<Option<Mask>> {
    prop_oneof![
        Just(None),
        Just(Some(Mask::Causal)),
        (0..=n_k).prop_map(|length| Some(Mask::Padding { lengths: vec![length] })),
        (0..40usize, 0..40usize).prop_map(|(left, right)| Some(Mask::SlidingWindow { left, right })),
        Just(Some(Mask::And { left: Box::new(Mask::Causal), right: Box::new(Mask::Alibi { heads }) })),
        prop::collection::vec(0u8..2, n_q * n_k).prop_map(move |data| Some(Mask::Keep {
            shape: vec![n_q, n_k],
            data,
            axes: None
        })),
        // Rows without any key, between others.
        (1..6usize).prop_map(move |step| Some(Mask::Keep {
            shape: vec![n_q, n_k],
            data: (0..n_q * n_k).map(|at| u8::from((at / n_k).is_multiple_of(step) && at % n_k > 9)).collect(),
            axes: None
        })),
    ]
    .boxed()
}

/// The bits, with every NaN the same.
fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.data.iter().map(|x| if x.is_nan() { u32::MAX } else { (x + 0.0).to_bits() }).collect()
}

fn same(sweep: &Trace, passes: &Trace) {
    assert_eq!(bits(&sweep.output()), bits(&passes.output()));
    let weights = |trace: &Trace| bits(&trace.weights(0).unwrap().unwrap());
    assert_eq!(weights(sweep), weights(passes));
}

fn shape() -> impl Strategy<Value = (usize, usize, usize, usize, Option<Mask>)> {
    (1usize..130, 1usize..300, 1usize..3, 1usize..10).prop_flat_map(|(n_q, n_k, groups, d)| {
        any_mask(n_q, n_k, 2 * groups).prop_map(move |mask| (n_q, n_k, groups, d, mask))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_attention((n_q, n_k, groups, d, mask) in shape(), fill in 0usize..3, scale in 0usize..6, zero: bool, cap: bool, poison in 0usize..10, seed in 0i64..1000) {
        let mut generator = Generator::new(seed);
        let mut random = |shape: &[usize]| Tensor::new(generator.randn(shape.iter().product()), shape.to_vec()).unwrap();
        let query = random(&[1, 2 * groups, n_q, d]);
        let (mut key, mut value) = (random(&[1, groups, n_k, d]), random(&[1, groups, n_k, d + 1]));
        // What is not finite reaches the same places.
        let number = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1e30, 1e30, 0.0, 1.0, 1.0, 1.0, 1.0][poison];
        if poison < 5 {
            key.data[(seed as usize * 7) % (n_k * d)] = number;
        }
        if poison % 2 == 0 {
            value.data[(seed as usize * 11) % (n_k * (d + 1))] = number;
        }
        let options = ScaledDotProductOptions {
            mask_fill: [-1e9, f32::NEG_INFINITY, -3.0][fill],
            scale: [Some(0.0), Some(-0.5), Some(-0.0), Some(3.0), None, None][scale],
            empty_row: if zero { EmptyRow::Zero } else { EmptyRow::Nan },
            softcap: if cap { 3.0 } else { 0.0 },
            ..ScaledDotProductOptions::default()
        };
        let pass = |trace, need_weights| {
            let options = ScaledDotProductOptions { trace, need_weights, ..options.clone() };
            let inputs = QueryKeyValue { query: &query, key: &key, value: &value, past: None };
            scaled_dot_product_attention(inputs, mask.as_ref(), &options, MAX_BYTES).unwrap()
        };
        let passes = pass(true, true);
        same(&pass(false, true), &passes);
        prop_assert_eq!(bits(&pass(false, false).output()), bits(&passes.output()));
    }
}

#[test]
fn without_weights_no_matrix_is_kept() {
    let x = Tensor::new(Generator::new(1).randn(4096 * 8), vec![4096, 8]).unwrap();
    let mha =
        MultiHeadAttention::new(&MultiHeadAttentionOptions::new(8, 2), &mut Generator::new(2), MAX_BYTES).unwrap();
    let options = ForwardOptions { need_weights: false, ..ForwardOptions::default() };
    // Two matrices of 4096 x 4096 would take 134 MB.
    let trace = mha.forward(&x, None, None, None, &options, 8 << 20).unwrap();
    assert_eq!(trace.output().shape, [4096, 8]);
    assert!(trace.weights(0).unwrap().is_none());
    let kept = ForwardOptions::default();
    assert_eq!(mha.forward(&x, None, None, None, &kept, 8 << 20).unwrap_err().code().as_str(), "too_large");
}
