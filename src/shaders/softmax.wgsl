// weights = softmax over the keys of each row of scores, which are scaled, limited and masked on the way. A workgroup takes a
// row.
// scores, weights: [batch, heads, n_q, n_k]. A row that sees nothing gives zeros.

struct Sizes {
  scoring: Scoring,
  rows: u32,
  heads: u32,
  n_q: u32,
  n_k: u32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
// The bits of float32, of which -infinity is known by its own.
@group(0) @binding(1) var<storage, read> scores: array<u32>;
@group(0) @binding(2) var<storage, read_write> weights: array<f32>;

fn score(at: u32, row: u32, key: u32) -> f32 {
  let bits = scores[at + key];
  if (bits == INFINITE) {
    return HIDDEN;
  }
  return score_of(bitcast<f32>(bits), sizes.scoring, row, key, sizes.n_q, sizes.n_k);
}

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
  let n_k = sizes.n_k;
  let at = index * n_k;
  let head = index / sizes.n_q;
  let row = mask_row(sizes.scoring, head / sizes.heads, head % sizes.heads, index % sizes.n_q, sizes.n_q);

  // 1. The maximum, so that no exponential overflows.
  var largest = HIDDEN;
  for (var key = thread.index; key < n_k; key += THREADS) {
    largest = max(largest, score(at, row, key));
  }
  largest = largest_of(largest, thread);

  // 2. The exponentials and their sum.
  var sum = 0.0;
  for (var key = thread.index; key < n_k; key += THREADS) {
    let number = score(at, row, key);
    let share = select(power(number - largest), 0.0, number == HIDDEN);
    weights[at + key] = share;
    sum += share;
  }
  sum = sum_of(sum, thread);

  // 3. Each one's share.
  if (sum > 0.0) {
    for (var key = thread.index; key < n_k; key += THREADS) {
      weights[at + key] /= sum;
    }
  }
}
