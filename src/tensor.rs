//! A shape and its numbers; no operations.

use crate::error::{AttnError, Result};
use crate::text::Listed;

/// Row-major float32 numbers with their shape. Never empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// The length of each axis, outermost first.
    pub shape: Vec<usize>,
    /// The numbers, row-major; as many as the shape says.
    pub data: Vec<f32>,
}

impl Tensor {
    /// # Errors
    /// `invalid_tensor` where an axis is empty or the numbers are not as many as the shape says.
    pub fn new(data: Vec<f32>, shape: Vec<usize>) -> Result<Self> {
        let size = shape.iter().try_fold(1usize, |size, &axis| size.checked_mul(axis));
        if shape.is_empty() || size == Some(0) || size != Some(data.len()) {
            return Err(Box::new(AttnError::InvalidTensor {
                argument: "tensor".into(),
                found: format!("{} numbers for shape {}", data.len(), Listed(&shape)),
                expected: "at least one axis, no empty axis, and as many numbers as the shape says".into(),
            }));
        }
        Ok(Self { shape, data })
    }

    /// The length of the last axis.
    pub(crate) fn width(&self) -> usize {
        self.shape[self.shape.len() - 1]
    }
}
