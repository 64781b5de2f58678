//! Mask after mask on the same pass gives to the bit what a pass under that mask gives, whatever rows the mask before had in common.

use attnscope::{
    EmptyRow, ForwardOptions, Mask, Memory, MultiHeadAttention, MultiHeadAttentionOptions, Plan, RemaskOptions, Tensor,
    Trace, Transformer, TransformerOptions, torch::Generator,
};
use proptest::prelude::*;

const MAX_BYTES: usize = 1 << 30;
const N: usize = 9;
const HEADS: usize = 4;

fn cells() -> impl Strategy<Value = Vec<u8>> {
    // Mostly open, so that neighbouring masks have rows in common.
    prop::collection::vec(prop::sample::select(vec![1u8, 1, 1, 1, 1, 1, 1, 0]), N * N)
}

fn keep(data: Vec<u8>) -> Mask {
    Mask::Keep { shape: vec![N, N], data, axes: None }
}

fn any_mask() -> impl Strategy<Value = Option<Mask>> {
    prop_oneof![
        Just(None),
        Just(Some(Mask::Causal)),
        (0..=N).prop_map(|length| Some(Mask::Padding { lengths: vec![length, N] })),
        // One row of cells.
        (0..N, 0..N).prop_map(|(row, key)| Some(keep((0..N * N).map(|at| u8::from(at != row * N + key)).collect()))),
        cells().prop_map(|data| Some(keep(data))),
        prop::collection::vec(cells(), HEADS)
            .prop_map(|all| Some(Mask::PerHead { masks: all.into_iter().map(keep).collect() })),
        prop::collection::vec(prop::sample::select(vec![0.0f32, 0.0, -0.0, 1.5, f32::NEG_INFINITY]), N * N).prop_map(
            |bias| Some(Mask::Additive {
                shape: vec![N, N],
                data: bias.into_iter().flat_map(f32::to_le_bytes).collect(),
                axes: None,
            })
        ),
        Just(Some(Mask::Alibi { heads: HEADS })),
    ]
}

fn any_step() -> impl Strategy<Value = (Option<Mask>, RemaskOptions)> {
    (any_mask(), prop::sample::select(vec![-1e9, f32::NEG_INFINITY]), any::<bool>(), any::<bool>()).prop_map(
        |(mask, mask_fill, zero, is_causal)| {
            let empty_row = if zero { EmptyRow::Zero } else { EmptyRow::Nan };
            (mask, RemaskOptions { mask_fill, empty_row, is_causal })
        },
    )
}

fn random(shape: &[usize]) -> Tensor {
    Tensor::new(Generator::new(1).randn(shape.iter().product()), shape.to_vec()).unwrap()
}

/// The bits, with every NaN the same.
fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.data.iter().map(|x| if x.is_nan() { u32::MAX } else { x.to_bits() }).collect()
}

fn pass(plan: Plan) -> Trace {
    plan.run(&mut |_| {}).unwrap()
}

/// Goes from mask to mask, and compares every stage with that of a pass that begins anew.
fn follow(steps: &[(Option<Mask>, RemaskOptions)], plan: impl Fn(Option<&Mask>, &ForwardOptions) -> Plan) {
    let options = ForwardOptions { trace: true, ..ForwardOptions::default() };
    let mut trace = pass(plan(None, &options));
    for (mask, how) in steps {
        trace = trace.remask(mask.as_ref(), how).unwrap();
        let options = ForwardOptions {
            mask_fill: how.mask_fill,
            empty_row: how.empty_row,
            is_causal: how.is_causal,
            ..options.clone()
        };
        let anew = pass(plan(mask.as_ref(), &options));
        for info in anew.stages() {
            let [one, other] = [&trace, &anew].map(|trace| bits(&trace.stage(info.name, info.layer).unwrap()));
            assert_eq!(one, other, "{info:?} under {mask:?}, {how:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn attention(steps in prop::collection::vec(any_step(), 1..6), kv_heads in prop::sample::select(vec![1usize, 2, 4])) {
        let sizes = MultiHeadAttentionOptions { n_kv_heads: Some(kv_heads), ..MultiHeadAttentionOptions::new(12, HEADS) };
        let module = MultiHeadAttention::new(&sizes, &mut Generator::new(0), MAX_BYTES).unwrap();
        let x = random(&[2, N, 12]);
        follow(&steps, |mask, options| module.plan(&x, None, None, mask, options, MAX_BYTES).unwrap());
    }

    #[test]
    fn stacks(steps in prop::collection::vec(any_step(), 1..6), is_decoder: bool) {
        let sizes = TransformerOptions { n_layers: Some(2), ..TransformerOptions::new(12, HEADS) };
        let new = if is_decoder { Transformer::decoder } else { Transformer::encoder };
        let module = new(sizes, &mut Generator::new(0), MAX_BYTES).unwrap();
        let (x, memory) = (random(&[2, N, 12]), random(&[2, 5, 12]));
        let memory = is_decoder.then_some(Memory { rows: &memory, mask: None });
        follow(&steps, |mask, options| module.plan(&x, memory, mask, options, MAX_BYTES).unwrap());
    }
}

#[test]
fn a_cell_costs_a_row() {
    let n = 64;
    let sizes = TransformerOptions { n_layers: Some(2), ..TransformerOptions::new(32, HEADS) };
    let x = random(&[n, 32]);
    let options = ForwardOptions { trace: true, ..ForwardOptions::default() };
    let cell =
        Mask::Keep { shape: vec![n, n], data: (0..n * n).map(|at| u8::from(at != 5 * n + 3)).collect(), axes: None };
    let work = |trace: &Trace, mask| trace.plan_remask(mask, &RemaskOptions::default()).unwrap().work();

    let attention =
        MultiHeadAttention::new(&MultiHeadAttentionOptions::new(32, HEADS), &mut Generator::new(0), MAX_BYTES).unwrap();
    let plain = pass(attention.plan(&x, None, None, None, &options, MAX_BYTES).unwrap());
    let all = work(&plain, Some(&Mask::SlidingWindow { left: 3, right: 3 }));
    assert_eq!(work(&plain, None), 0.0);
    assert!((work(&plain, Some(&cell)) * n as f64 / all - 1.0).abs() < 1e-9);
    // The last query sees all under either.
    assert!((work(&plain, Some(&Mask::Causal)) * n as f64 / all - (n - 1) as f64).abs() < 1e-6);

    // In a stack the first layer's row, and all that the second makes of it.
    let stack = Transformer::encoder(sizes, &mut Generator::new(0), MAX_BYTES).unwrap();
    let plain = pass(stack.plan(&x, None, None, &options, MAX_BYTES).unwrap());
    let share = work(&plain, Some(&cell)) / work(&plain, Some(&Mask::SlidingWindow { left: 3, right: 3 }));
    assert!(share > 0.3 && share < 0.6, "{share}");
}
