//! npy: a magic word, a header that is a Python dict, the numbers.
//! Source: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>

use attnscope::Tensor;

use crate::element::{self, Element, Layout, MAX_AXES, count};
use crate::scan::{Quoted, Scanner};
use crate::source::{Budget, Source};
use crate::{Result, tensor};

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

struct Header {
    element: Element,
    big_endian: bool,
    fortran_order: bool,
    shape: Vec<u64>,
}

/// None for an array that holds no numbers.
pub(crate) fn read(source: Source<'_>, budget: &mut Budget) -> Result<Option<Tensor>> {
    if source.take(0, 6, "the magic word")? != MAGIC {
        return Err(source.bad(0, &"other bytes", &"\\x93NUMPY"));
    }
    let version = source.take(6, 2, "the version")?;
    let length_bytes: u64 = match version {
        [1, 0] => 2,
        [2 | 3, 0] => 4,
        _ => return Err(source.bad(6, &format_args!("version {}.{}", version[0], version[1]), &"1.0, 2.0 or 3.0")),
    };
    let length = source.take(8, length_bytes, "the header's length")?;
    let length = length.iter().rev().fold(0, |length, &byte| length << 8 | u64::from(byte));
    let header_at = 8 + length_bytes;
    let text = source.part(header_at, length, "the header")?;
    let Header { element, big_endian, fortran_order, shape } = header(&mut Scanner::of_header(text)?)?;

    let data_at = header_at + length;
    let numbers = count(&shape).filter(|_| shape.len() <= MAX_AXES);
    let size = numbers.and_then(|count| count.checked_mul(element.size()));
    let (Some(numbers), Some(size)) = (numbers, size) else {
        return Err(source.bad(header_at, &format_args!("shape {shape:?}"), &"a shape that fits in memory"));
    };
    let data = source.take(data_at, size, &format!("numbers for shape {shape:?}"))?;
    let left = source.bytes.len() as u64 - data_at - size;
    if left > 0 {
        return Err(source.bad(data_at + size, &format_args!("{left} more bytes"), &"the end"));
    }
    let mut out = budget.numbers(numbers)?;
    let layout = Layout { element, big_endian, shape: &shape };
    if fortran_order && shape.len() > 1 {
        let step = |step: &mut u64, &axis: &u64| Some(std::mem::replace(step, *step * axis));
        let strides: Vec<u64> = shape.iter().scan(1, step).collect();
        layout.read_strided(data, 0, &strides, &mut out);
    } else {
        layout.read(data, &mut out);
    }
    Ok(tensor(out, &shape))
}

fn header(header: &mut Scanner<'_>) -> Result<Header> {
    let (mut kind, mut fortran_order, mut shape) = (None, None, None);
    header.object(&mut |header, name, at| {
        header.peek();
        match &name[..] {
            "descr" => kind = Some(descr(header)?),
            "fortran_order" => {
                let at = header.at;
                fortran_order = Some(match header.word() {
                    "True" => true,
                    "False" => false,
                    other => return Err(header.bad(at, &Quoted(other), &"True or False")),
                });
            }
            "shape" => shape = Some(header.wholes(b'(', b')')?),
            _ => return Err(header.bad(at, &Quoted(&name), &"descr, fortran_order or shape")),
        }
        Ok(())
    })?;
    header.end()?;
    match (kind, fortran_order, shape) {
        (Some((element, big_endian)), Some(fortran_order), Some(shape)) => {
            Ok(Header { element, big_endian, fortran_order, shape })
        }
        _ => Err(header.bad(0, &"a header", &"descr, fortran_order and shape")),
    }
}

/// The number type and whether it is big-endian.
fn descr(header: &mut Scanner<'_>) -> Result<(Element, bool)> {
    let at = header.at;
    let expected = "a number type: b1, i1 to i8, u1 to u8, f2, f4 or f8";
    if header.peek() == Some(b'[') {
        return Err(header.bad(at, &"a structured type", &expected));
    }
    let found = header.string()?;
    let big_endian = found.starts_with('>');
    let element = match found.trim_start_matches(['<', '>', '|', '=']) {
        "b1" => Element::Bool,
        "u1" => Element::U8,
        "u2" => Element::U16,
        "u4" => Element::U32,
        "u8" => Element::U64,
        "i1" => Element::I8,
        "i2" => Element::I16,
        "i4" => Element::I32,
        "i8" => Element::I64,
        "f2" => Element::F16,
        "f4" => Element::F32,
        "f8" => Element::F64,
        "O" => return Err(header.bad(at, &"Python objects (dtype \"O\")", &expected)),
        _ => return Err(header.bad(at, &format_args!("dtype {}", Quoted(&found)), &expected)),
    };
    Ok((element, big_endian))
}

pub(crate) fn write(tensor: &Tensor) -> Vec<u8> {
    let axes: Vec<String> = tensor.shape.iter().map(usize::to_string).collect();
    let comma = if axes.len() == 1 { "," } else { "" };
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}{comma}), }}", axes.join(", "));
    // The numbers start at a multiple of 64.
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    header += &" ".repeat(unpadded.next_multiple_of(64) - unpadded);
    header.push('\n');

    let mut bytes = MAGIC.to_vec();
    match u16::try_from(header.len()) {
        Ok(length) => {
            bytes.extend([1, 0]);
            bytes.extend(length.to_le_bytes());
        }
        Err(_) => {
            bytes.extend([2, 0]);
            bytes.extend((header.len() as u32).to_le_bytes());
        }
    }
    bytes.extend(header.bytes());
    element::write(&tensor.data, &mut bytes);
    bytes
}
