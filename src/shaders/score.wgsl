// What becomes of a score before the softmax: scale, soft limit, bias, mask. Stands before every kernel. Hidden keys are known by
// logic, never by arithmetic: WGSL promises nothing about infinities.

struct Scoring {
  scale: f32,
  // 0 is off
  softcap: f32,
  // what a hidden score becomes, unless it is -infinity
  fill: f32,
  fill_is_infinite: u32,
  mask_kind: u32,
  // the mask's own batch and heads; 1 serves all
  mask_batches: u32,
  mask_heads: u32,
  bias_kind: u32,
}

const OPEN = 0u;
const RUNS = 1u;
const BITS = 2u;

const NO_BIAS = 0u;
const BIAS = 1u;
const DISTANCES = 2u;

// Stands for -infinity; no score is so low.
const HIDDEN = -3.4028234e38;
// -infinity as it is stored.
const INFINITE = 0xff800000u;

// RUNS: for each row its first allowed key and the one behind its last. BITS: for each row a bit for each key.
@group(0) @binding(6) var<storage, read> mask: array<u32>;
// The bits of float32. BIAS: [mask_batches, mask_heads, n_q, n_k]. DISTANCES: [mask_batches, mask_heads, n_q + n_k - 1], from the
// last query's first key to the first query's last.
@group(0) @binding(7) var<storage, read> bias_bits: array<u32>;

fn mask_row(how: Scoring, batch: u32, head: u32, query: u32, n_q: u32) -> u32 {
  return ((batch % how.mask_batches) * how.mask_heads + head % how.mask_heads) * n_q + query;
}

fn is_allowed(how: Scoring, row: u32, key: u32, n_k: u32) -> bool {
  if (how.mask_kind == RUNS) {
    return key >= mask[2u * row] && key < mask[2u * row + 1u];
  }
  let word = mask[row * ((n_k + 31u) / 32u) + key / 32u];
  return ((word >> (key % 32u)) & 1u) == 1u;
}

// `row` is the mask's.
fn bias_at(how: Scoring, row: u32, key: u32, n_q: u32, n_k: u32) -> u32 {
  if (how.bias_kind == DISTANCES) {
    return bias_bits[row / n_q * (n_q + n_k - 1u) + n_q - 1u - row % n_q + key];
  }
  return bias_bits[row * n_k + key];
}

fn score_of(dot: f32, how: Scoring, row: u32, key: u32, n_q: u32, n_k: u32) -> f32 {
  var score = dot * how.scale;
  if (how.softcap > 0.0) {
    score = how.softcap * tanh_of(score / how.softcap);
  }
  if (how.mask_kind == OPEN) {
    return score;
  }
  if (!is_allowed(how, row, key, n_k)) {
    return select(how.fill, HIDDEN, how.fill_is_infinite == 1u);
  }
  if (how.bias_kind != NO_BIAS) {
    let bits = bias_at(how, row, key, n_q, n_k);
    if (bits == INFINITE) {
      return HIDDEN;
    }
    score += bitcast<f32>(bits);
  }
  return score;
}
