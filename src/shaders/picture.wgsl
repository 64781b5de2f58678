// A region of a matrix as colours, a pixel for a block of cells: that of the cell with the largest magnitude, NaN above all; where
// all cells are left out it is transparent. The same picture as js/views/peaks.ts and raster.ts make of numbers at hand.

struct Region {
  top: u32,
  left: u32,
  // The side of a block, a power of two.
  block: u32,
  // 1 where a number counts as its share of the row's largest.
  by_row: u32,
}

const STEPS = 256u;

@group(0) @binding(3) var<uniform> region: Region;
// What each row's numbers are multiplied by.
@group(0) @binding(4) var<storage, read> factors: array<f32>;
// From which number on each step of the palette but the first is reached, as `ordered` gives it; then the steps' colours, and those
// of NaN, infinity and -infinity.
@group(0) @binding(5) var<storage, read> look: array<u32>;

@vertex
fn corner(@builtin(vertex_index) i: u32) -> @builtin(position) vec4f {
  return vec4f(f32(i & 1u) * 4.0 - 1.0, f32(i >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}

@fragment
fn paint(@builtin(position) pixel: vec4f) -> @location(0) vec4f {
  let top = (region.top + u32(pixel.y)) * region.block;
  let left = (region.left + u32(pixel.x)) * region.block;
  // Blocks of more than 4 x 4 are met as a pyramid is built of these, two by two: of equal magnitudes the first one counts.
  let side = min(region.block, 4u);
  let across = region.block / side;
  var peak = 0u;
  var is_covered = true;
  for (var part = 0u; part < across * across; part++) {
    let first = vec2u(top + side * every_other(part >> 1u), left + side * every_other(part));
    let last = min(first + side, vec2u(matrix.rows, matrix.columns));
    for (var row = first.x; row < last.x; row++) {
      for (var column = first.y; column < last.y; column++) {
        let bits = shown(bits_at(row, column), row);
        let size = bits & MAGNITUDE;
        let is_nan = size > INFINITE;
        let is_larger = is_covered || size > (peak & MAGNITUDE);
        if (is_larger && (is_nan || !is_left_out(row, column))) {
          peak = bits;
          is_covered = false;
        }
      }
    }
  }
  if (is_covered) {
    return vec4f(0.0);
  }
  return unpack4x8unorm(look[STEPS - 1u + color_of(peak)]);
}

// A number's bits, or those of its share of the row's largest; what is not finite stays.
fn shown(bits: u32, row: u32) -> u32 {
  if (region.by_row == 0u || (bits & MAGNITUDE) >= INFINITE) {
    return bits;
  }
  return bitcast<u32>(bitcast<f32>(bits) * factors[row]);
}

fn color_of(bits: u32) -> u32 {
  let size = bits & MAGNITUDE;
  if (size > INFINITE) {
    return STEPS;
  }
  if (size == INFINITE) {
    return STEPS + 1u + (bits >> 31u);
  }
  // How many steps are reached.
  let number = ordered(bits);
  var step = 0u;
  for (var half = STEPS / 2u; half > 0u; half /= 2u) {
    if (look[step + half - 1u] <= number) {
      step += half;
    }
  }
  return step;
}

// As the numbers lie in order, so do these.
fn ordered(bits: u32) -> u32 {
  return select(bits | 0x80000000u, ~bits, bits >> 31u == 1u);
}

// Bits 0, 2, 4 and so on, side by side.
fn every_other(bits: u32) -> u32 {
  var x = bits & 0x55555555u;
  x = (x | (x >> 1u)) & 0x33333333u;
  x = (x | (x >> 2u)) & 0x0f0f0f0fu;
  x = (x | (x >> 4u)) & 0x00ff00ffu;
  return (x | (x >> 8u)) & 0x0000ffffu;
}
