//! Files: the same content from every container, round trips, and each fault with its place.

use std::collections::BTreeMap;

use attnscope::files::{Format, read_tensors, write_tensors};
use attnscope::{AttnError, Tensor};
use proptest::prelude::*;

const MAX_BYTES: usize = 1 << 26;

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/golden/samples/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn read(bytes: &[u8]) -> BTreeMap<String, Tensor> {
    read_tensors(bytes, None, MAX_BYTES).unwrap().into_iter().collect()
}

fn alone(bytes: &[u8]) -> Tensor {
    let mut tensors = read(bytes);
    assert_eq!(tensors.keys().collect::<Vec<_>>(), ["tensor"]);
    tensors.pop_first().unwrap().1
}

/// The reference: what the safetensors crate reads.
fn reference(name: &str) -> BTreeMap<String, Tensor> {
    let bytes = sample(name);
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    file.iter()
        .map(|(name, view)| {
            let data = view.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            (name.to_string(), Tensor::new(data, view.shape().to_vec()).unwrap())
        })
        .collect()
}

fn assert_close(ours: &Tensor, reference: &Tensor, relative: f32, what: &str) {
    assert_eq!(ours.shape, reference.shape, "{what}");
    for (ours, reference) in ours.data.iter().zip(&reference.data) {
        assert!((ours - reference).abs() <= relative * reference.abs() + 1e-7 * relative.signum(), "{what}");
    }
}

#[test]
fn a_state_dict_is_the_same_from_every_container() {
    let reference = reference("seedA_state_dict.safetensors");
    assert_eq!(reference.len(), 8);
    for (file, prefix, relative) in [
        ("seedA_state_dict.safetensors", "", 0.0),
        ("seedA_state_dict.pt", "", 0.0),
        ("seedA_state_dict_legacy.pth", "", 0.0),
        ("seedA_checkpoint.pt", "model_state_dict.", 0.0),
        ("seedA_dataparallel.pt", "module.", 0.0),
        ("seedA_compiled_f16.pt", "_orig_mod.", 1.0 / 2048.0),
        ("seedA_bf16.pt", "", 1.0 / 256.0),
        ("seedA.npz", "", 0.0),
        ("seedA_compressed.npz", "", 0.0),
    ] {
        let ours = read(&sample(file));
        assert_eq!(ours.len(), 8, "{file}: {:?}", ours.keys());
        for (name, tensor) in &reference {
            assert_close(&ours[&format!("{prefix}{name}")], tensor, relative, &format!("{file}: {name}"));
        }
    }
}

#[test]
fn attention_is_the_same_from_every_container() {
    let reference = &reference("attn.safetensors")["attn"];
    assert_eq!(reference.shape, [2, 4, 6, 6]);
    for (file, relative) in
        [("attn.npy", 0.0), ("attn.pt", 0.0), ("attn.json", 0.0), ("attn_f64.npy", 0.0), ("attn_f16.npy", 1.0 / 2048.0)]
    {
        assert_close(&alone(&sample(file)), reference, relative, file);
    }
    let head = Tensor::new(reference.data[..36].to_vec(), vec![6, 6]).unwrap();
    assert_eq!(alone(&sample("attn_fortran.npy")), head);
    assert_close(&alone(&sample("attn_head0.csv")), &head, 1e-7, "csv");
}

#[test]
fn views_of_one_storage_are_read_right() {
    let reference = &reference("attn.safetensors")["attn"];
    let views = read(&sample("attn_views.pt"));
    assert_eq!(&views["a"], reference);
    assert_eq!(views["at"].shape, [2, 6, 4, 6]);
    for (i, &cell) in views["at"].data.iter().enumerate() {
        let [layer, query, head, key] = [i / 144, i / 24 % 6, i / 6 % 4, i % 6];
        assert_eq!(cell, reference.data[((layer * 4 + head) * 6 + query) * 6 + key]);
    }
    let tuple = read(&sample("attentions_tuple.pt"));
    for (layer, tensor) in ["0", "1"].iter().zip(reference.data.chunks(144)) {
        assert_eq!(tuple[*layer], Tensor::new(tensor.to_vec(), vec![1, 4, 6, 6]).unwrap());
    }
}
