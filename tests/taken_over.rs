//! Mask after mask on the same pass, and pass after pass of the same module, give to the bit what a pass that begins anew gives,
//! whatever rows the one before had in common.

use attnscope::{
    EmptyRow, ForwardOptions, Mask, Memory, MultiHeadAttention, MultiHeadAttentionOptions, Plan, Positions,
    RemaskOptions, StateDict, Tensor, Trace, Transformer, TransformerOptions, torch::Generator,
};
use proptest::prelude::*;

const MAX_BYTES: usize = 1 << 30;
const N: usize = 9;
const HEADS: usize = 4;
const D: usize = 16;

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
        assert_same(&trace, &anew, &format!("{mask:?}, {how:?}"));
    }
}

fn assert_same(one: &Trace, other: &Trace, what: &str) {
    for info in other.stages() {
        let [one, other] = [one, other].map(|trace| bits(&trace.stage(info.name, info.layer).unwrap()));
        assert_eq!(one, other, "{info:?} under {what}");
    }
}

/// What changes between a pass and the next.
#[derive(Debug, Clone)]
enum Edit {
    /// Rows of x from one to another, in one entry of the batch.
    Rows(usize, usize, usize),
    /// A number of the keys' input or the memory becomes this.
    Other(usize, f32),
    /// The first number of a parameter.
    Parameter(usize),
    HeadMask(Vec<f32>),
    /// What a row becomes that sees nothing; under the mask that hides all from the first.
    EmptyRow(EmptyRow),
    Mask(Option<Mask>, RemaskOptions),
    /// The mask is exchanged on the trace itself.
    Remask(Option<Mask>, RemaskOptions),
}

fn any_edit() -> impl Strategy<Value = Edit> {
    let odd = prop::sample::select(vec![0.5f32, -0.0, f32::INFINITY, f32::NAN]);
    prop_oneof![
        (0..2usize, 0..N, 1..3usize).prop_map(|(entry, row, rows)| Edit::Rows(entry, row, (row + rows).min(N))),
        (0..60usize, odd).prop_map(|(at, to)| Edit::Other(at, to)),
        (0..100usize).prop_map(Edit::Parameter),
        prop::sample::select(vec![EmptyRow::Nan, EmptyRow::Zero]).prop_map(Edit::EmptyRow),
        prop::collection::vec(prop::sample::select(vec![0.0f32, 1.0, 0.5]), HEADS).prop_map(Edit::HeadMask),
        any_step().prop_map(|(mask, how)| Edit::Mask(mask, how)),
        any_step().prop_map(|(mask, how)| Edit::Remask(mask, how)),
    ]
}

type PlanOf<Module> = fn(&Module, [&Tensor; 2], Option<&Mask>, &ForwardOptions) -> Plan;

