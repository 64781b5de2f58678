// out = row / sqrt(mean(row²) + eps) · weight, a workgroup a row.
// from, out: [rows, width].

struct Sizes {
  rows: u32,
  width: u32,
  eps: f32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read> row: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

const THREADS = 64u;
var<workgroup> parts: array<f32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) thread: u32,
) {
  let index = group.y * groups.x + group.x;
  if (index >= sizes.rows) {
    return;
  }
  let at = index * sizes.width;
  var sum = 0.0;
  for (var c = thread; c < sizes.width; c += THREADS) {
    sum += row[at + c] * row[at + c];
  }
  parts[thread] = sum;
  workgroupBarrier();
  sum = 0.0;
  for (var other = 0u; other < THREADS; other++) {
    sum += parts[other];
  }
  let root = sqrt(sum / f32(sizes.width) + sizes.eps);
  for (var c = thread; c < sizes.width; c += THREADS) {
    out[at + c] = row[at + c] / root * weight[c];
  }
}
