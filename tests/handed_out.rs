//! Weights that leave a pass block by block are, to the bit, those that a pass holds, each once, with any number of threads.

use std::collections::HashMap;
use std::thread;

use attnscope::kernels::threads;
use attnscope::{
    ForwardOptions, Mask, Memory, MultiHeadAttention, MultiHeadAttentionOptions, Plan, Stage, Tensor, Transformer,
    TransformerOptions, torch::Generator,
};
use proptest::prelude::*;

const MAX_BYTES: usize = 1 << 30;
const HELPERS: usize = 3;

fn random(shape: &[usize], seed: i64) -> Tensor {
    Tensor::new(Generator::new(seed).randn(shape.iter().product()), shape.to_vec()).unwrap()
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

/// Runs the same plan both ways.
fn same(plan: impl Fn() -> Plan) {
    threads::limit(1);
    let held = plan().run(&mut |_| {}).unwrap();
    for count in [1, 2, 4] {
        threads::limit(count);
        let infos = plan().handed_out();
        assert!(!infos.is_empty());
        // What no block reaches stays a number that no weight is.
        let mut weights: HashMap<_, _> = infos
            .iter()
            .map(|info| ((info.name.name(), info.layer), vec![-1.0; info.shape.iter().product::<usize>()]))
            .collect();
        let trace = plan().run_handing_out(&mut |_| {}, &mut |block| {
            let place = weights.get_mut(&(block.stage.name(), block.layer)).expect("what was said to come");
            let place = &mut place[block.at..][..block.numbers.len()];
            assert!(place.iter().all(|&weight| weight == -1.0), "a weight comes once");
            place.copy_from_slice(block.numbers);
        });
        let trace = trace.unwrap();
        assert_eq!(bits(&trace.output().data), bits(&held.output().data));
        for info in infos {
            let expected = match info.name {
                Stage::Weights => held.weights(info.layer),
                _ => held.cross_weights(info.layer),
            };
            let expected = expected.unwrap().unwrap();
            assert_eq!(info.shape, expected.shape);
            assert_eq!(bits(&weights[&(info.name.name(), info.layer)]), bits(&expected.data));
            assert_eq!(trace.weights(info.layer).unwrap(), None);
        }
    }
}

/// One test, for the limit of threads is everybody's.
#[test]
fn weights_that_are_handed_out_are_those_that_are_held() {
    let helpers: Vec<_> = (0..HELPERS).map(|number| thread::spawn(move || threads::help(number))).collect();
    let cases = ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(cases);
    let shapes = (1usize..3, 1usize..300, 1usize..5, 1usize..3, 1usize..24, any::<bool>(), 0i64..1000);
    let result = runner.run(&shapes, |(batch, n, kv_heads, sharing, width, is_causal, seed)| {
        let (heads, d_model) = (kv_heads * sharing, kv_heads * sharing * width);
        let sizes =
            MultiHeadAttentionOptions { n_kv_heads: Some(kv_heads), ..MultiHeadAttentionOptions::new(d_model, heads) };
        let mha = MultiHeadAttention::new(&sizes, &mut Generator::new(seed), MAX_BYTES).unwrap();
        let x = random(&[batch, n, d_model], seed);
        let mask = is_causal.then_some(Mask::Causal);
        same(|| mha.plan(&x, None, None, mask.as_ref(), &ForwardOptions::default(), MAX_BYTES).unwrap());
        Ok(())
    });
    result.unwrap();

    // Layer by layer, and of two attentions.
    let sizes = TransformerOptions { n_layers: Some(2), ..TransformerOptions::new(32, 4) };
    let decoder = Transformer::decoder(sizes, &mut Generator::new(0), MAX_BYTES).unwrap();
    let (x, rows) = (random(&[2, 130, 32], 1), random(&[2, 40, 32], 2));
    let memory = || Some(Memory { rows: &rows, mask: None });
    same(|| decoder.plan(&x, memory(), Some(&Mask::Causal), &ForwardOptions::default(), MAX_BYTES).unwrap());
    threads::limit(1);
    threads::dismiss(HELPERS);
    helpers.into_iter().for_each(|helper| helper.join().unwrap());
}

/// A mean is made of all heads, stages are kept whole, and in training weights are dropped.
#[test]
fn what_is_held_as_a_whole_is_not_handed_out() {
    let sizes = TransformerOptions { attention_dropout: 0.5, ..TransformerOptions::new(8, 2) };
    let block = Transformer::encoder(sizes, &mut Generator::new(0), MAX_BYTES).unwrap();
    let x = random(&[6, 8], 1);
    let plain = ForwardOptions::default();
    for options in [
        ForwardOptions { average_weights: true, ..plain.clone() },
        ForwardOptions { trace: true, ..plain.clone() },
        ForwardOptions { training: true, ..plain.clone() },
        ForwardOptions { need_weights: false, ..plain },
    ] {
        let plan = || block.plan_training(&x, None, None, &options, &mut Generator::new(3), MAX_BYTES).unwrap();
        assert!(plan().handed_out().is_empty(), "{options:?}");
        let trace = plan().run_handing_out(&mut |_| {}, &mut |_| panic!("nothing is handed out")).unwrap();
        assert_eq!(trace.weights(0), plan().run(&mut |_| {}).unwrap().weights(0), "{options:?}");
    }
}
