//! What crosses between Rust and JavaScript, for every WebAssembly module of the package.

mod convert;
mod error;

pub use convert::{
    Thrown, dict_in, dict_out, limit, list, object, plain, tensor_in, tensor_of, tensor_out, tensors_in,
};
pub use error::throw;
