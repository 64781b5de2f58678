enable subgroups;
// Sums over the 64 threads of a workgroup, in two steps of subgroups: of the threads of each, then of what these gave.
// Subgroups are full, since 64 is a multiple of their size.

const THREADS = 64u;
var<workgroup> sums: array<f32, THREADS>;

struct Thread {
  @builtin(local_invocation_index) index: u32,
  @builtin(subgroup_invocation_id) lane: u32,
  @builtin(subgroup_size) lanes: u32,
}

// The sum of every thread's number.
fn sum_of(part: f32, thread: Thread) -> f32 {
  let own = subgroupAdd(part);
  sums[thread.index] = select(0.0, own, thread.lane == 0u);
  workgroupBarrier();
  var rest = 0.0;
  for (var other = thread.lane; other < THREADS; other += thread.lanes) {
    rest += sums[other];
  }
  workgroupBarrier();
  return subgroupAdd(rest);
}