/// Goes from edit to edit, and compares every stage with that of a pass that begins anew.
fn edit<Module>(
    edits: &[Edit],
    module: &mut Module,
    dict: fn(&Module) -> StateDict,
    load: fn(&mut Module, StateDict),
    plan: PlanOf<Module>,
) {
    let (mut x, mut other) = (random(&[2, N, D]), random(&[2, N, D]));
    let (mut mask, mut options) = (None, ForwardOptions { trace: true, ..ForwardOptions::default() });
    let mut trace = pass(plan(module, [&x, &other], None, &options));
    let mut generator = Generator::new(2);
    for edit in edits {
        match edit {
            Edit::Rows(entry, first, end) => {
                let rows = &mut x.data[(entry * N + first) * D..(entry * N + end) * D];
                rows.copy_from_slice(&generator.randn(rows.len()));
            }
            Edit::Other(at, to) => other.data[at * 2] = *to,
            Edit::Parameter(at) => {
                let mut parameters = dict(module);
                let count = parameters.len();
                parameters[at % count].1.data[0] += 1.0;
                load(module, parameters);
            }
            Edit::HeadMask(factors) => options.head_mask = Some(factors.clone()),
            Edit::EmptyRow(what) => {
                mask = Some(keep((0..N * N).map(|at| u8::from(at >= N)).collect()));
                (options.mask_fill, options.empty_row) = (f32::NEG_INFINITY, *what);
            }
            Edit::Mask(next, how) | Edit::Remask(next, how) => {
                mask.clone_from(next);
                (options.mask_fill, options.empty_row, options.is_causal) =
                    (how.mask_fill, how.empty_row, how.is_causal);
            }
        }
        let anew = pass(plan(module, [&x, &other], mask.as_ref(), &options));
        trace = match edit {
            Edit::Remask(next, how) => trace.remask(next.as_ref(), how).unwrap(),
            _ => pass(plan(module, [&x, &other], mask.as_ref(), &options).after(&trace)),
        };
        assert_same(&trace, &anew, &format!("{edit:?}"));
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn attention_pass_after_pass(
        edits in prop::collection::vec(any_edit(), 1..6),
        other in prop::sample::select(vec!["key", "value", "none"]),
        is_turned: bool,
    ) {
        let sizes = MultiHeadAttentionOptions {
            n_kv_heads: Some(2),
            residual_norm: true,
            qk_norm: is_turned,
            positions: if is_turned { Positions::Rope } else { Positions::None },
            bias_kv: !is_turned,
            ..MultiHeadAttentionOptions::new(D, HEADS)
        };
        let plan: PlanOf<MultiHeadAttention> = match other {
            "key" => |module, [x, key], mask, options| {
                module.plan(x, Some(key), None, mask, options, MAX_BYTES).unwrap()
            },
            "value" => |module, [x, value], mask, options| {
                module.plan(x, None, Some(value), mask, options, MAX_BYTES).unwrap()
            },
            _ => |module, [x, _], mask, options| module.plan(x, None, None, mask, options, MAX_BYTES).unwrap(),
        };
        let mut module = MultiHeadAttention::new(&sizes, &mut Generator::new(0), MAX_BYTES).unwrap();
        let load = |module: &mut MultiHeadAttention, dict| module.load_state_dict(dict, None).unwrap();
        edit(&edits, &mut module, MultiHeadAttention::state_dict, load, plan);
    }

    #[test]
    fn stacks_pass_after_pass(edits in prop::collection::vec(any_edit(), 1..6), is_decoder: bool, norm_first: bool) {
        edit_stack(&edits, is_decoder, norm_first);
    }
}

fn edit_stack(edits: &[Edit], is_decoder: bool, norm_first: bool) {
    let sizes = TransformerOptions { n_layers: Some(2), norm_first, ..TransformerOptions::new(D, HEADS) };
    let new = if is_decoder { Transformer::decoder } else { Transformer::encoder };
    let mut module = new(sizes, &mut Generator::new(0), MAX_BYTES).unwrap();
    let plan: PlanOf<Transformer> = if is_decoder {
        |module, [x, rows], mask, options| {
            module.plan(x, Some(Memory { rows, mask: None }), mask, options, MAX_BYTES).unwrap()
        }
    } else {
        |module, [x, _], mask, options| module.plan(x, None, mask, options, MAX_BYTES).unwrap()
    };
    let load = |module: &mut Transformer, dict| module.load_state_dict(dict, None).unwrap();
    edit(edits, &mut module, Transformer::state_dict, load, plan);
}

#[test]
fn every_parameter_counts() {
    let each: Vec<Edit> = (0..60).map(Edit::Parameter).collect();
    for (is_decoder, norm_first) in [(false, false), (false, true), (true, false), (true, true)] {
        edit_stack(&each, is_decoder, norm_first);
    }
}

#[test]
fn a_token_costs_its_row_of_the_projections() {
    let (n, d) = (64, 32);
    let sizes = MultiHeadAttentionOptions::new(d, HEADS);
    let module = MultiHeadAttention::new(&sizes, &mut Generator::new(0), MAX_BYTES).unwrap();
    let options = ForwardOptions { trace: true, ..ForwardOptions::default() };
    let plan = |x: &Tensor, options: &ForwardOptions| module.plan(x, None, None, None, options, MAX_BYTES).unwrap();
    let x = random(&[n, d]);
    let before = pass(plan(&x, &options));
    assert_eq!(plan(&x, &options).after(&before).work(), 0.0);

    let mut other = x.clone();
    other.data[5 * d] += 1.0;
    let [all, row] = [plan(&other, &options), plan(&other, &options).after(&before)].map(|plan| plan.work());
    assert_eq!(all - row, (3 * d * d * (n - 1)) as f64);

    // Nothing is taken over from what has other shapes, or keeps nothing.
    let shorter = random(&[n - 1, d]);
    assert_eq!(plan(&shorter, &options).after(&before).work(), plan(&shorter, &options).work());
    let unkept = pass(plan(&x, &ForwardOptions::default()));
    assert_eq!(plan(&x, &options).after(&unkept).work(), all);
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
