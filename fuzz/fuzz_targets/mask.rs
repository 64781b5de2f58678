#![no_main]

use attnscope::{Mask, MaskSize, TorchConvention};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    attnscope_fuzz::within_limits(bytes, || {
        let Some(mask) = attnscope_fuzz::given::<Mask>(bytes) else { return };
        for size in
            [MaskSize { n_q: 5, n_k: 7, n_heads: 3, batch: 2 }, MaskSize { n_q: 4, n_k: 4, n_heads: 1, batch: 1 }]
        {
            let _ = mask.materialize(size, 1 << 20);
        }
        for convention in [TorchConvention::Sdpa, TorchConvention::Mha, TorchConvention::Additive] {
            let _ = mask.to_torch(convention);
        }
    });
});
