// What there is in each row of a matrix: the bits of its largest finite magnitude, and of what is not finite 1 for NaN, 2 for
// infinity, 4 for -infinity. What is left out counts for NaN alone. A workgroup takes a row.

@group(0) @binding(3) var<storage, read_write> found: array<vec2u>;

var<workgroup> largest: atomic<u32>;
var<workgroup> outside: atomic<u32>;

@compute @workgroup_size(64)
fn survey(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) lane: u32,
) {
  let row = group.y * groups.x + group.x;
  var own = vec2u(0u);
  if (row < matrix.rows) {
    for (var column = lane; column < matrix.columns; column += 64u) {
      let bits = bits_at(row, column);
      let size = bits & MAGNITUDE;
      if (size > INFINITE) {
        own.y |= 1u;
      } else if (!is_left_out(row, column)) {
        if (size < INFINITE) {
          own.x = max(own.x, size);
        } else {
          own.y |= select(4u, 2u, bits == INFINITE);
        }
      }
    }
  }
  atomicMax(&largest, own.x);
  atomicOr(&outside, own.y);
  workgroupBarrier();
  if (lane == 0u && row < matrix.rows) {
    found[row] = vec2u(atomicLoad(&largest), atomicLoad(&outside));
  }
}
