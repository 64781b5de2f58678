//! The planner of GPU passes as WebAssembly.

#![allow(missing_docs)]

use attnscope::gpu_plan;
use attnscope::outline::Outline;
use attnscope_boundary::{Thrown, object, plain};
use js_sys::{Object, Uint32Array};
use wasm_bindgen::prelude::*;

/// The plan of a pass from its outline's words, its tables being so many, for a device whose shaders see so many bytes of a buffer; or,
/// as text, why the pass is none for a GPU.
#[wasm_bindgen]
pub fn plan(outline: &[u32], tables: usize, most_bytes: f64) -> Thrown<JsValue> {
    let Some((frame, steps)) = Outline::read(outline) else { return Ok("its outline is of another build".into()) };
    Ok(match gpu_plan::plan(frame, &steps, tables, most_bytes as u64) {
        Err(why) => why.into(),
        Ok(plan) => {
            let sizes = object([("sizes", Uint32Array::from(&plan.sizes[..]).into())]);
            Object::assign(&plain(plan).into(), sizes.unchecked_ref()).into()
        }
    })
}
