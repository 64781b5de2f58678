// A matrix somewhere among the numbers of a pass, and which of its cells are hidden. Numbers are read as their bits, which a device
// may not change as it may NaN and infinity (https://www.w3.org/TR/WGSL/#floating-point-evaluation).

struct Matrix {
  rows: u32,
  columns: u32,
  start: u32,
  row_stride: u32,
  column_stride: u32,
  // 0 where no cell is left out.
  has_hidden: u32,
  hidden_row_stride: u32,
  hidden_column_stride: u32,
}

@group(0) @binding(0) var<uniform> matrix: Matrix;
@group(0) @binding(1) var<storage, read> numbers: array<u32>;
// Four cells a word, nonzero where hidden.
@group(0) @binding(2) var<storage, read> hidden: array<u32>;

const MAGNITUDE = 0x7fffffffu;
const INFINITE = 0x7f800000u;

fn bits_at(row: u32, column: u32) -> u32 {
  return numbers[matrix.start + row * matrix.row_stride + column * matrix.column_stride];
}

fn is_left_out(row: u32, column: u32) -> bool {
  if (matrix.has_hidden == 0u) {
    return false;
  }
  let at = row * matrix.hidden_row_stride + column * matrix.hidden_column_stride;
  return extractBits(hidden[at / 4u], 8u * (at % 4u), 8u) != 0u;
}
