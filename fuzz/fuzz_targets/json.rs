#![no_main]

use attnscope_files::Format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| attnscope_fuzz::file(bytes, Some(Format::Json)));
