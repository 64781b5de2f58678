//! Numbers as text, as Rust's own formatting writes them. That of floats and of lists is made for every width, precision and base:
//! it was a twentieth of the engine's WebAssembly.

use std::cmp::Ordering;
use std::fmt::{Display, Formatter, Result};

/// Numbers in brackets, as `{:?}` writes them.
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

/// A float of any width.
#[derive(Debug, Clone, Copy)]
pub struct Float {
    is_negative: bool,
    bits: u64,
    fraction_bits: u32,
    exponent_bits: u32,
}

impl From<f32> for Float {
    fn from(number: f32) -> Self {
        let bits = number.abs().to_bits().into();
        Self { is_negative: number.is_sign_negative(), bits, fraction_bits: 23, exponent_bits: 8 }
    }
}

impl From<f64> for Float {
    fn from(number: f64) -> Self {
        let bits = number.abs().to_bits();
        Self { is_negative: number.is_sign_negative(), bits, fraction_bits: 52, exponent_bits: 11 }
    }
}

/// As `{}` writes it: the fewest digits that name it, and no exponent.
pub fn number(number: impl Into<Float>) -> String {
    written(number.into(), false)
}

/// As `{:?}` writes it: with a point or an exponent, so that code reads a float.
pub(crate) fn number_as_code(number: impl Into<Float>) -> String {
    written(number.into(), true)
}

fn written(number: Float, as_code: bool) -> String {
    let largest = ((1 << number.exponent_bits) - 1) << number.fraction_bits;
    if number.bits > largest {
        return "NaN".into();
    }
    let mut text = String::from(if number.is_negative { "-" } else { "" });
    if number.bits == largest {
        return text + "inf";
    }
    let (digits, point) = if number.bits == 0 { ("0".into(), 1) } else { shortest(number) };
    let count = digits.len() as i32;
    if as_code && !(-3..=16).contains(&point) {
        let (first, rest) = digits.split_at(1);
        text.extend([first, if rest.is_empty() { "" } else { "." }, rest, "e", &(point - 1).to_string()]);
        return text;
    }
    for at in point.min(1) - 1..point.max(count) {
        if at == point {
            text.push('.');
        }
        text.push(digits.as_bytes().get(at as usize).map_or('0', |&digit| char::from(digit)));
    }
    text + if as_code && point >= count { ".0" } else { "" }
}

/// The fewest digits that lie nearer to the number than to its neighbours, and of these the nearest, behind a point and so many places
/// before it (Steele and White 1990, "How to Print Floating-Point Numbers Accurately").
fn shortest(Float { bits, fraction_bits, exponent_bits, .. }: Float) -> (String, i32) {
    let (fraction, exponent) = (bits & ((1 << fraction_bits) - 1), (bits >> fraction_bits) as i32);
    let mantissa = if exponent == 0 { fraction } else { fraction | 1 << fraction_bits };
    // The neighbour below a power of two is half as far as the one above.
    let is_power = fraction == 0 && exponent > 0;
    let shift = exponent.max(1) - (1 << (exponent_bits - 1)) + 1 - fraction_bits as i32 - 2;
    let scaled = |number: u64| Big::new(number, shift.max(0) as u32);
    let (mut rest, mut below) = (scaled(mantissa * 4), scaled(if is_power { 1 } else { 2 }));
    let (mut above, mut one) = (scaled(2), Big::new(1, (-shift).max(0) as u32));
    let is_even = exponent == 0 || mantissa.is_multiple_of(2);
    // Whether the one lies within what the other names.
    let reaches = |one: &Big, other: &Big| if is_even { one <= other } else { one < other };

    let mut point = 0;
    while reaches(&one, &rest.plus(&above)) {
        one.multiply(10);
        point += 1;
    }
    let tenfold = |numbers: [&mut Big; 3]| numbers.map(|number| number.multiply(10));
    loop {
        tenfold([&mut rest, &mut below, &mut above]);
        if reaches(&one, &rest.plus(&above)) {
            break;
        }
        point -= 1;
    }

    let mut digits = Vec::new();
    loop {
        let mut digit = b'0';
        while rest >= one {
            rest.subtract(&one);
            digit += 1;
        }
        digits.push(digit);
        let (down, up) = (reaches(&rest, &below), reaches(&one, &rest.plus(&above)));
        if !down && !up {
            tenfold([&mut rest, &mut below, &mut above]);
            continue;
        }
        if up && (!down || rest.plus(&rest) >= one) {
            let nines = digits.iter().rev().take_while(|&&digit| digit == b'9').count();
            digits.truncate(digits.len() - nines);
            match digits.last_mut() {
                Some(last) => *last += 1,
                None => {
                    digits.push(b'1');
                    point += 1;
                }
            }
        }
        return (digits.into_iter().map(char::from).collect(), point);
    }
}

