// Sums over the 64 threads of a workgroup, where the device tells nothing of subgroups; `reduce_subgroups.wgsl` is its twin.

const THREADS = 64u;
var<workgroup> sums: array<f32, THREADS>;

struct Thread {
  @builtin(local_invocation_index) index: u32,
}

// The sum of every thread's number.
fn sum_of(part: f32, thread: Thread) -> f32 {
  sums[thread.index] = part;
  workgroupBarrier();
  var sum = 0.0;
  for (var other = 0u; other < THREADS; other++) {
    sum += sums[other];
  }
  workgroupBarrier();
  return sum;
}
