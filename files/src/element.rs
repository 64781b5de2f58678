//! The number types of files, each read as float32.

/// A number type. Complex, quantised and eight-bit floating-point numbers are not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

/// How numbers lie in memory.
#[derive(Clone, Copy)]
pub(crate) struct Layout<'a> {
    pub element: Element,
    pub big_endian: bool,
    pub shape: &'a [u64],
}

/// The most axes that NumPy and PyTorch know.
pub(crate) const MAX_AXES: usize = 64;

/// How many numbers a shape has; None where that overflows.
pub(crate) fn count(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1u64, |count, &axis| count.checked_mul(axis))
}

impl Element {
    pub fn size(self) -> u64 {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    fn number(self, bytes: &[u8], big_endian: bool) -> f32 {
        let join = |bits: u64, &byte: &u8| bits << 8 | u64::from(byte);
        let bits = if big_endian { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) };
        match self {
            Self::Bool => f32::from(bits != 0),
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => bits as f32,
            Self::I8 => f32::from(bits as i8),
            Self::I16 => f32::from(bits as i16),
            Self::I32 => bits as i32 as f32,
            Self::I64 => bits as i64 as f32,
            Self::F16 => half(bits as u16),
            Self::Bf16 => f32::from_bits((bits as u32) << 16),
            Self::F32 => f32::from_bits(bits as u32),
            Self::F64 => f64::from_bits(bits) as f32,
        }
    }
}

impl Layout<'_> {
    /// Numbers that lie row-major and without gaps.
    pub fn read(&self, bytes: &[u8], out: &mut Vec<f32>) {
        let Self { element, big_endian, .. } = *self;
        if element == Element::F32 && !big_endian {
            out.extend(bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)));
        } else {
            out.extend(bytes.chunks_exact(element.size() as usize).map(|bytes| element.number(bytes, big_endian)));
        }
    }

    /// Numbers of a view: a step along an axis is a stride. All of them lie within the bytes.
    pub fn read_strided(&self, bytes: &[u8], offset: u64, strides: &[u64], out: &mut Vec<f32>) {
        let size = self.element.size();
        let count = count(self.shape).unwrap_or(0);
        if self.is_row_major(strides) {
            let (start, end) = (offset * size, (offset + count) * size);
            return self.read(&bytes[start as usize..end as usize], out);
        }
        let mut index = vec![0; self.shape.len()];
        let mut at = offset;
        for _ in 0..count {
            out.push(self.element.number(&bytes[(at * size) as usize..][..size as usize], self.big_endian));
            for (axis, (&length, &stride)) in self.shape.iter().zip(strides).enumerate().rev() {
                // An axis of one number never steps; its stride may be anything.
                if length == 1 {
                    continue;
                }
                index[axis] += 1;
                at += stride;
                if index[axis] < length {
                    break;
                }
                at -= index[axis] * stride;
                index[axis] = 0;
            }
        }
    }

    fn is_row_major(&self, strides: &[u64]) -> bool {
        let mut inner = 1;
        self.shape.iter().zip(strides).rev().all(|(&length, &stride)| {
            let fits = length == 1 || stride == inner;
            inner *= length;
            fits
        })
    }
}

/// Appends numbers as little-endian float32.
pub(crate) fn write(numbers: &[f32], bytes: &mut Vec<u8>) {
    bytes.reserve(4 * numbers.len());
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
}

/// binary16 as float32, exactly. Source: IEEE 754-2019, section 3.4.
fn half(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff) << 13;
    let special = 0x7c00 << 13;
    if magnitude >= special {
        return f32::from_bits(sign | 0x7f80_0000 | (magnitude - special));
    }
    // The exponents' biases differ by 112; the product is right for subnormal numbers too.
    let power = f32::from_bits((112 + 127) << 23);
    f32::from_bits(sign | (f32::from_bits(magnitude) * power).to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_is_its_definition() {
        for bits in 0..=u16::MAX {
            let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
            let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
            let expected = match exponent {
                0 => sign * fraction / 1024.0 * 2f64.powi(-14),
                31 if fraction == 0.0 => sign * f64::INFINITY,
                31 => f64::NAN,
                _ => sign * (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
            } as f32;
            let ours = half(bits);
            assert!(ours.to_bits() == expected.to_bits() || ours.is_nan() && expected.is_nan(), "{bits:#x}");
        }
    }

    #[test]
    fn both_byte_orders_and_signs() {
        assert_eq!(Element::I16.number(&[0xfe, 0xff], false), -2.0);
        assert_eq!(Element::I16.number(&[0xff, 0xfe], true), -2.0);
        assert_eq!(Element::U16.number(&[0xfe, 0xff], false), 65534.0);
        assert_eq!(Element::F64.number(&1.5f64.to_be_bytes(), true), 1.5);
        assert_eq!(Element::Bf16.number(&[0xc0, 0x3f], false), 1.5);
        assert_eq!(Element::I64.number(&(-3i64).to_le_bytes(), false), -3.0);
    }
}
