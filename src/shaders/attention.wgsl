// context = softmax(query · keyᵀ · scale + mask) · value, without ever holding a row of weights: a workgroup takes 16 queries of a
// head, meets 32 keys at a time, and corrects what it has summed when a larger score comes (Milakov & Gimelshein 2018).
// query: [batch, heads, n_q, d_k]. key: [batch, kv_heads, n_k, d_k]. value: [batch, kv_heads, n_k, d_v]. context: [batch, heads, n_q, d_v].

struct Sizes {
  scoring: Scoring,
  n_q: u32,
  n_k: u32,
  d_k: u32,
  heads: u32,
  // heads that share a key head
  group: u32,
  query_batch: u32,
  query_head: u32,
  query_row: u32,
  key_batch: u32,
  key_head: u32,
  key_row: u32,
  value_batch: u32,
  value_head: u32,
  value_row: u32,
  context_batch: u32,
  context_head: u32,
  context_row: u32,
  has_factors: u32,
}

override D_V: u32;
// Whether every row of queries and keys starts at a multiple of 4 numbers and is a multiple of 4 long.
override ALIGNED: bool;

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read> query: array<vec4f>;
@group(0) @binding(2) var<storage, read> key: array<vec4f>;
@group(0) @binding(3) var<storage, read> value: array<f32>;
@group(0) @binding(4) var<storage, read> factors: array<f32>;
@group(0) @binding(5) var<storage, read_write> context: array<f32>;

const QUERIES = 16u;
const LANES = 16u;
const KEYS = 32u;

// [QUERIES, KEYS]: scores, then shares
var<workgroup> shares: array<f32, QUERIES * KEYS>;
// [QUERIES, D_V]; a thread has the columns lane, lane + LANES, ... of its query
var<workgroup> sums: array<f32, QUERIES * D_V>;

// query · key, from these places on
fn dot_of(query_at: u32, key_at: u32) -> f32 {
  var sum = 0.0;
  if (ALIGNED) {
    for (var p = 0u; p < sizes.d_k; p += 4u) {
      sum += dot(query[(query_at + p) / 4u], key[(key_at + p) / 4u]);
    }
  } else {
    for (var p = 0u; p < sizes.d_k; p++) {
      sum += query[(query_at + p) / 4u][(query_at + p) % 4u] * key[(key_at + p) / 4u][(key_at + p) % 4u];
    }
  }
  return sum;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let first_query = group.x * QUERIES;
  let batch = group.y / sizes.heads;
  let head = group.y % sizes.heads;
  let lane = thread % LANES;
  let own = thread / LANES;
  // Beyond the edge a query is the last one again, and not written.
  let i = min(first_query + own, sizes.n_q - 1u);
  let query_at = batch * sizes.query_batch + head * sizes.query_head + i * sizes.query_row;
  let key_start = batch * sizes.key_batch + head / sizes.group * sizes.key_head;
  let value_start = batch * sizes.value_batch + head / sizes.group * sizes.value_head;
  let row = mask_row(sizes.scoring, batch, head, i, sizes.n_q);

  // Keys that all of these queries do not see, and that count nothing, are not met.
  var start = 0u;
  var end = sizes.n_k;
  if (sizes.scoring.mask_kind == RUNS && sizes.scoring.fill_is_infinite == 1u) {
    start = sizes.n_k;
    end = 0u;
    for (var other = first_query; other < min(first_query + QUERIES, sizes.n_q); other++) {
      let run = 2u * mask_row(sizes.scoring, batch, head, other, sizes.n_q);
      if (mask[run] < mask[run + 1u]) {
        start = min(start, mask[run]);
        end = max(end, mask[run + 1u]);
      }
    }
  }

  for (var c = lane; c < D_V; c += LANES) {
    sums[own * D_V + c] = 0.0;
  }
  var largest = HIDDEN;
  var total = 0.0;
  for (var block = start; block < end; block += KEYS) {
    // 1. The scores.
    for (var k = lane; k < KEYS; k += LANES) {
      let j = block + k;
      var score = HIDDEN;
      if (j < end) {
        score = score_of(dot_of(query_at, key_start + j * sizes.key_row), sizes.scoring, row, j, sizes.n_q, sizes.n_k);
      }
      shares[own * KEYS + k] = score;
    }
    workgroupBarrier();
    // 2. The largest so far; what is summed already shrinks to it.
    var now_largest = largest;
    for (var k = 0u; k < KEYS; k++) {
      now_largest = max(now_largest, shares[own * KEYS + k]);
    }
    workgroupBarrier();
    let shrink = select(power(largest - now_largest), 0.0, largest == HIDDEN);
    largest = now_largest;
    for (var k = lane; k < KEYS; k += LANES) {
      let score = shares[own * KEYS + k];
      shares[own * KEYS + k] = select(power(score - largest), 0.0, score == HIDDEN);
    }
    workgroupBarrier();
    // 3. The shares mix the values.
    total *= shrink;
    for (var k = 0u; k < KEYS; k++) {
      total += shares[own * KEYS + k];
    }
    for (var c = lane; c < D_V; c += LANES) {
      var sum = sums[own * D_V + c] * shrink;
      for (var k = 0u; k < min(KEYS, end - block); k++) {
        sum += shares[own * KEYS + k] * value[value_start + (block + k) * sizes.value_row + c];
      }
      sums[own * D_V + c] = sum;
    }
    workgroupBarrier();
  }

  if (first_query + own >= sizes.n_q) {
    return;
  }
  let at = batch * sizes.context_batch + head * sizes.context_head + i * sizes.context_row;
  for (var c = lane; c < D_V; c += LANES) {
    // A query that sees nothing gets zeros.
    var mixed = 0.0;
    if (total > 0.0) {
      mixed = sums[own * D_V + c] / total;
    }
    if (sizes.has_factors == 1u) {
      mixed *= factors[head];
    }
    context[at + c] = mixed;
  }
}
