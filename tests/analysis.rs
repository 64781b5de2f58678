//! What is asked of attention weights, against the plain formulas in float64, and known heads against their labels.

use attnscope::analysis::{
    self, HeadLabel, HeadPattern, ablate, effective_keys, entropy, mask_effect, mean_distance, moved, rollout,
};
use attnscope::torch::Generator;
use attnscope::{
    AttnError, EmptyRow, ForwardOptions, Mask, MultiHeadAttention, MultiHeadAttentionOptions, ResolvedMask, Tensor,
};
use proptest::prelude::*;

fn tensor(shape: &[usize], cell: impl Fn(&[usize]) -> f64) -> Tensor {
    let size = shape.iter().product();
    let data = (0..size).map(|flat| {
        let mut rest = flat;
        let mut index: Vec<usize> = shape.iter().rev().map(|axis| (rest % axis, rest /= axis).0).collect();
        index.reverse();
        cell(&index) as f32
    });
    Tensor::new(data.collect(), shape.to_vec()).unwrap()
}

/// Rows drawn from all distributions over the keys alike, causal where asked for.
fn drawn(seed: i64, shape: &[usize], is_causal: bool) -> Tensor {
    let (n_q, n_k) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    let size = shape.iter().product();
    let mut data: Vec<f32> = Generator::new(seed).rand(size).into_iter().map(|u| -(1.0 - u).ln() + 1e-6).collect();
    for (at, row) in data.chunks_exact_mut(n_k).enumerate() {
        if is_causal {
            row.iter_mut().skip(at % n_q + 1).for_each(|weight| *weight = 0.0);
        }
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|weight| *weight /= sum);
    }
    Tensor::new(data, shape.to_vec()).unwrap()
}

fn label_heads(
    weights: &Tensor,
    tokens: Option<&[i32]>,
    mask: Option<&Mask>,
    offset: isize,
) -> attnscope::Result<Vec<HeadLabel>> {
    analysis::label_heads(weights, tokens, mask, offset, 1 << 30)
}

fn shapes() -> impl Strategy<Value = Vec<usize>> {
    (prop::collection::vec(1usize..4, 0..3), 1usize..12, 1usize..40)
        .prop_map(|(leading, n_q, n_k)| [leading, vec![n_q, n_k]].concat())
}

