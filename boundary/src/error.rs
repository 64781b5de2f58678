//! An engine error as a JavaScript error that carries its code and details; the package turns it into an `AttnError`.

use attnscope::{AttnError, Tensor};
use js_sys::{Error, Reflect};
use wasm_bindgen::prelude::*;

use crate::convert::{Thrown, plain, tensor_out};

/// The JavaScript error of an engine error.
pub fn throw(error: Box<AttnError>) -> JsValue {
    let thrown = Error::new(&error.to_string());
    for (name, value) in [("code", error.code().as_str().into()), ("details", plain(*error))] {
        // Setting a property of a new error does not fail.
        let _ = Reflect::set(&thrown, &name.into(), &value);
    }
    thrown.into()
}

/// A tensor that was asked for.
pub fn result(tensor: attnscope::Result<Tensor>) -> Thrown<JsValue> {
    tensor.map(|tensor| tensor_out(&tensor)).map_err(throw)
}
