//! safetensors: the length of a JSON header, the header, the numbers.
//! Source: <https://huggingface.co/docs/safetensors/index#format>

use std::fmt::Display;

use attnscope::Tensor;

use crate::element::{self, Element, Layout, count};
use crate::json::quote;
use crate::scan::{Quoted, Scanner};
use crate::source::{Budget, Source};
use crate::{Named, Result, tensor};

const LENGTH_BYTES: usize = 8;

const TYPES: [(&str, Element); 13] = [
    ("BOOL", Element::Bool),
    ("U8", Element::U8),
    ("I8", Element::I8),
    ("U16", Element::U16),
    ("I16", Element::I16),
    ("F16", Element::F16),
    ("BF16", Element::Bf16),
    ("U32", Element::U32),
    ("I32", Element::I32),
    ("F32", Element::F32),
    ("U64", Element::U64),
    ("I64", Element::I64),
    ("F64", Element::F64),
];

/// What the header says of a tensor, and where it says it.
struct Entry {
    name: String,
    at: usize,
    element: Element,
    shape: Vec<u64>,
    start: u64,
    end: u64,
}

/// The name of texts by name, which nobody here needs.
pub(crate) const METADATA: &str = "__metadata__";

pub(crate) fn read(source: Source<'_>, budget: &mut Budget) -> Result<Vec<Named>> {
    let length = u64::from_le_bytes(*source.take(0, 8, "the header's length")?.first_chunk().unwrap_or(&[0; 8]));
    let there = (source.bytes.len() - LENGTH_BYTES) as u64;
    if length > there {
        return Err(source.bad(
            0,
            &format_args!("a header of {length} bytes"),
            &format_args!("at most the {there} that follow"),
        ));
    }
    let header = source.part(LENGTH_BYTES as u64, length, "the header")?;
    let data_at = LENGTH_BYTES as u64 + length;
    let data = source.take(data_at, there - length, "the data")?;
    let entries = entries(&mut Scanner::of_header(header)?)?;

    let bad = |entry: &Entry, found: &dyn Display, expected: &dyn Display| {
        Err(source.bad((LENGTH_BYTES + entry.at) as u64, &format_args!("{}: {found}", Quoted(&entry.name)), expected))
    };
    let mut in_order: Vec<&Entry> = entries.iter().collect();
    in_order.sort_unstable_by_key(|entry| (entry.start, entry.end));
    let mut covered = 0;
    for entry in in_order {
        let Entry { start, end, .. } = *entry;
        if end > data.len() as u64 || start > end {
            return bad(
                entry,
                &format_args!("data_offsets [{start}, {end}]"),
                &format_args!("a range within {} bytes", data.len()),
            );
        }
        let size = count(&entry.shape).and_then(|count| count.checked_mul(entry.element.size()));
        if size != Some(end - start) {
            let expected = size.map_or("a shape that fits in memory".into(), |size| format!("{size}"));
            return bad(entry, &format_args!("{} bytes for shape {:?}", end - start, entry.shape), &expected);
        }
        if start != covered {
            return bad(
                entry,
                &format_args!("data that starts at {start}"),
                &format_args!("no gap and no overlap: {covered}"),
            );
        }
        covered = end;
    }
    if covered != data.len() as u64 {
        let left = data.len() as u64 - covered;
        return Err(source.bad(data_at + covered, &format_args!("{left} bytes of no tensor"), &"the end"));
    }

    let mut tensors = Vec::new();
    for Entry { name, element, shape, start, end, .. } in entries {
        let mut numbers = budget.numbers((end - start) / element.size())?;
        let layout = Layout { element, big_endian: false, shape: &shape };
        layout.read(&data[start as usize..end as usize], &mut numbers);
        tensors.extend(tensor(numbers, &shape).map(|tensor| (name, tensor)));
    }
    Ok(tensors)
}

fn entries(header: &mut Scanner<'_>) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    header.object(&mut |header, name, at| {
        if name == METADATA {
            return header.object(&mut |header, _, _| header.string().map(drop));
        }
        entries.push(entry(header, name, at)?);
        Ok(())
    })?;
    header.end()?;
    Ok(entries)
}

fn entry(header: &mut Scanner<'_>, name: String, at: usize) -> Result<Entry> {
    let (mut element, mut shape, mut range) = (None, None, None);
    header.object(&mut |header, field, field_at| {
        header.peek();
        let value_at = header.at;
        match &field[..] {
            "dtype" => {
                let found = header.string()?;
                let known = TYPES.iter().find(|(name, _)| *name == found);
                let (_, known) = known.ok_or_else(|| {
                    header.bad(
                        value_at,
                        &format_args!("dtype {}", Quoted(&found)),
                        &"BOOL, U8 to U64, I8 to I64, F16, BF16, F32 or F64",
                    )
                })?;
                element = Some(*known);
            }
            "shape" => shape = Some(header.wholes(b'[', b']')?),
            "data_offsets" => {
                let numbers = header.wholes(b'[', b']')?;
                let &[start, end] = &numbers[..] else {
                    return Err(header.bad(value_at, &format_args!("{} data_offsets", numbers.len()), &"two"));
                };
                range = Some((start, end));
            }
            _ => return Err(header.bad(field_at, &Quoted(&field), &"dtype, shape or data_offsets")),
        }
        Ok(())
    })?;
    match (element, shape, range) {
        (Some(element), Some(shape), Some((start, end))) => Ok(Entry { name, at, element, shape, start, end }),
        _ => Err(header.bad(at, &Quoted(&name), &"dtype, shape and data_offsets")),
    }
}

pub(crate) fn write(tensors: &[Named]) -> Vec<u8> {
    let mut header = String::from("{");
    let mut end = 0;
    for (name, Tensor { shape, data }) in tensors {
        let start = end;
        end += 4 * data.len();
        let comma = if start == 0 { "" } else { "," };
        let name = quote(name);
        header += &format!("{comma}{name}:{{\"dtype\":\"F32\",\"shape\":{shape:?},\"data_offsets\":[{start},{end}]}}");
    }
    header.push('}');
    // The numbers start at a multiple of eight.
    while header.len() % LENGTH_BYTES != 0 {
        header.push(' ');
    }
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    for (_, tensor) in tensors {
        element::write(&tensor.data, &mut bytes);
    }
    bytes
}
