// out = row / sqrt(mean(row²) + eps) · weight, a workgroup a row.
// row, out: [rows, width].

struct Sizes {
  rows: u32,
  width: u32,
  eps: f32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read> row: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

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
  var part = 0.0;
  for (var c = thread.index; c < sizes.width; c += THREADS) {
    part += row[at + c] * row[at + c];
  }
  let sum = sum_of(part, thread);
  let root = sqrt(sum / f32(sizes.width) + sizes.eps);
  for (var c = thread.index; c < sizes.width; c += THREADS) {
    out[at + c] = row[at + c] / root * weight[c];
  }
}
