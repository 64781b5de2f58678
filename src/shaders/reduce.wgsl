// Sums and maxima over the 64 threads of a workgroup, where the device tells nothing of subgroups; `reduce_subgroups.wgsl` is its twin.

const THREADS = 64u;
var<workgroup> parts: array<f32, THREADS>;

struct Thread {
  @builtin(local_invocation_index) index: u32,
}

// The sum of every thread's number.
fn sum_of(part: f32, thread: Thread) -> f32 {
  parts[thread.index] = part;
  workgroupBarrier();
  var sum = 0.0;
  for (var other = 0u; other < THREADS; other++) {
    sum += parts[other];
  }
  workgroupBarrier();
  return sum;
}

// The largest of every thread's number.
fn largest_of(part: f32, thread: Thread) -> f32 {
  parts[thread.index] = part;
  workgroupBarrier();
  var largest = part;
  for (var other = 0u; other < THREADS; other++) {
    largest = max(largest, parts[other]);
  }
  workgroupBarrier();
  return largest;
}
