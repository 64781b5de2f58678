// out = (row - mean) / sqrt(variance + eps) · weight + bias, a workgroup a row.
// row, out: [rows, width]. The mean is taken in two steps, of which the second finds what rounding lost in the first.

struct Sizes {
  rows: u32,
  width: u32,
  eps: f32,
  has_bias: u32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read> row: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  thread: Thread,
) {
  let index = group.y * groups.x + group.x;
  if (index >= sizes.rows) {
    return;
  }
  let at = index * sizes.width;
  let n = f32(sizes.width);

  // 1. The mean.
  var part = 0.0;
  for (var c = thread.index; c < sizes.width; c += THREADS) {
    part += row[at + c];
  }
  let near = sum_of(part, thread) / n;
  part = 0.0;
  for (var c = thread.index; c < sizes.width; c += THREADS) {
    part += row[at + c] - near;
  }
  let rest = sum_of(part, thread) / n;

  // 2. The variance, over n.
  part = 0.0;
  for (var c = thread.index; c < sizes.width; c += THREADS) {
    let distance = (row[at + c] - near) - rest;
    part += distance * distance;
  }
  let deviation = sqrt(sum_of(part, thread) / n + sizes.eps);

  // 3. The numbers.
  for (var c = thread.index; c < sizes.width; c += THREADS) {
    var number = ((row[at + c] - near) - rest) / deviation * weight[c];
    if (sizes.has_bias == 1u) {
      number += bias[c];
    }
    out[at + c] = number;
  }
}
