//! What crosses between Rust and JavaScript, for every WebAssembly module of the package.

mod convert;
mod error;
mod read;

pub use convert::{
    Thrown, count, dict_in, dict_out, limit, list, object, plain, target_in, target_out, tensor_in, tensor_of,
    tensor_out, tensors_in,
};
pub use error::{result, throw};
pub use read::{optional_mask, options, read};
