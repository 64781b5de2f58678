//! What every target shares: a limit on memory, and what holds of any file.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use attnscope::given::{Given, Read};
use attnscope::{AttnError, Tensor};
use attnscope_files::{Format, read_tensors, write_tensors};
use serde_json::Value;

/// What a reader is allowed; small, so that a size that is believed before it is checked stands out.
const MAX_BYTES: usize = 16 << 20;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Ends the process where a target takes more memory than its input warrants.
struct Limited;

// SAFETY: every request goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if LIVE.fetch_add(layout.size(), Relaxed) + layout.size() > LIMIT.load(Relaxed) {
            std::process::abort();
        }
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;

/// Runs with at most 64 MiB and 64 bytes for each byte of input.
pub fn within_limits<T>(input: &[u8], run: impl FnOnce() -> T) -> T {
    LIMIT.store(LIVE.load(Relaxed) + (64 << 20) + 64 * input.len(), Relaxed);
    let result = run();
    LIMIT.store(usize::MAX, Relaxed);
    result
}

/// Options or a mask of JSON, where the bytes are any.
pub fn given<T: Read>(bytes: &[u8]) -> Option<T> {
    let json = Json(serde_json::from_slice(bytes).ok()?);
    T::read(&json).ok()
}

struct Json(Value);

impl Given for Json {
    fn is_absent(&self) -> bool {
        self.0.is_null()
    }

    fn flag(&self) -> Option<bool> {
        self.0.as_bool()
    }

    fn number(&self) -> Option<f64> {
        self.0.as_f64()
    }

    fn text(&self) -> Option<String> {
        self.0.as_str().map(String::from)
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        self.0.as_array()?.iter().map(|byte| byte.as_u64()?.try_into().ok()).collect()
    }

    fn items(&self) -> Option<Vec<Self>> {
        self.0.as_array().map(|items| items.iter().cloned().map(Self).collect())
    }

    fn entries(&self) -> Option<Vec<(String, Self)>> {
        let entry = |(name, value): (&String, &Value)| (name.clone(), Self(value.clone()));
        self.0.as_object().map(|object| object.iter().map(entry).collect())
    }

    fn shown(&self) -> String {
        self.0.to_string()
    }
}

/// Any bytes are read or refused with a code of files; what was read is written and read back the same.
pub fn file(bytes: &[u8], format: Option<Format>) {
    within_limits(bytes, || match read_tensors(bytes, format, MAX_BYTES) {
        Ok(tensors) => {
            for format in [Format::Safetensors, Format::Npz, Format::Json] {
                // Names may be too long for npz.
                let Ok(written) = write_tensors(&tensors, format) else { continue };
                match read_tensors(&written, Some(format), MAX_BYTES) {
                    Ok(back) => assert!(same(&back, &tensors), "{format:?}"),
                    // What is written may take more than what was read.
                    Err(error) => assert!(matches!(*error, AttnError::TooLarge { .. }), "{format:?}: {error}"),
                }
            }
        }
        Err(error) => assert!(matches!(*error, AttnError::BadFile { .. } | AttnError::TooLarge { .. }), "{error}"),
    });
}

fn same(ours: &[(String, Tensor)], theirs: &[(String, Tensor)]) -> bool {
    let same_cells = |a: &Tensor, b: &Tensor| {
        a.shape == b.shape
            && a.data.iter().zip(&b.data).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
    };
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|((name, a), (other, b))| name == other && same_cells(a, b))
}
