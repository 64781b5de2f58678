#![no_main]

use attnscope::torch::Generator;
use attnscope::{
    ForwardOptions, MultiHeadAttention, MultiHeadAttentionOptions, QueryKeyValue, ScaledDotProductOptions, Tensor,
    TransformerOptions, scaled_dot_product_attention,
};

const MAX_BYTES: usize = 1 << 20;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    attnscope_fuzz::within_limits(bytes, || {
        if let Some(options) = attnscope_fuzz::given::<MultiHeadAttentionOptions>(bytes) {
            let _ = options.check(MAX_BYTES);
        }
        if let Some(options) = attnscope_fuzz::given::<TransformerOptions>(bytes) {
            for is_decoder in [false, true] {
                let _ = options.check(is_decoder, MAX_BYTES);
            }
        }
        let x = Tensor::new(vec![0.5; 12], vec![3, 4]).unwrap();
        if let Some(options) = attnscope_fuzz::given::<ForwardOptions>(bytes) {
            let mha = MultiHeadAttention::new(&MultiHeadAttentionOptions::new(4, 2), &mut Generator::new(0), MAX_BYTES)
                .unwrap();
            let _ = mha.forward(&x, None, None, None, &options, MAX_BYTES);
        }
        if let Some(options) = attnscope_fuzz::given::<ScaledDotProductOptions>(bytes) {
            let inputs = QueryKeyValue { query: &x, key: &x, value: &x, past: None };
            let _ = scaled_dot_product_attention(inputs, None, &options, MAX_BYTES);
        }
    });
});
