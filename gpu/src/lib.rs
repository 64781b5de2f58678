//! The planner of GPU passes as WebAssembly.

#![allow(missing_docs)]

use attnscope::gpu_plan::{self, GpuLimits};
use attnscope::outline::Outline;
use attnscope_boundary::{object, plain};
use js_sys::{Object, Uint32Array};
use wasm_bindgen::prelude::*;

/// The plan of a pass from its outline's words, its tables being so many; or, as text, why the pass is none for a GPU.
#[wasm_bindgen]
pub fn plan(outline: &[u32], tables: usize, binding: f64, workgroup_storage: f64) -> JsValue {
    let limits = GpuLimits { binding: binding as u64, workgroup_storage: workgroup_storage as u64 };
    let Some((frame, steps)) = Outline::read(outline) else { return "its outline is of another build".into() };
    match gpu_plan::plan(frame, &steps, tables, limits) {
        Err(why) => why.into(),
        Ok(plan) => {
            let sizes = object(&[("sizes", Uint32Array::from(&plan.sizes[..]).into())]);
            Object::assign(&plain(plan).into(), sizes.unchecked_ref()).into()
        }
    }
}
