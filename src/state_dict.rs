//! State dicts: our names, and those of the families that loading understands.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{AttnError, Result};
use crate::tensor::Tensor;

/// Parameters by name, in the order of the module.
pub type StateDict = Vec<(String, Tensor)>;

/// A module's own parameters, to be read or replaced.
pub(crate) type Parameters<'a> = Vec<(String, &'a mut Arc<Tensor>)>;

/// What a part of a name is called elsewhere, and here.
const ALIASES: [(&str, &str); 18] = [
    ("query_linear", "query"),
    ("key_linear", "key"),
    ("value_linear", "value"),
    ("out_linear", "out"),
    ("W_Q", "query"),
    ("W_K", "key"),
    ("W_V", "value"),
    ("linear", "out"),
    ("fc", "out"),
    ("layer_norm", "norm"),
    ("out_proj", "out"),
    ("q_proj", "query"),
    ("k_proj", "key"),
    ("v_proj", "value"),
    ("q_proj_weight", "query.weight"),
    ("k_proj_weight", "key.weight"),
    ("v_proj_weight", "value.weight"),
    ("self_attn", "attention"),
];

/// Replaces every parameter by the entry of its name.
///
/// # Errors
/// `bad_state_dict` naming the first entry that is missing, extra or of the wrong shape; then nothing was replaced.
pub(crate) fn load(dict: StateDict, parameters: Parameters) -> Result<()> {
    let bad = |entry: &str, found: String, expected: String| {
        Err(AttnError::BadStateDict { entry: entry.into(), found, expected })
    };
    let known: Vec<&str> = parameters.iter().map(|(name, _)| &name[..]).collect();
    let known_list = known.join(", ");
    // Our name -> (the name it came under, the tensor)
    let mut entries: BTreeMap<String, (String, Tensor)> = BTreeMap::new();
    for (name, tensor) in dict {
        for (ours, tensor) in translate(&name, tensor)? {
            if !known.contains(&&ours[..]) {
                return bad(&name, "an entry that the module does not have".into(), format!("one of {known_list}"));
            }
            if let Some((earlier, _)) = entries.get(&ours) {
                return bad(&name, format!("a second value for {ours}, after {earlier}"), "each entry once".into());
            }
            entries.insert(ours, (name.clone(), tensor));
        }
    }
    let mut loaded = Vec::with_capacity(parameters.len());
    for (name, parameter) in &parameters {
        match entries.remove(name) {
            None => return bad(name, "nothing".into(), format!("shape {:?}", parameter.shape)),
            Some((theirs, tensor)) if tensor.shape != parameter.shape => {
                return bad(&theirs, format!("shape {:?}", tensor.shape), format!("shape {:?}", parameter.shape));
            }
            Some((_, tensor)) => loaded.push(tensor),
        }
    }
    for ((_, parameter), tensor) in parameters.into_iter().zip(loaded) {
        *parameter = Arc::new(tensor);
    }
    Ok(())
}

/// One of their entries as one or three of ours.
fn translate(name: &str, tensor: Tensor) -> Result<StateDict> {
    let mut parts: Vec<&str> = name.split('.').collect();
    // A bare list of blocks counts them without saying `layers`.
    let block = parts[0].parse::<usize>().is_ok();
    if block {
        parts.insert(0, "layers");
    }
    if let [.., last @ ("in_proj_weight" | "in_proj_bias")] = parts[..] {
        let kind = if last == "in_proj_weight" { "weight" } else { "bias" };
        let prefix = ours(&parts[..parts.len() - 1]);
        return split_in_three(name, tensor, &prefix, kind);
    }
    Ok(vec![(ours(&parts), tensor)])
}

fn ours(parts: &[&str]) -> String {
    let alias = |&part| ALIASES.iter().find(|(theirs, _)| *theirs == part).map_or(part, |(_, ours)| *ours);
    parts.iter().map(alias).collect::<Vec<_>>().join(".")
}

/// `torch.nn.MultiheadAttention` keeps query, key and value as the rows of one matrix.
fn split_in_three(name: &str, tensor: Tensor, prefix: &str, kind: &str) -> Result<StateDict> {
    let rows = tensor.shape[0];
    if !rows.is_multiple_of(3) {
        return Err(AttnError::BadStateDict {
            entry: name.into(),
            found: format!("shape {:?}", tensor.shape),
            expected: "rows for query, key and value in equal parts".into(),
        });
    }
    let mut shape = tensor.shape.clone();
    shape[0] = rows / 3;
    let parts = tensor.data.chunks_exact(tensor.data.len() / 3);
    let dot = if prefix.is_empty() { "" } else { "." };
    Ok(["query", "key", "value"]
        .iter()
        .zip(parts)
        .map(|(part, data)| {
            (format!("{prefix}{dot}{part}.{kind}"), Tensor { shape: shape.clone(), data: data.to_vec() })
        })
        .collect())
}
