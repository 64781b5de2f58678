// context = softmax(query · keyᵀ · scale + mask) · value, without ever holding a row of weights: a workgroup takes 16 queries of a
// head, meets 64 keys at a time, and corrects what it has summed when a larger score comes (Milakov & Gimelshein 2018). A thread
// keeps its tiles in registers: the scores of four queries and four keys, then those queries' sums in four columns and, where values
// are wider, in the four that stand 64 further.
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
// Whether every row starts at a multiple of 4 numbers and is a multiple of 4 long: of queries and keys, of values.
override ALIGNED: bool;
override VALUES_ALIGNED: bool;

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read> query: array<vec4f>;
@group(0) @binding(2) var<storage, read> key: array<vec4f>;
@group(0) @binding(3) var<storage, read> value: array<vec4f>;
@group(0) @binding(4) var<storage, read> factors: array<f32>;
@group(0) @binding(5) var<storage, read_write> context: array<f32>;

// Of four queries each.
const TILES = 4u;
const LANES = 16u;
const QUERIES = 16u;
const KEYS = 64u;
// Columns that the lanes have together, and how often that are all columns at most.
const COLUMNS = 64u;
const PARTS = 2u;

// [TILES, LANES]: the largest score of each of four queries among a lane's keys
var<workgroup> peaks: array<vec4f, TILES * LANES>;
// [TILES, KEYS]: what each of four queries gives a key
var<workgroup> shares: array<vec4f, TILES * KEYS>;

// `left` of the row are left.
fn query_four(at: u32, left: u32) -> vec4f {
  if (ALIGNED) {
    return query[at / 4u];
  }
  return select(vec4f(), four_of(query[at / 4u], query[at / 4u + 1u], at % 4u), vec4u(0u, 1u, 2u, 3u) < vec4u(left));
}

fn key_four(at: u32, left: u32) -> vec4f {
  if (ALIGNED) {
    return key[at / 4u];
  }
  return select(vec4f(), four_of(key[at / 4u], key[at / 4u + 1u], at % 4u), vec4u(0u, 1u, 2u, 3u) < vec4u(left));
}

fn value_four(at: u32) -> vec4f {
  if (VALUES_ALIGNED) {
    return value[at / 4u];
  }
  return four_of(value[at / 4u], value[at / 4u + 1u], at % 4u);
}

@compute @workgroup_size(16, 4)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) thread: vec3u) {
  let lane = thread.x;
  let tile = thread.y;
  let batch = group.y / sizes.heads;
  let head = group.y % sizes.heads;
  let next = vec4u(0u, 1u, 2u, 3u);
  // Beyond the edge a query is the last one again, and not written.
  let first_query = group.x * QUERIES;
  let queries = min(first_query + 4u * tile + next, vec4u(sizes.n_q - 1u));
  let query_at = batch * sizes.query_batch + head * sizes.query_head + queries * sizes.query_row;
  let key_start = batch * sizes.key_batch + head / sizes.group * sizes.key_head;
  let value_start = batch * sizes.value_batch + head / sizes.group * sizes.value_head;
  let rows = mask_row(sizes.scoring, batch, head, 0u, sizes.n_q) + queries;

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

  // Of matrices the columns are those of four keys, and of the sums those of four queries.
  var sums: array<mat4x4f, PARTS>;
  var largest = vec4f(HIDDEN);
  var total = vec4f();
  for (var block = start; block < end; block += KEYS) {
    // 1. A tile of scores.
    let keys = block + 4u * lane + next;
    let key_at = key_start + min(keys, vec4u(sizes.n_k - 1u)) * sizes.key_row;
    // Zero is the default, but in a loop SwiftShader gives it only the first time.
    var scores = mat4x4f();
    for (var p = 0u; p < sizes.d_k; p += 4u) {
      let left = sizes.d_k - p;
      let four_queries = mat4x4f(
        query_four(query_at[0] + p, left),
        query_four(query_at[1] + p, left),
        query_four(query_at[2] + p, left),
        query_four(query_at[3] + p, left),
      );
      let four_keys = mat4x4f(
        key_four(key_at[0] + p, left),
        key_four(key_at[1] + p, left),
        key_four(key_at[2] + p, left),
        key_four(key_at[3] + p, left),
      );
      scores += transpose(four_queries) * four_keys;
    }
    for (var k = 0u; k < 4u; k++) {
      for (var r = 0u; r < 4u; r++) {
        var score = HIDDEN;
        if (keys[k] < end) {
          score = score_of(scores[k][r], sizes.scoring, rows[r], keys[k], sizes.n_q, sizes.n_k);
        }
        scores[k][r] = score;
      }
    }
    peaks[tile * LANES + lane] = max(max(scores[0], scores[1]), max(scores[2], scores[3]));
    workgroupBarrier();
    // 2. The largest so far, to which what is summed already shrinks, and the shares.
    let before = largest;
    for (var other = 0u; other < LANES; other++) {
      largest = max(largest, peaks[tile * LANES + other]);
    }
    let shrink = select(powers(before - largest), vec4f(), before == vec4f(HIDDEN));
    for (var k = 0u; k < 4u; k++) {
      let share = select(powers(scores[k] - largest), vec4f(), scores[k] == vec4f(HIDDEN));
      shares[tile * KEYS + 4u * lane + k] = share;
    }
    workgroupBarrier();
    // 3. The shares mix the values.
    total *= shrink;
    for (var part = 0u; part < PARTS; part++) {
      for (var r = 0u; r < 4u; r++) {
        sums[part][r] *= shrink[r];
      }
    }
    for (var k = 0u; k < min(KEYS, end - block); k++) {
      let share = shares[tile * KEYS + k];
      total += share;
      for (var part = 0u; part * COLUMNS < D_V; part++) {
        let mixed = value_four(value_start + (block + k) * sizes.value_row + part * COLUMNS + 4u * lane);
        sums[part] += mat4x4f(mixed * share[0], mixed * share[1], mixed * share[2], mixed * share[3]);
      }
    }
  }

  for (var r = 0u; r < 4u; r++) {
    let i = first_query + 4u * tile + r;
    let at = batch * sizes.context_batch + head * sizes.context_head + i * sizes.context_row;
    // A query that sees nothing gets zeros.
    var factor = 0.0;
    if (total[r] > 0.0) {
      factor = 1.0 / total[r];
    }
    for (var part = 0u; part * COLUMNS < D_V; part++) {
      for (var c = 0u; c < 4u; c++) {
        let column = part * COLUMNS + 4u * lane + c;
        if (i >= sizes.n_q || column >= D_V) {
          continue;
        }
        var mixed = sums[part][r][c] * factor;
        if (sizes.has_factors == 1u) {
          mixed *= factors[head];
        }
        context[at + column] = mixed;
      }
    }
  }
}
