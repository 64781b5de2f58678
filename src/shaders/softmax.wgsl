// weights = softmax over the keys of each row of scores, which are scaled, limited and masked on the way. A workgroup takes 4
// rows, each by 16 threads.
// scores, weights: [batch, heads, n_q, n_k]. A row that sees nothing gives zeros.

struct Sizes {
  scoring: Scoring,
  rows: u32,
  heads: u32,
  n_q: u32,
  n_k: u32,
}

// Whether the scores lie where the weights go, and `scores` is nothing: a buffer that is written has one binding.
override IN_PLACE: bool;

@group(0) @binding(0) var<uniform> sizes: Sizes;
// The bits of float32, of which -infinity is known by its own; in place there is none.
@group(0) @binding(1) var<storage, read> scores: array<u32>;
@group(0) @binding(2) var<storage, read_write> weights: array<f32>;

const ROWS = 4u;
const LANES = 16u;
// [ROWS, LANES]
var<workgroup> parts: array<f32, ROWS * LANES>;

fn score(at: u32, row: u32, key: u32) -> f32 {
  var number = 0.0;
  if (IN_PLACE) {
    number = weights[at + key];
  } else {
    let bits = scores[at + key];
    if (bits == INFINITE) {
      return HIDDEN;
    }
    number = bitcast<f32>(bits);
  }
  return score_of(number, sizes.scoring, row, key, sizes.n_q, sizes.n_k);
}

@compute @workgroup_size(ROWS * LANES)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) thread: u32,
) {
  let lane = thread % LANES;
  let first_lane = thread - lane;
  let index = (group.y * groups.x + group.x) * ROWS + thread / LANES;
  // Beyond the last row there are no keys.
  let n_k = select(0u, sizes.n_k, index < sizes.rows);
  let at = index * sizes.n_k;
  let head = index / sizes.n_q;
  let row = mask_row(sizes.scoring, head / sizes.heads, head % sizes.heads, index % sizes.n_q, sizes.n_q);

  // 1. The maximum, so that no exponential overflows.
  var largest = HIDDEN;
  for (var key = lane; key < n_k; key += LANES) {
    largest = max(largest, score(at, row, key));
  }
  parts[thread] = largest;
  workgroupBarrier();
  for (var other = 0u; other < LANES; other++) {
    largest = max(largest, parts[first_lane + other]);
  }
  workgroupBarrier();

  // 2. The exponentials and their sum.
  var sum = 0.0;
  for (var key = lane; key < n_k; key += LANES) {
    let number = score(at, row, key);
    let share = select(power(number - largest), 0.0, number == HIDDEN);
    weights[at + key] = share;
    sum += share;
  }
  parts[thread] = sum;
  workgroupBarrier();
  sum = 0.0;
  for (var other = 0u; other < LANES; other++) {
    sum += parts[first_lane + other];
  }

  // 3. Each one's share.
  if (sum > 0.0) {
    for (var key = lane; key < n_k; key += LANES) {
      weights[at + key] /= sum;
    }
  }
}