fn close(found: f32, expected: f64) -> bool {
    (f64::from(found) - expected).abs() <= 1e-6 * (1.0 + expected.abs())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_are_the_formulas(shape in shapes(), seed in 0i64..1000, causal: bool, offset in -3isize..20) {
        let weights = drawn(seed, &shape, causal);
        let [.., n_q, n_k] = shape[..] else { unreachable!() };
        let found = [entropy(&weights), effective_keys(&weights), mean_distance(&weights, offset)].map(Result::unwrap);
        for tensor in &found {
            prop_assert_eq!(&tensor.shape[..], &shape[..shape.len() - 1]);
        }
        for (at, row) in weights.data.chunks_exact(n_k).enumerate() {
            let (mut nats, mut distance) = (0.0, 0.0);
            for (j, &weight) in row.iter().enumerate() {
                let weight = f64::from(weight);
                if weight > 0.0 {
                    nats -= weight * weight.ln();
                }
                distance += weight * ((at % n_q) as f64 + offset as f64 - j as f64).abs();
            }
            prop_assert!(close(found[0].data[at], nats));
            prop_assert!(close(found[1].data[at], nats.exp()));
            prop_assert!(close(found[2].data[at], distance));
        }
    }

    #[test]
    fn what_a_mask_frees_the_others_gain(shape in shapes(), seed in 0i64..1000) {
        let (before, after) = (drawn(seed, &shape, false), drawn(seed + 1000, &shape, true));
        let [leading @ .., n_q, n_k] = &shape[..] else { unreachable!() };
        let effect = mask_effect(&before, &after).unwrap();
        prop_assert_eq!(&effect.change.shape, &shape);
        prop_assert_eq!(&effect.freed.shape[..], &shape[..shape.len() - 1]);
        prop_assert_eq!(&effect.freed_by_head.shape[..], if leading.is_empty() { &[1][..] } else { leading });
        let changes = effect.change.data.chunks_exact(*n_k);
        for ((&freed, row), at) in effect.freed.data.iter().zip(changes).zip(0..) {
            let half: f64 = row.iter().map(|&change| f64::from(change).abs()).sum::<f64>() / 2.0;
            prop_assert!(close(freed, half), "row {}: {} and {}", at, freed, half);
        }
        for (&sum, rows) in effect.freed_by_head.data.iter().zip(effect.freed.data.chunks_exact(*n_q)) {
            prop_assert!(close(sum, rows.iter().map(|&freed| f64::from(freed)).sum()));
        }
        let flat = |index: &[usize]| shape.iter().zip(index).fold(0, |at, (axis, place)| at * axis + place);
        let mut expected: Vec<f32> = effect.change.data.iter().copied().filter(|&change| change > 0.0).collect();
        expected.sort_by(|a, b| b.total_cmp(a));
        expected.truncate(10);
        prop_assert_eq!(effect.gains.iter().map(|gain| gain.change).collect::<Vec<_>>(), expected);
        for gain in &effect.gains {
            let at = flat(&gain.index);
            prop_assert_eq!([gain.before, gain.after], [before.data[at], after.data[at]]);
        }
    }

    #[test]
    fn moved_is_distance_and_angle(shape in shapes(), seed in 0i64..1000) {
        let mut generator = Generator::new(seed);
        let size = shape.iter().product();
        let mut random = || Tensor::new(generator.randn(size), shape.clone()).unwrap();
        let (before, after) = (random(), random());
        let found = moved(&before, &after).unwrap();
        let width = shape[shape.len() - 1];
        for (at, (a, b)) in before.data.chunks_exact(width).zip(after.data.chunks_exact(width)).enumerate() {
            let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
                a.iter().zip(b).map(|(&a, &b)| of(f64::from(a), f64::from(b))).sum()
            };
            prop_assert!(close(found.distance.data[at], sum(&|a, b| (a - b) * (a - b)).sqrt()));
            let lengths = sum(&|a, _| a * a).sqrt() * sum(&|_, b| b * b).sqrt();
            prop_assert!(close(found.cosine.data[at], sum(&|a, b| a * b) / lengths));
        }
    }

    #[test]
    fn rollout_is_the_product_of_the_layers(
        batch in prop::option::of(1usize..3), heads in 1usize..4, n in 1usize..14, layers in 1usize..5,
        seed in 0i64..1000, causal: bool, residual: bool,
    ) {
        let shape: Vec<usize> = batch.into_iter().chain([heads, n, n]).collect();
        let layers: Vec<Tensor> = (0..layers as i64).map(|layer| drawn(seed * 10 + layer, &shape, causal)).collect();
        let found = rollout(&layers, residual).unwrap();
        prop_assert_eq!(&found.shape, &batch.into_iter().chain([n, n]).collect::<Vec<_>>());
        for entry in 0..batch.unwrap_or(1) {
            let mut product: Vec<f64> = (0..n * n).map(|cell| f64::from(cell / n == cell % n)).collect();
            for layer in &layers {
                let mut mixing = vec![0.0; n * n];
                for head in 0..heads {
                    for (cell, sum) in mixing.iter_mut().enumerate() {
                        *sum += f64::from(layer.data[(entry * heads + head) * n * n + cell]) / heads as f64;
                    }
                }
                if residual {
                    for (cell, weight) in mixing.iter_mut().enumerate() {
                        *weight = 0.5 * *weight + if cell / n == cell % n { 0.5 } else { 0.0 };
                    }
                }
                let old = product.clone();
                for (cell, sum) in product.iter_mut().enumerate() {
                    *sum = (0..n).map(|k| mixing[cell / n * n + k] * old[k * n + cell % n]).sum();
                }
            }
            for (row, expected) in product.chunks_exact(n).enumerate() {
                let start = (entry * n + row) * n;
                for (&found, &expected) in found.data[start..start + n].iter().zip(expected) {
                    prop_assert!(close(found, expected));
                }
                prop_assert!(close(found.data[start..start + n].iter().sum(), 1.0));
            }
        }
    }

    #[test]
    fn scores_are_the_formulas(
        batch in 1usize..3, n in 2usize..12, seed in 0i64..500, causal: bool, ids in prop::collection::vec(0i32..3, 24),
    ) {
        let weights = drawn(seed, &[batch, 2, n, n], causal);
        let mask = causal.then_some(Mask::Causal);
        let tokens = &ids[..batch * n];
        let labels = label_heads(&weights, Some(tokens), mask.as_ref(), 0).unwrap();
        for (head, label) in labels.iter().enumerate() {
            let found = [
                (label.scores.previous_token, label.chance.previous_token),
                (label.scores.next_token, label.chance.next_token),
                (label.scores.first_token, label.chance.first_token),
                (label.scores.diagonal, label.chance.diagonal),
                (label.scores.same_token, label.chance.same_token),
            ];
            for (pattern, (score, chance)) in found.into_iter().enumerate() {
                let (mut rows, mut expected) = (0.0, [0.0; 2]);
                for (entry, i) in (0..batch).flat_map(|entry| (0..n).map(move |i| (entry, i))) {
                    let m = if causal { i + 1 } else { n };
                    let on = |j: usize| match pattern {
                        0 => j + 1 == i,
                        1 => j == i + 1,
                        2 => i > 0 && j == 0,
                        3 => j == i,
                        _ => j != i && tokens[entry * n + j] == tokens[entry * n + i],
                    };
                    let t = (0..m).filter(|&j| on(j)).count();
                    if t == 0 || t == m {
                        continue;
                    }
                    let at = ((entry * 2 + head) * n + i) * n;
                    rows += 1.0;
                    expected[0] += (0..m).filter(|&j| on(j)).map(|j| f64::from(weights.data[at + j])).sum::<f64>();
                    expected[1] += t as f64 / m as f64;
                }
                prop_assert_eq!(score.is_some(), rows > 0.0);
                if let (Some(score), Some(chance)) = (score, chance) {
                    prop_assert!(close(score, expected[0] / rows) && close(chance, expected[1] / rows));
                }
            }
            let rows = if causal { n - 1 } else { n };
            let relative = entropy(&weights).unwrap().data;
            let expected: f64 = (0..batch * n).filter(|row| !causal || row % n > 0).map(|row| {
                let m = if causal { row % n + 1 } else { n };
                f64::from(relative[(row / n * 2 + head) * n + row % n]) / (m as f64).ln()
            }).sum();
            prop_assert!(close(label.scores.uniform.unwrap(), expected / (batch * rows) as f64));
        }
    }

    #[test]
    fn scaled_rows_have_the_same_labels(n in 2usize..10, seed in 0i64..500, factor in 0.5f32..2.0) {
        let weights = drawn(seed, &[3, n, n], false);
        let scaled = Tensor::new(weights.data.iter().map(|weight| weight * factor).collect(), weights.shape.clone());
        let [a, b] = [weights, scaled.unwrap()].map(|weights| label_heads(&weights, None, None, 0).unwrap());
        for (a, b) in a.iter().zip(&b) {
            prop_assert_eq!(a.label, b.label);
            prop_assert!(close(a.scores.diagonal.unwrap(), b.scores.diagonal.unwrap().into()));
        }
    }
}

