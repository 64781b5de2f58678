//! State dicts: parameters by name. The names of others are those of `families.rs`.

use crate::error::{AttnError, Result};
use crate::parameters::{Parameter, Parameters};
use crate::tensor::Tensor;
use crate::text::Listed;

/// Parameters by name, in the order of the module.
pub type StateDict = Vec<(String, Tensor)>;

/// Copies of the parameters.
pub(crate) fn copy(parameters: Parameters) -> StateDict {
    parameters.into_iter().map(|(name, parameter)| (name, Tensor::clone(parameter))).collect()
}

/// The names and shapes of the parameters.
pub(crate) fn shapes(parameters: Parameters) -> Vec<(String, Vec<usize>)> {
    parameters.into_iter().map(|(name, parameter)| (name, parameter.shape.clone())).collect()
}

/// Replaces every parameter by the entry of its name.
///
/// # Errors
/// `bad_state_dict` naming the first entry that is missing, extra or of the wrong shape; then nothing was replaced.
pub(crate) fn load(mut dict: StateDict, parameters: Parameters) -> Result<()> {
    let mut loaded = Vec::with_capacity(parameters.len());
    for (name, parameter) in &parameters {
        let at = dict.iter().position(|(entry, _)| entry == name);
        match at.map(|at| dict.swap_remove(at).1) {
            None => return Err(bad(name, "nothing".into(), &shape(&parameter.shape))),
            Some(tensor) if tensor.shape != parameter.shape => {
                return Err(bad(name, shape(&tensor.shape), &shape(&parameter.shape)));
            }
            Some(tensor) => loaded.push(tensor),
        }
    }
    if let Some((name, _)) = dict.first() {
        return Err(bad(name, "an entry that the module does not have".into(), "each of its parameters once"));
    }
    for ((_, parameter), tensor) in parameters.into_iter().zip(loaded) {
        *parameter = Parameter::new(tensor);
    }
    Ok(())
}

pub(crate) fn shape(shape: &[usize]) -> String {
    format!("shape {}", Listed(shape))
}

pub(crate) fn bad(entry: &str, found: String, expected: &str) -> Box<AttnError> {
    Box::new(AttnError::BadStateDict { entry: entry.into(), found, expected: expected.into() })
}
