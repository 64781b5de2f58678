// masked = scaled + bias where a query may attend to a key, else the fill. A thread takes a number.
// scaled, masked: [batch, heads, n_q, n_k]; masked holds the bits of float32, so that -infinity can be written.

struct Sizes {
  scoring: Scoring,
  numbers: u32,
  heads: u32,
  n_q: u32,
  n_k: u32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read> scaled: array<f32>;
@group(0) @binding(2) var<storage, read_write> masked: array<u32>;

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
  let query = at / sizes.n_k;
  let head = query / sizes.n_q;
  let row = mask_row(sizes.scoring, head / sizes.heads, head % sizes.heads, query % sizes.n_q, sizes.n_q);
  let score = score_of(scaled[at], sizes.scoring, row, at % sizes.n_k, sizes.n_q, sizes.n_k);
  masked[at] = select(bitcast<u32>(score), INFINITE, score == HIDDEN);
}
