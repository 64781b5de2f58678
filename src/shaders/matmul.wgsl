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
  let next = vec4u(0u, 1u, 2u, 3u);
  let a_rows = a_start + min(row + next, vec4u(sizes.m - 1u)) * sizes.a_row;
  let b_rows = b_start + min(column + next, vec4u(sizes.n - 1u)) * sizes.b_row;
  // Columns of these matrices are rows of the tiles.
  var sums: mat4x4f;
  for (var p = 0u; p < sizes.k; p += 4u) {
    let is_inside = p + next < vec4u(sizes.k);
    let a_four = mat4x4f(
      select(vec4f(), a_at(a_rows[0] + p), is_inside),
      select(vec4f(), a_at(a_rows[1] + p), is_inside),
      select(vec4f(), a_at(a_rows[2] + p), is_inside),
      select(vec4f(), a_at(a_rows[3] + p), is_inside),
    );
    if (TRANSPOSED) {
      let b_four = mat4x4f(
        select(vec4f(), b_at(b_rows[0] + p), is_inside),
        select(vec4f(), b_at(b_rows[1] + p), is_inside),
        select(vec4f(), b_at(b_rows[2] + p), is_inside),
        select(vec4f(), b_at(b_rows[3] + p), is_inside),
      );
      sums += transpose(b_four) * a_four;
    } else {
      let rows = b_start + column + min(p + next, vec4u(sizes.k - 1u)) * sizes.b_row;
      sums += mat4x4f(b_at(rows[0]), b_at(rows[1]), b_at(rows[2]), b_at(rows[3])) * a_four;
    }
  }

  for (var r = 0u; r < 4u; r++) {
    for (var c = 0u; c < 4u; c++) {
      if (row + r >= sizes.m || column + c >= sizes.n) {
        continue;
      }
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