#[test]
fn rows_at_the_edges() {
    let weights = Tensor::new(
        vec![1.0, 0.0, 0.0, 0.0, 0.25, 0.25, 0.25, 0.25, 0.0, 0.0, 0.0, 0.0, f32::NAN, 0.0, 0.0, 1.0],
        vec![4, 4],
    )
    .unwrap();
    let rows = entropy(&weights).unwrap().data;
    assert!(rows[0] == 0.0 && rows[0].is_sign_positive());
    assert_eq!(rows[1..3], [4f32.ln(), 0.0]);
    assert!(rows[3].is_nan());
    let keys = effective_keys(&weights).unwrap().data;
    assert_eq!(keys[..3], [1.0, 4.0, 0.0]);
    assert!(keys[3].is_nan());
    let distance = mean_distance(&weights, 2).unwrap().data;
    assert_eq!(distance[..3], [2.0, 1.5, 0.0]);
    assert!(distance[3].is_nan());
}

fn label(weights: &Tensor) -> HeadLabel {
    label_heads(weights, None, None, 0).unwrap()[0]
}

/// One head whose row i attends to key `to(i)` alone.
fn hard(n: usize, to: impl Fn(usize) -> usize) -> Tensor {
    tensor(&[1, n, n], |at| f64::from(at[2] == to(at[1])))
}

