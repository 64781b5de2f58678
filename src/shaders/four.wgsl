// Four neighbouring numbers at a time, wherever the first one lies in an array of fours. Stands before every kernel.

// Four of eight neighbours, from the `first` on.
fn four_of(left: vec4f, right: vec4f, first: u32) -> vec4f {
  switch (first) {
    case 0u: { return left; }
    case 1u: { return vec4f(left.yzw, right.x); }
    case 2u: { return vec4f(left.zw, right.xy); }
    default: { return vec4f(left.w, right.xyz); }
  }
}
