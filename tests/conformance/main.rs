//! What others wrote, to the bound that comes with it: PyTorch, ONNX's reference operators, the models of `transformers`.
//! `tests/golden` says where each file is from.

mod arch;
mod edges;
mod golden;
mod onnx;
mod posts;
mod torch_modules;

const MAX_BYTES: usize = 1 << 30;