#[test]
fn perfect_heads_have_their_labels() {
    for n in 3..20 {
        for (expected, weights) in [
            (HeadPattern::PreviousToken, hard(n, |i| i.saturating_sub(1))),
            (HeadPattern::FirstToken, hard(n, |_| 0)),
            (HeadPattern::Diagonal, hard(n, |i| i)),
            (HeadPattern::NextToken, hard(n, |i| (i + 1).min(n - 1))),
            (HeadPattern::Uniform, tensor(&[1, n, n], |_| 1.0 / n as f64)),
        ] {
            let found = label(&weights);
            assert_eq!(found.label, expected, "{n} tokens");
            assert!((found.score.unwrap() - 1.0).abs() < 1e-6);
        }
    }
}

#[test]
fn a_causal_uniform_head_is_uniform_with_a_mask_or_without() {
    for n in 3..20 {
        let weights = tensor(&[1, n, n], |at| if at[2] <= at[1] { 1.0 / (at[1] + 1) as f64 } else { 0.0 });
        let masked = label_heads(&weights, None, Some(&Mask::Causal), 0).unwrap()[0];
        assert_eq!(masked, label(&weights));
        assert_eq!(masked.label, HeadPattern::Uniform);
        assert_eq!(masked.scores.first_token, masked.chance.first_token);
        assert_eq!(masked.scores.next_token, None);
    }
}

#[test]
fn same_token_needs_ids_and_another_of_them() {
    let ids = [5, 6, 5, 6, 5, 6];
    let weights = tensor(&[1, 6, 6], |at| {
        let twins = |j: usize| j != at[1] && ids[j] == ids[at[1]];
        if twins(at[2]) { 0.5 } else { 0.0 }
    });
    let with = |ids: &[i32]| label_heads(&weights, Some(ids), None, 0).unwrap()[0];
    assert_eq!((with(&ids).label, with(&ids).score), (HeadPattern::SameToken, Some(1.0)));
    assert_eq!(label(&weights).scores.same_token, None);
    assert_eq!(with(&[0, 1, 2, 3, 4, 5]).scores.same_token, None);
    // Where all tokens are the same, every key but itself is, and chance is nearly certain.
    let uniform = tensor(&[1, 6, 6], |_| 1.0 / 6.0);
    let all_same = label_heads(&uniform, Some(&[7; 6]), None, 0).unwrap()[0];
    assert_eq!(all_same.label, HeadPattern::Uniform);
    assert_eq!(all_same.scores.same_token, all_same.chance.same_token);
}

#[test]
fn rows_drawn_at_random_get_hardly_any_label() {
    for n in 2..=8 {
        for causal in [false, true] {
            let weights = drawn(n as i64, &[2000, n, n], causal);
            let ids: Vec<i32> = (0..n as i32).map(|i| i % 2).collect();
            let labels = label_heads(&weights, Some(&ids), causal.then_some(&Mask::Causal), 0).unwrap();
            let share = |of: fn(HeadPattern) -> bool| {
                labels.iter().filter(|label| of(label.label)).count() as f64 / labels.len() as f64
            };
            let on_keys = share(|label| !matches!(label, HeadPattern::Mixed | HeadPattern::Uniform));
            let uniform = share(|label| label == HeadPattern::Uniform);
            assert!(on_keys < 0.02 && uniform < if n == 2 { 0.06 } else { 0.02 }, "{n} tokens: {on_keys}, {uniform}");
        }
    }
}

#[test]
fn one_row_makes_no_pattern() {
    let step = tensor(&[1, 1, 9], |at| f64::from(at[2] == 7));
    let found = label_heads(&step, None, None, 8).unwrap()[0];
    assert_eq!((found.label, found.score), (HeadPattern::Mixed, None));
    assert_eq!(found.scores.previous_token, Some(1.0));
    assert_eq!(label(&hard(2, |i| i.saturating_sub(1))).label, HeadPattern::Mixed);
    assert_eq!(label(&tensor(&[1, 1, 1], |_| 1.0)).scores.uniform, None);
}

#[test]
fn cached_keys_shift_the_queries() {
    let weights = tensor(&[1, 4, 9], |at| f64::from(at[2] == at[1] + 4));
    let found = |offset| label_heads(&weights, None, None, offset).unwrap()[0].label;
    assert_eq!(
        [found(5), found(4), found(3)],
        [HeadPattern::PreviousToken, HeadPattern::Diagonal, HeadPattern::NextToken]
    );
    // A mask's rules see the same positions: the first query may attend to the first six keys.
    let masked = label_heads(&weights, None, Some(&Mask::Causal), 5).unwrap()[0];
    assert_eq!(masked, label_heads(&weights, None, None, 5).unwrap()[0]);
    assert_eq!(masked.chance.previous_token, Some((1.0 / 6.0 + 1.0 / 7.0 + 1.0 / 8.0 + 1.0 / 9.0) / 4.0));
}

