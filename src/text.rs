//! Lists and numbers as text.

use std::cmp::Ordering;
use std::fmt::{Display, Formatter, Result};

/// Numbers in brackets, as `{:?}` writes them, but without what makes that of any width, precision and base: 3 kB of WebAssembly.
pub(crate) struct Listed<'a, T>(pub &'a [T]);

impl<T: Display> Display for Listed<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("[")?;
        for (at, number) in self.0.iter().enumerate() {
            f.write_str(if at > 0 { ", " } else { "" })?;
            number.fmt(f)?;
        }
        f.write_str("]")
    }
}

/// A float32 or float64: `mantissa * 2^exponent`, or none of these.
#[derive(Clone, Copy)]
pub(crate) struct Float {
    value: f64,
    mantissa: u64,
    exponent: i32,
    /// Whether the next number below is half as far as the next one above.
    is_lowest: bool,
}

impl Float {
    /// Of a number's bits: so many of fraction, and the exponent of the smallest number.
    fn new(value: f64, fraction_and_exponent: u64, fraction_bits: u32, smallest: i32) -> Self {
        let hidden = 1 << fraction_bits;
        let (fraction, biased) = (fraction_and_exponent % hidden, (fraction_and_exponent / hidden) as i32);
        Self {
            value,
            mantissa: if biased > 0 { hidden + fraction } else { fraction },
            exponent: smallest + biased.max(1) - 1,
            is_lowest: fraction == 0 && biased > 1,
        }
    }
}

impl From<f32> for Float {
    fn from(x: f32) -> Self {
        Self::new(x.into(), x.abs().to_bits().into(), 23, -149)
    }
}

impl From<f64> for Float {
    fn from(x: f64) -> Self {
        Self::new(x, x.abs().to_bits(), 52, -1074)
    }
}

/// The shortest decimal that reads back as the same number, the nearest of these, as Rust's `{:?}` writes it but for the `.0`
/// of whole numbers. Rust's own code for this, which can write more, would be 12 kB of WebAssembly.
///
/// Digits are generated as in Steele and White, "How to Print Floating-Point Numbers Accurately" (1990).
pub(crate) fn number(x: impl Into<Float>) -> String {
    shortest(x.into())
}

fn shortest(x: Float) -> String {
    if x.value.is_nan() {
        return "NaN".into();
    }
    let mut text = String::from(if x.value.is_sign_negative() { "-" } else { "" });
    if x.value == 0.0 || x.value.is_infinite() {
        return text + if x.value == 0.0 { "0" } else { "inf" };
    }
    let (digits, mut point) = digits(x);
    let power = (!(-3..=16).contains(&point)).then(|| std::mem::replace(&mut point, 1) - 1);
    for place in (point - 1).min(0)..point.max(digits.len() as i32) {
        if place == point {
            text.push('.');
        }
        text.push(digits.get(place as usize).map_or('0', |&digit| digit.into()));
    }
    match power {
        Some(power) => text + "e" + &power.to_string(),
        None => text,
    }
}

/// The digits of a number above 0, and where among them its point is.
fn digits(x: Float) -> (Vec<u8>, i32) {
    // 1. The number is rest / whole; what lies less than below and above from it reads back as it.
    let [mut rest, mut whole, mut below, mut above] = [x.mantissa, 1, 1, 1].map(Natural::new);
    (0..x.exponent).for_each(|_| multiply([&mut rest, &mut below, &mut above], 2));
    (x.exponent..0).for_each(|_| whole.multiply(2));
    let halves = if x.is_lowest { 4 } else { 2 };
    rest.multiply(halves);
    whole.multiply(halves);
    above.multiply(halves / 2);
    // A number half-way reads back as the even one of its neighbours.
    let reaches = |order: Ordering| order.is_gt() || (x.mantissa.is_multiple_of(2) && order.is_eq());
    // 2. The power of ten that brings it below 1, but not below 0.1.
    let mut point = 0;
    while reaches(rest.plus(&above).cmp(&whole)) {
        whole.multiply(10);
        point += 1;
    }
    loop {
        multiply([&mut rest, &mut below, &mut above], 10);
        if reaches(rest.plus(&above).cmp(&whole)) {
            break;
        }
        point -= 1;
    }
    // 3. Digit by digit, until what is left makes no difference.
    let mut digits = Vec::new();
    loop {
        let mut digit = b'0';
        while rest.cmp(&whole).is_ge() {
            rest.subtract(&whole);
            digit += 1;
        }
        let (may_end, may_round_up) = (reaches(below.cmp(&rest)), reaches(rest.plus(&above).cmp(&whole)));
        let is_nearer_above = rest.plus(&rest).cmp(&whole).is_ge();
        digits.push(digit + u8::from(may_round_up && (is_nearer_above || !may_end)));
        if may_end || may_round_up {
            return (digits, point);
        }
        multiply([&mut rest, &mut below, &mut above], 10);
    }
}

fn multiply(naturals: [&mut Natural; 3], factor: u32) {
    naturals.into_iter().for_each(|natural| natural.multiply(factor));
}

/// A natural number as large as these become, its lowest 32 bits first.
#[derive(Clone, Copy)]
struct Natural([u32; 36]);

impl Natural {
    fn new(x: u64) -> Self {
        let mut parts = [0; 36];
        [parts[0], parts[1]] = [x as u32, (x >> 32) as u32];
        Self(parts)
    }

    fn multiply(&mut self, factor: u32) {
        let mut carry = 0;
        for part in &mut self.0 {
            carry += u64::from(*part) * u64::from(factor);
            *part = carry as u32;
            carry >>= 32;
        }
    }

    fn plus(mut self, other: &Self) -> Self {
        let mut carry = 0;
        for (part, other) in self.0.iter_mut().zip(&other.0) {
            carry += u64::from(*part) + u64::from(*other);
            *part = carry as u32;
            carry >>= 32;
        }
        self
    }

    /// Takes one that is not larger away.
    fn subtract(&mut self, other: &Self) {
        let mut borrowed = 0;
        for (part, other) in self.0.iter_mut().zip(&other.0) {
            borrowed += i64::from(*part) - i64::from(*other);
            *part = borrowed as u32;
            borrowed >>= 32;
        }
    }

    fn cmp(&self, other: &Self) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As Rust writes it, but for the `.0` of whole numbers.
    fn of_rust(x: impl std::fmt::Debug) -> String {
        let text = format!("{x:?}");
        text.strip_suffix(".0").unwrap_or(&text).into()
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_rust_writes_them(bits: u64) {
            let (single, double) = (f32::from_bits(bits as u32), f64::from_bits(bits));
            prop_assert_eq!(number(single), of_rust(single));
            prop_assert_eq!(number(double), of_rust(double));
        }
    }

    #[test]
    fn edges_of_numbers() {
        let tens = (-320..309).map(|power| format!("1e{power}").parse().expect("a number"));
        let twos = (-1074..1024).map(|power| 2f64.powi(power));
        let others = [
            0.0,
            0.1,
            0.5,
            1.0,
            4.5,
            1e9,
            5e-324,
            f64::MIN_POSITIVE,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
            9007199254740993.0,
        ];
        for x in tens.chain(twos).chain(others).flat_map(|x: f64| [x, -x]) {
            assert_eq!(number(x), of_rust(x));
            assert_eq!(number(x as f32), of_rust(x as f32));
        }
    }

    #[test]
    fn lists_are_written_as_rust_writes_them() {
        for list in [vec![], vec![1], vec![2, 30, 4]] {
            assert_eq!(Listed(&list).to_string(), format!("{list:?}"));
        }
    }
}
