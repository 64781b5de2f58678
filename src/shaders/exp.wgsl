// The exponential and what is built on it, in place of WGSL's own, whose errors may grow with the number. Stands before every
// kernel. Arguments are finite; what would overflow or underflow is cut off where the result no longer counts.

// e^x within 2 units in the last place, 0 below -87: x = n ln 2 + r with |r| <= ln 2 / 2, and e^x = 2^n e^r (Cody & Waite 1980);
// the polynomial for e^r is that of the Cephes library.
fn power(x: f32) -> f32 {
  let n = round(clamp(x, -88.0, 88.0) * 1.44269504);
  let r = (clamp(x, -88.0, 88.0) - n * 0.693359375) + n * 2.12194440e-4;
  var tail = 1.9875691e-4;
  tail = tail * r + 1.3981999e-3;
  tail = tail * r + 8.333452e-3;
  tail = tail * r + 4.1665796e-2;
  tail = tail * r + 1.6666665e-1;
  tail = tail * r + 0.5;
  let of_r = tail * (r * r) + r + 1.0;
  return select(of_r * bitcast<f32>(u32(i32(n) + 127) << 23), 0.0, x < -87.0);
}

fn powers(x: vec4f) -> vec4f {
  return vec4f(power(x[0]), power(x[1]), power(x[2]), power(x[3]));
}

// Small numbers by the Cephes library's polynomial, where 1 - 2 / (e^2x + 1) would lose digits.
fn tanh_of(x: f32) -> f32 {
  let size = abs(x);
  if (size < 0.625) {
    let square = x * x;
    var sum = -5.70498872745e-3;
    sum = sum * square + 2.06390887954e-2;
    sum = sum * square - 5.37397155531e-2;
    sum = sum * square + 1.33314422036e-1;
    sum = sum * square - 3.33332819422e-1;
    return sum * square * x + x;
  }
  return sign(x) * (1.0 - 2.0 / (power(2.0 * min(size, 20.0)) + 1.0));
}

// 1 - erf(x) for x >= 0, relative error below 1.2e-7 (Numerical Recipes, section 6.2).
fn erfc_of(x: f32) -> f32 {
  let z = min(x, 10.0);
  let t = 1.0 / (1.0 + 0.5 * z);
  var sum = 0.17087277;
  sum = sum * t - 0.82215223;
  sum = sum * t + 1.48851587;
  sum = sum * t - 1.13520398;
  sum = sum * t + 0.27886807;
  sum = sum * t - 0.18628806;
  sum = sum * t + 0.09678418;
  sum = sum * t + 0.37409196;
  sum = sum * t + 1.00002368;
  return t * power(-z * z - 1.26551223 + sum * t);
}