#[test]
fn rows_without_allowed_keys_are_left_out() {
    let weights = tensor(&[2, 2, 5, 5], |at| {
        let [entry, _, i, j] = at[..] else { unreachable!() };
        match entry {
            // The second entry holds two real tokens; its padded rows are what softmax makes of nothing.
            1 if i >= 2 => f64::NAN,
            _ => f64::from(j == i.saturating_sub(1)),
        }
    });
    let mask = Mask::And { left: Box::new(Mask::Causal), right: Box::new(Mask::Padding { lengths: vec![5, 2] }) };
    for found in label_heads(&weights, None, Some(&mask), 0).unwrap() {
        assert_eq!((found.label, found.score), (HeadPattern::PreviousToken, Some(1.0)));
    }
    let nothing = tensor(&[1, 3, 3], |_| f64::NAN);
    assert_eq!(label(&nothing).scores.uniform, None);
    // A hidden key takes no part: the same head with weight on padding.
    let padded = tensor(&[1, 5, 5], |at| if at[2] == 4 { 0.9 } else { 0.1 * f64::from(at[2] == at[1]) });
    let found = label_heads(&padded, None, Some(&Mask::Padding { lengths: vec![4] }), 0).unwrap()[0];
    assert_eq!((found.label, found.score), (HeadPattern::Diagonal, Some(1.0)));
}

#[test]
fn a_bias_of_a_fill_hides() {
    let weights = tensor(&[1, 5, 5], |at| if at[2] <= at[1] { 1.0 / (at[1] + 1) as f64 } else { 0.0 });
    let added = |fill: f32| {
        let cells = (0..25).map(|cell| if cell % 5 > cell / 5 { fill } else { 0.0 });
        let mask = Mask::Additive { shape: vec![5, 5], data: cells.flat_map(f32::to_le_bytes).collect(), axes: None };
        label_heads(&weights, None, Some(&mask), 0).unwrap()[0]
    };
    let causal = label_heads(&weights, None, Some(&Mask::Causal), 0).unwrap()[0];
    assert_eq!([added(-1e9), added(f32::MIN), added(f32::NEG_INFINITY)], [causal; 3]);
    assert_ne!(added(-100.0), causal);
}

#[test]
fn a_mask_that_leaves_nothing_frees_all_or_is_nan() {
    let before = tensor(&[2, 2, 2], |_| 0.5);
    let empty = |with: f64| tensor(&[2, 2, 2], move |at| if at[..2] == [1, 0] { with } else { 0.5 });
    let zero = mask_effect(&before, &empty(0.0)).unwrap();
    assert_eq!((zero.freed.data, zero.freed_by_head.data), (vec![0.0, 0.0, 1.0, 0.0], vec![0.0, 1.0]));
    assert!(zero.gains.is_empty());
    let nan = mask_effect(&before, &empty(f64::NAN)).unwrap();
    assert!(nan.freed.data[2].is_nan() && nan.freed_by_head.data[1].is_nan());
    assert_eq!((nan.freed.data[3], nan.freed_by_head.data[0]), (0.0, 0.0));
}

