//! What a pass allocates once its module is warm: room for its numbers once, and little beside it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use attnscope::{ForwardOptions, MultiHeadAttention, MultiHeadAttentionOptions, Tensor, torch::Generator};

const MAX_BYTES: usize = 1 << 30;
/// Rows of the highest block.
const MOST: usize = attnscope::kernels::matmul::MOST;

struct Counting;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

fn count(bytes: usize) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    BYTES.fetch_add(bytes, Ordering::Relaxed);
}

// SAFETY: all is left to the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test, for everything that is allocated is counted.
#[test]
fn a_pass_allocates_its_numbers_and_little_beside_them() {
    let (width, heads) = (64, 4);
    let sizes = MultiHeadAttentionOptions::new(width, heads);
    let mha = MultiHeadAttention::new(&sizes, &mut Generator::new(0), MAX_BYTES).unwrap();
    for n in [32, 200, 1000] {
        let x = Tensor::new(vec![0.5; n * width], vec![n, width]).unwrap();
        let pass = || {
            let plan = mha.plan(&x, None, None, None, &ForwardOptions::default(), MAX_BYTES).unwrap();
            plan.run_handing_out(&mut |_| {}, &mut |_| {}).unwrap()
        };
        drop(pass());
        let before = [&CALLS, &BYTES].map(|counter| counter.load(Ordering::Relaxed));
        drop(pass());
        let [calls, bytes] = [&CALLS, &BYTES].map(|counter| counter.load(Ordering::Relaxed));
        let [calls, bytes] = [calls - before[0], bytes - before[1]];
        // x, queries, keys, values, context and output, and x once more while it waits for its place.
        let stages = 7 * n * width;
        // One head's keys and values, a block's weights, and blocks of the left-hand matrices of projections and of attention.
        let block = n.min(MOST);
        let room = 2 * n * width / heads + block * n + block * width + block * n.min(256);
        let bytes_of_numbers = 4 * (stages + room);
        assert!(
            bytes < bytes_of_numbers + bytes_of_numbers / 10 + (8 << 10),
            "{n}: {bytes} of {bytes_of_numbers} bytes"
        );
        assert!(calls < 50, "{n}: {calls} allocations");
    }
}
