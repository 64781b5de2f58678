// out[z] = a[z] · b[z], plus a bias for each column, times a factor for each head: the projections, the scores and the context.
// A thread keeps a tile of 4 x 4 sums in registers and reads four numbers at a time; z counts batch entries and their heads.
// a: [m, k]. b: [n, k] where it is TRANSPOSED (weights, keys), else [k, n] (values). out: [m, n]. Rows lie a stride apart.

struct Sizes {
  m: u32,
  n: u32,
  k: u32,
  heads: u32,
  // heads of a that share one of b
  group: u32,
  a_batch: u32,
  a_head: u32,
  a_row: u32,
  b_batch: u32,
  b_head: u32,
  b_row: u32,
  out_batch: u32,
  out_head: u32,
  out_row: u32,
  has_bias: u32,
  has_factors: u32,
}

override TRANSPOSED: bool;
// Whether every row starts at a multiple of 4 numbers.
override A_ALIGNED: bool;
override B_ALIGNED: bool;

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read> a: array<vec4f>;
@group(0) @binding(2) var<storage, read> b: array<vec4f>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read> factors: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;

// Four of eight neighbours, from the `first` on.
fn four_of(left: vec4f, right: vec4f, first: u32) -> vec4f {
  switch (first) {
    case 0u: { return left; }
    case 1u: { return vec4f(left.yzw, right.x); }
    case 2u: { return vec4f(left.zw, right.xy); }
    default: { return vec4f(left.w, right.xyz); }
  }
}

fn a_at(at: u32) -> vec4f {
  if (A_ALIGNED) {
    return a[at / 4u];
  }
  return four_of(a[at / 4u], a[at / 4u + 1u], at % 4u);
}

fn b_at(at: u32) -> vec4f {
  if (B_ALIGNED) {
    return b[at / 4u];
  }
  return four_of(b[at / 4u], b[at / 4u + 1u], at % 4u);
}

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let row = 4u * id.y;
  let column = 4u * id.x;
  if (row >= sizes.m || column >= sizes.n) {
    return;
  }
  let batch = id.z / sizes.heads;
  let head = id.z % sizes.heads;
  let a_start = batch * sizes.a_batch + head * sizes.a_head;
  let b_start = batch * sizes.b_batch + head / sizes.group * sizes.b_head;

  // Beyond the edge a row or column is the last one again, and not written.
  var a_rows: array<u32, 4>;
  var b_rows: array<u32, 4>;
  for (var t = 0u; t < 4u; t++) {
    a_rows[t] = a_start + min(row + t, sizes.m - 1u) * sizes.a_row;
    b_rows[t] = b_start + min(column + t, sizes.n - 1u) * sizes.b_row;
  }
  var sums: array<vec4f, 4>;
  for (var p = 0u; p < sizes.k; p += 4u) {
    let depth = vec4u(p, p + 1u, p + 2u, p + 3u);
    let is_inside = depth < vec4u(sizes.k);
    var b_four: mat4x4f;
    for (var t = 0u; t < 4u; t++) {
      if (TRANSPOSED) {
        b_four[t] = select(vec4f(), b_at(b_rows[t] + p), is_inside);
      } else {
        b_four[t] = b_at(b_start + min(depth[t], sizes.k - 1u) * sizes.b_row + column);
      }
    }
    for (var t = 0u; t < 4u; t++) {
      let a_four = select(vec4f(), a_at(a_rows[t] + p), is_inside);
      if (TRANSPOSED) {
        sums[t] += a_four * b_four;
      } else {
        sums[t] += b_four * a_four;
      }
    }
  }

  for (var r = 0u; r < min(4u, sizes.m - row); r++) {
    for (var c = 0u; c < min(4u, sizes.n - column); c++) {
      var sum = sums[r][c];
      if (sizes.has_bias == 1u) {
        sum += bias[column + c];
      }
      if (sizes.has_factors == 1u) {
        sum *= factors[head];
      }
      out[batch * sizes.out_batch + head * sizes.out_head + (row + r) * sizes.out_row + column + c] = sum;
    }
  }
}
