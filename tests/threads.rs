//! The numbers of a pass are the same, bit for bit, with any number of threads.

use std::thread;

use attnscope::kernels::threads;
use attnscope::{
    ForwardOptions, Mask, MultiHeadAttention, MultiHeadAttentionOptions, Positions, Tensor, Trace, Transformer,
    TransformerOptions, ops, torch::Generator,
};
use proptest::prelude::*;

const MAX_BYTES: usize = 1 << 30;
const HELPERS: usize = 7;

/// With helpers for as long as it takes; the limit is everybody's, so that there is one test.
fn with_helpers(run: impl FnOnce()) {
    let helpers: Vec<_> = (0..HELPERS).map(|number| thread::spawn(move || threads::help(number))).collect();
    run();
    threads::limit(1);
    threads::dismiss(HELPERS);
    helpers.into_iter().for_each(|helper| helper.join().unwrap());
}

/// What `run` gives with one thread, when it gives the same with several.
fn same<T: PartialEq + std::fmt::Debug>(run: impl Fn() -> T) {
    threads::limit(1);
    let alone = run();
    for count in [2, 3, 8] {
        threads::limit(count);
        assert!(run() == alone, "{count} threads");
    }
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.data.iter().map(|x| x.to_bits()).collect()
}

/// Every number of a pass.
fn numbers(trace: &Trace) -> Vec<Vec<u32>> {
    let stages = trace.stages();
    let kept = stages.iter().map(|info| bits(&trace.stage(info.name, info.layer).unwrap()));
    let weights = trace.weights(0).unwrap().map(|weights| bits(&weights));
    kept.chain(weights).chain([bits(&trace.output())]).collect()
}

fn mask() -> impl Strategy<Value = Option<Mask>> {
    prop_oneof![
        Just(None),
        Just(Some(Mask::Causal)),
        (0..200usize).prop_map(|length| Some(Mask::Padding { lengths: vec![length] })),
        (0..40usize, 0..40usize).prop_map(|(left, right)| Some(Mask::SlidingWindow { left, right })),
    ]
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    with_helpers(|| {
        let cases = ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() };
        let sizes = (1usize..3, 200usize..400, 1usize..5, 1usize..3, 8usize..40);
        let how = (mask(), any::<bool>(), any::<bool>(), any::<bool>(), 0i64..1000);
        let mut runner = proptest::test_runner::TestRunner::new(cases);
        let result = runner.run(&(sizes, how), |(sizes, how)| {
            let (batch, n, kv_heads, sharing, width) = sizes;
            let (mask, trace, need_weights, with_head_mask, seed) = how;
            let mut generator = Generator::new(seed);
            let (heads, d_model) = (kv_heads * sharing, kv_heads * sharing * width);
            let x = Tensor::new(generator.randn(batch * n * d_model), vec![batch, n, d_model]).unwrap();
            let options = MultiHeadAttentionOptions {
                n_kv_heads: Some(kv_heads),
                ..MultiHeadAttentionOptions::new(d_model, heads)
            };
            let mha = MultiHeadAttention::new(&options, &mut generator, MAX_BYTES).unwrap();
            let head_mask = with_head_mask.then(|| (0..heads).map(|head| head as f32 / 3.0).collect());
            let forward = ForwardOptions { trace, need_weights, head_mask, ..ForwardOptions::default() };
            same(|| numbers(&mha.forward(&x, None, None, mask.as_ref(), &forward, MAX_BYTES).unwrap()));
            Ok(())
        });
        result.unwrap();

        // Blocks with every kind of step, and products of few rows and of few columns.
        let x = Tensor::new(Generator::new(1).randn(300 * 96), vec![300, 96]).unwrap();
        let stack = Transformer::encoder(
            TransformerOptions {
                n_layers: Some(2),
                positions: Positions::Rope,
                qk_norm: true,
                ..TransformerOptions::new(96, 4)
            },
            &mut Generator::new(0),
            MAX_BYTES,
        )
        .unwrap();
        for trace in [true, false] {
            let forward = ForwardOptions { trace, ..ForwardOptions::default() };
            same(|| numbers(&stack.forward(&x, None, Some(&Mask::Causal), &forward, MAX_BYTES).unwrap()));
        }
        for [rows, depth, columns] in
            [[1, 3000, 3000], [13, 700, 2001], [3001, 3000, 1], [97, 513, 259], [1000, 257, 100]]
        {
            let mut random = Generator::new(2);
            let x = Tensor::new(random.randn(rows * depth), vec![rows, depth]).unwrap();
            let weight = Tensor::new(random.randn(columns * depth), vec![columns, depth]).unwrap();
            let bias = Tensor::new(random.randn(columns), vec![columns]).unwrap();
            same(|| bits(&ops::linear(&x, &weight, Some(&bias), MAX_BYTES).unwrap()));
        }
    });
}
