//! Build tools pinned by Cargo.lock.
//!   xtask bindgen <arguments of wasm-bindgen>
//!   xtask types        prints the TypeScript declarations of the types that cross into JavaScript

use attnscope::analysis::{CellChange, HeadLabel, HeadPattern, MaskEffect, Moved, PatternScores};
use attnscope::gpu_plan::{Binding, Buffer, Dispatch, GpuPlan, ReadBack, Source};
use attnscope::{
    Activation, EmptyRow, ErrorCode, Explanation, ForwardOptions, Init, Mask, MaskAxes, MaskSize,
    MultiHeadAttentionOptions, NormKind, Operation, Positions, RemaskOptions, ScaledDotProductOptions, Stage,
    StageInfo, Term, TorchConvention, TransformerOptions,
};
use attnscope_files::Format;
use ts_rs::{Config, TS};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_deref().and_then(|command| command.to_str()) {
        Some("bindgen") => {
            let named = std::iter::once("wasm-bindgen".into()).chain(arguments);
            wasm_bindgen_cli::wasm_bindgen::run_cli_with_args(named)
        }
        Some("types") => {
            print!("{}", types());
            Ok(())
        }
        _ => anyhow::bail!("usage: xtask bindgen|types"),
    }
}

fn types() -> String {
    let mut text = String::from(
        "// Generated from the engine's Rust types; do not edit.\nimport type { Tensor } from \"./tensor.ts\";\n",
    );
    let version = env!("CARGO_PKG_VERSION");
    let build = std::env::var("ATTNSCOPE_BUILD").unwrap_or("local".into());
    text.push_str(&format!(
        "\n/** The version of the engine that these types belong to. */\nexport const VERSION = \"{version}\";\n\
         \n/** The version and the sources that these types were made from. */\nexport const BUILD = \"{version}+{build}\";\n"
    ));
    let eps = attnscope::LAYER_NORM_EPS;
    text.push_str(&format!(
        "\n/** LayerNorm's default epsilon, PyTorch's. */\nexport const LAYER_NORM_EPS = {eps:?};\n"
    ));
    let depth = attnscope::MAX_MASK_DEPTH;
    text.push_str(&format!("\n/** How deep masks may lie in each other. */\nexport const MAX_MASK_DEPTH = {depth};\n"));
    macro_rules! declare {
        ($($name:ident),*) => { $(
            let docs = $name::docs().unwrap_or_default();
            text.push_str(&format!("\n{docs}export {}\n", $name::decl(&Config::default())));
        )* };
    }
    declare!(
        ErrorCode,
        Stage,
        StageInfo,
        Operation,
        Term,
        Explanation,
        EmptyRow,
        Activation,
        NormKind,
        Positions,
        Init,
        MultiHeadAttentionOptions,
        TransformerOptions,
        ForwardOptions,
        ScaledDotProductOptions,
        RemaskOptions,
        MaskAxes,
        MaskSize,
        TorchConvention,
        Mask,
        Format,
        HeadPattern,
        PatternScores,
        HeadLabel,
        CellChange,
        MaskEffect,
        Moved,
        GpuPlan,
        Buffer,
        Source,
        Dispatch,
        Binding,
        ReadBack
    );
    text
}