#[test]
fn rollout_of_rows_that_hold_nothing() {
    let layers = [tensor(&[1, 2, 2], |at| f64::from(at[1] == 1 && at[2] == 0))];
    assert_eq!(rollout(&layers, true).unwrap().data, [1.0, 0.0, 0.5, 0.5]);
    assert_eq!(rollout(&layers, false).unwrap().data, [0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn rollout_of_many_layers_still_sums_to_one() {
    let layers: Vec<Tensor> = (0..48).map(|layer| drawn(layer, &[4, 33, 33], true)).collect();
    for row in rollout(&layers, true).unwrap().data.chunks_exact(33) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
}

#[test]
fn ablation_is_the_pass_without_the_head() {
    let mut generator = Generator::new(3);
    for (shape, residual_norm) in [(vec![5, 12], false), (vec![2, 4, 12], true)] {
        let size = shape.iter().product();
        let x = Tensor::new(generator.randn(size), shape.clone()).unwrap();
        let key = Tensor::new(generator.randn(size), shape.clone()).unwrap();
        let options = MultiHeadAttentionOptions { residual_norm, ..MultiHeadAttentionOptions::new(12, 3) };
        let module = MultiHeadAttention::new(&options, &mut generator, 1 << 30).unwrap();
        let mask = Some(&Mask::Causal);
        for head_mask in [None, Some(vec![1.0, 0.5, 0.0])] {
            let options = ForwardOptions { head_mask: head_mask.clone(), ..ForwardOptions::default() };
            let found = ablate(&module, &x, Some(&key), None, mask, &options, 1 << 30).unwrap();
            let (n_q, batch) = (shape[shape.len() - 2], size / 12 / shape[shape.len() - 2]);
            assert_eq!(found.shape, [&shape[..shape.len() - 2], &[3, n_q]].concat());
            let output = |factors: Option<Vec<f32>>| {
                let options = ForwardOptions { head_mask: factors, ..ForwardOptions::default() };
                module.forward(&x, Some(&key), None, mask, &options, 1 << 30).unwrap().output()
            };
            let whole = output(head_mask.clone());
            for head in 0..3 {
                let mut factors = head_mask.clone().unwrap_or(vec![1.0; 3]);
                factors[head] = 0.0;
                let distance = moved(&whole, &output(Some(factors))).unwrap().distance.data;
                assert_eq!(distance.len(), batch * n_q);
                for (row, &distance) in distance.iter().enumerate() {
                    let cell = (row / n_q * 3 + head) * n_q + row % n_q;
                    assert_eq!(found.data[cell], distance);
                    assert_eq!(found.data[cell] == 0.0, head_mask.is_some() && head == 2);
                }
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let code = |error: Box<AttnError>| error.code().as_str();
    let row = tensor(&[4], |_| 0.25);
    let square = tensor(&[2, 4, 4], |_| 0.25);
    let wide = tensor(&[2, 4, 5], |_| 0.2);
    let flat = tensor(&[4, 4], |_| 0.25);
    for error in [
        entropy(&row).unwrap_err(),
        effective_keys(&row).unwrap_err(),
        mean_distance(&row, 0).unwrap_err(),
        mask_effect(&row, &row).unwrap_err(),
        mask_effect(&square, &wide).unwrap_err(),
        moved(&square, &flat).unwrap_err(),
        label_heads(&flat, None, None, 0).unwrap_err(),
        label_heads(&square, Some(&[1, 2, 3]), None, 0).unwrap_err(),
        label_heads(&square, Some(&[1, 2, 3, 4]), None, 1).unwrap_err(),
        label_heads(&square, Some(&[1, 2, 3, 4]), None, -1).unwrap_err(),
        rollout(std::slice::from_ref(&wide), true).unwrap_err(),
        rollout(std::slice::from_ref(&flat), true).unwrap_err(),
        rollout(&[square.clone(), tensor(&[1, 4, 4], |_| 0.25)], true).unwrap_err(),
    ] {
        assert_eq!(code(error), "shape_mismatch");
    }
    assert_eq!(code(rollout(&[], true).unwrap_err()), "invalid_tensor");
    let mask = Mask::Padding { lengths: vec![9] };
    assert_eq!(code(label_heads(&square, None, Some(&mask), 0).unwrap_err()), "mask_shape");
    let module =
        MultiHeadAttention::new(&MultiHeadAttentionOptions::new(4, 2), &mut Generator::new(0), 1 << 30).unwrap();
    let options = ForwardOptions { head_mask: Some(vec![1.0]), empty_row: EmptyRow::Zero, ..ForwardOptions::default() };
    let x = tensor(&[3, 4], |_| 1.0);
    assert_eq!(code(ablate(&module, &x, None, None, None, &options, 1 << 30).unwrap_err()), "invalid_option");
}

#[test]
fn a_mask_that_has_met_other_sizes_is_refused() {
    let weights = tensor(&[2, 3, 3], |_| 1.0 / 3.0);
    let met = |shape: [usize; 4], cells: usize| {
        let mask = ResolvedMask { shape, allowed: vec![1; cells], bias: None };
        analysis::label_heads_allowed(&weights, None, Some(mask), 0)
    };
    assert!(met([1, 2, 3, 3], 18).is_ok());
    for (shape, cells) in [([1, 3, 3, 3], 27), ([2, 1, 3, 3], 18), ([1, 1, 3, 4], 12), ([1, 1, 3, 3], 8)] {
        assert!(matches!(*met(shape, cells).unwrap_err(), AttnError::MaskShape { .. }), "{shape:?}, {cells} cells");
    }
}
