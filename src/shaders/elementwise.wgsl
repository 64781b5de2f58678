// out = an operation on each number of `left`, some with one of `right`, which begins again after a `period`: residuals, gates,
// scales, added positions, dropout, and the non-linearities. A thread takes a number.

struct Sizes {
  numbers: u32,
  period: u32,
  factor: f32,
}

const SUM = 0u;
const PRODUCT = 1u;
const SCALED = 2u;
const SOFTCAP = 3u;
const RELU = 4u;
const GELU = 5u;
const GELU_TANH = 6u;
const SILU = 7u;
const QUICK_GELU = 8u;

override OPERATION: u32;

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read> left: array<f32>;
@group(0) @binding(2) var<storage, read> right: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

// x sigmoid(slope x)
fn silu(x: f32, slope: f32) -> f32 {
  return x / (1.0 + power(-slope * x));
}

// x Φ(x); on the left side from the small complement itself, which keeps its digits.
fn gelu(x: f32) -> f32 {
  let half = 0.5 * x * erfc_of(abs(x) * 0.70710678);
  return select(half, x - half, x > 0.0);
}

// 0.5 x (1 + tanh(u)) = x / (1 + exp(-2 u)) with u = sqrt(2 / π) (x + 0.044715 x³); far out the cube does not count.
fn gelu_tanh(x: f32) -> f32 {
  let near = clamp(x, -20.0, 20.0);
  return x / (1.0 + power(-1.59576912 * (near + 0.044715 * near * near * near)));
}

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
  let x = left[at];
  switch (OPERATION) {
    case SUM: { out[at] = x + right[at % sizes.period]; }
    case PRODUCT: { out[at] = x * right[at % sizes.period]; }
    case SCALED: { out[at] = x * sizes.factor; }
    case SOFTCAP: { out[at] = sizes.factor * tanh_of(x / sizes.factor); }
    case RELU: { out[at] = max(x, 0.0); }
    case GELU: { out[at] = gelu(x); }
    case GELU_TANH: { out[at] = gelu_tanh(x); }
    case SILU: { out[at] = silu(x, 1.0); }
    default: { out[at] = silu(x, 1.702); }
  }
}
