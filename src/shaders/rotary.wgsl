// Turns pairs of each row's first numbers by the angles of the row's position: (x, y) becomes (x cos - y sin, x sin + y cos).
// row, out: [batch, heads, n, width], of which the rows of one position and the next lie `position` apart. cos, sin: [n, pairs].

struct Sizes {
  numbers: u32,
  width: u32,
  n: u32,
  position: u32,
  pairs: u32,
  is_interleaved: u32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read> row: array<f32>;
@group(0) @binding(2) var<storage, read> cos: array<f32>;
@group(0) @binding(3) var<storage, read> sin: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) thread: u32,
) {
  let at = (group.y * groups.x + group.x) * 256u + thread;
  if (at >= sizes.numbers) {
    return;
  }
  let c = at % sizes.width;
  if (c >= 2u * sizes.pairs) {
    out[at] = row[at];
    return;
  }
  // The pairs are (p, p + pairs), or neighbours (2 p, 2 p + 1).
  let is_interleaved = sizes.is_interleaved == 1u;
  let pair = select(c % sizes.pairs, c / 2u, is_interleaved);
  let is_right = select(c >= sizes.pairs, c % 2u == 1u, is_interleaved);
  let apart = select(sizes.pairs, 1u, is_interleaved);
  let angle = at / sizes.position % sizes.n * sizes.pairs + pair;
  if (is_right) {
    out[at] = row[at - apart] * sin[angle] + row[at] * cos[angle];
  } else {
    out[at] = row[at] * cos[angle] - row[at + apart] * sin[angle];
  }
}