/// A whole number of any size: its words, the lowest first, no zeros behind them.
#[derive(PartialEq, Eq)]
struct Big(Vec<u32>);

impl Big {
    /// number · 2^shift
    fn new(number: u64, shift: u32) -> Self {
        let mut words = vec![0; shift as usize / 32];
        let number = u128::from(number) << (shift % 32);
        words.extend([number, number >> 32, number >> 64].map(|part| part as u32));
        Self(words).trimmed()
    }

    fn trimmed(mut self) -> Self {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    fn multiply(&mut self, factor: u32) {
        let mut carry = 0;
        for word in &mut self.0 {
            carry += u64::from(*word) * u64::from(factor);
            *word = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    fn plus(&self, other: &Self) -> Self {
        let mut carry = 0;
        let word = |big: &Self, at: usize| big.0.get(at).map_or(0, |&word| u64::from(word));
        let words = (0..=self.0.len().max(other.0.len())).map(|at| {
            carry += word(self, at) + word(other, at);
            let sum = carry as u32;
            carry >>= 32;
            sum
        });
        Self(words.collect()).trimmed()
    }

    /// Less another that is no larger.
    fn subtract(&mut self, other: &Self) {
        let mut borrowed = false;
        for (at, word) in self.0.iter_mut().enumerate() {
            let (less, first) = word.overflowing_sub(other.0.get(at).copied().unwrap_or(0));
            let (less, second) = less.overflowing_sub(borrowed.into());
            (*word, borrowed) = (less, first || second);
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
}

impl Ord for Big {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

impl PartialOrd for Big {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_wide(bits: u64) {
        let float = f64::from_bits(bits);
        assert_eq!(number(float), float.to_string());
        assert_eq!(number_as_code(float), format!("{float:?}"));
    }

    fn assert_narrow(bits: u32) {
        let float = f32::from_bits(bits);
        assert_eq!(number(float), float.to_string());
        assert_eq!(number_as_code(float), format!("{float:?}"));
    }

    proptest! {
        #[test]
        fn any_float_is_written_as_rust_writes_it(wide in any::<u64>(), narrow in any::<u32>()) {
            assert_wide(wide);
            assert_narrow(narrow);
        }

        #[test]
        fn short_numbers_too(thousandths in -10_000_000i32..10_000_000) {
            assert_wide((f64::from(thousandths) / 1000.0).to_bits());
            assert_narrow((thousandths as f32 / 1000.0).to_bits());
        }
    }

    #[test]
    fn powers_and_ends_of_the_range_are_written_as_rust_writes_them() {
        for exponent in 0..=2047u64 {
            for near in [0, 1, (1 << 52) - 1] {
                assert_wide(exponent << 52 | near);
            }
        }
        for exponent in 0..=255u32 {
            for near in [0, 1, (1 << 23) - 1] {
                assert_narrow(exponent << 23 | near);
                assert_narrow(1 << 31 | exponent << 23 | near);
            }
        }
        for power in -30..30 {
            assert_wide(10f64.powi(power).to_bits());
            assert_narrow(10f32.powi(power).to_bits());
        }
    }

    #[test]
    fn lists_are_written_as_rust_writes_them() {
        for list in [vec![], vec![1], vec![2, 30, 4]] {
            assert_eq!(Listed(&list).to_string(), format!("{list:?}"));
        }
    }
}
