#![no_main]

use attnscope::torch::Generator;
use attnscope::{
    ForwardOptions, MultiHeadAttention, MultiHeadAttentionOptions, ScaledDotProductOptions, Tensor, TransformerOptions,
    scaled_dot_product_attention,
};

const MAX_BYTES: usize = 1 << 20;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    attnscope_fuzz::within_limits(bytes, || {
        if let Ok(options) = serde_json::from_slice::<MultiHeadAttentionOptions>(bytes) {
            let _ = options.check();
        }
        if let Ok(options) = serde_json::from_slice::<TransformerOptions>(bytes) {
            let _ = options.check();
        }
        let x = Tensor::new(vec![0.5; 12], vec![3, 4]).unwrap();
        if let Ok(options) = serde_json::from_slice::<ForwardOptions>(bytes) {
            let mha = MultiHeadAttention::new(MultiHeadAttentionOptions::new(4, 2), &mut Generator::new(0)).unwrap();
            let _ = mha.forward(&x, None, None, None, &options, MAX_BYTES);
        }
        if let Ok(options) = serde_json::from_slice::<ScaledDotProductOptions>(bytes) {
            let _ = scaled_dot_product_attention(&x, &x, &x, None, &options, MAX_BYTES);
        }
    });
});
