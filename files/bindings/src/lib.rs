//! Files of tensors, and state dicts of other families: a WebAssembly module of its own, loaded when the first of these comes.

#![allow(missing_docs)]

use attnscope::AttnError;
use attnscope_boundary::{Thrown, dict_in, dict_out, limit, target_in, throw};
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;

/// `[name, tensor]` of each tensor in a file. A file that does not fit is refused before it is copied.
#[wasm_bindgen(js_name = readTensors)]
pub fn read_tensors(bytes: &Uint8Array, format: Option<String>, max_bytes: f64) -> Thrown<Array> {
    let format = format.map(|name| name.parse()).transpose().map_err(throw)?;
    if f64::from(bytes.length()) > max_bytes {
        return Err(throw(Box::new(AttnError::TooLarge {
            needed: bytes.length().into(),
            max_bytes: max_bytes as u64,
        })));
    }
    attnscope_files::read_tensors(&bytes.to_vec(), format, limit(max_bytes)).map(dict_out).map_err(throw)
}

#[wasm_bindgen(js_name = writeTensors)]
pub fn write_tensors(entries: &Array, format: &str) -> Thrown<Vec<u8>> {
    attnscope_files::write_tensors(&dict_in(entries)?, format.parse().map_err(throw)?).map_err(throw)
}

/// `[name, tensor]` of a dict of another family, with the names and layouts of the module whose target it is.
#[wasm_bindgen(js_name = translateStateDict)]
pub fn translate_state_dict(entries: &Array, target: &Array, layer: Option<usize>) -> Thrown<Array> {
    target_in(target).translate(dict_in(entries)?, layer).map(dict_out).map_err(throw)
}
