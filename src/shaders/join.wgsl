// out = the rows of `before`, behind them those of `middle`, behind them those of `after`: a past's keys and values in front, a
// module's own behind. A thread takes a number.
// before, middle: [batch, heads, n_before or n_middle, width]. after: [heads, n_after, width]. out: [batch, heads, n, width].

struct Sizes {
  numbers: u32,
  heads: u32,
  n: u32,
  width: u32,
  n_before: u32,
  before_batch: u32,
  before_head: u32,
  before_row: u32,
  n_middle: u32,
  middle_batch: u32,
  middle_head: u32,
  middle_row: u32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read> before: array<f32>;
@group(0) @binding(2) var<storage, read> middle: array<f32>;
@group(0) @binding(3) var<storage, read> after: array<f32>;
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
  let row = at / sizes.width % sizes.n;
  let head = at / sizes.width / sizes.n % sizes.heads;
  let batch = at / sizes.width / sizes.n / sizes.heads;
  let behind_before = sizes.n_before + sizes.n_middle;
  if (row < sizes.n_before) {
    out[at] = before[batch * sizes.before_batch + head * sizes.before_head + row * sizes.before_row + c];
  } else if (row < behind_before) {
    let own = row - sizes.n_before;
    out[at] = middle[batch * sizes.middle_batch + head * sizes.middle_head + own * sizes.middle_row + c];
  } else {
    let own = head * (sizes.n - behind_before) + row - behind_before;
    out[at] = after[own * sizes.width + c];
  }
}
