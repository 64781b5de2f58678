//! What `torch.save` writes: a zip archive since PyTorch 1.6, a row of pickles before.
//! Source: <https://docs.pytorch.org/docs/stable/notes/serialization.html> and `torch/serialization.py`

use std::borrow::Cow;
use std::fmt::Display;

use crate::element::{Layout, MAX_AXES, count};
use crate::pickle::{self, Pickle, Storage, Value, View, kind};
use crate::scan::Quoted;
use crate::source::{Budget, Source};
use crate::zip::Zip;
use crate::{BARE_NAME, Named, Names, Result, tensor};

/// What the first pickle of the older format holds.
const MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];
const PROTOCOL: i64 = 1001;
/// What the pickle in a zip archive is called, where the first member's name begins, and how long that is at most.
const PICKLE: &str = "data.pkl";
const ZIP_HEADER: usize = 30;
const LONGEST_PICKLE_NAME: usize = 512;
/// How deep tensors may lie in dicts, lists and tuples.
const MAX_DEPTH: usize = 64;
/// What a value is charged, since a small pickle can name the same ones over and over.
const BYTES_PER_VALUE: u64 = 64;

/// The bytes of the storages by their keys.
#[derive(Default)]
struct Storages<'a> {
    names: Names<'a>,
    bytes: Vec<Cow<'a, [u8]>>,
}

impl<'a> Storages<'a> {
    fn insert(&mut self, key: &'a str, bytes: Cow<'a, [u8]>) {
        self.names.insert(key, self.bytes.len());
        self.bytes.push(bytes);
    }

    fn get(&self, key: &str) -> Option<&[u8]> {
        self.names.get(key).map(|&at| &self.bytes[at][..])
    }
}

/// Whether a zip archive, whole or broken, starts with a pickle as PyTorch's do.
pub(crate) fn is_archive(bytes: &[u8]) -> bool {
    let name = bytes.get(ZIP_HEADER..).unwrap_or_default();
    name[..name.len().min(LONGEST_PICKLE_NAME)].windows(PICKLE.len()).any(|part| part == PICKLE.as_bytes())
}

/// The name of the pickle in a zip archive, behind the archive's own.
pub(crate) fn pickle_name<'z>(zip: &'z Zip<'_>) -> Option<&'z str> {
    zip.members.iter().map(|member| &member.name[..]).find(|name| name.rsplit('/').next() == Some(PICKLE))
}

pub(crate) fn read_zip(source: Source<'_>, zip: &Zip<'_>, budget: &mut Budget) -> Result<Vec<Named>> {
    let mut names = Names::new();
    for (at, member) in zip.members.iter().enumerate() {
        names.insert(&member.name, at);
    }
    let find = |name: &str| names.get(name).map(|&at| &zip.members[at]);
    let missing = |name: &str| source.bad(0, &format_args!("no {}", Quoted(name)), &"all that torch.save writes");
    let pickle_name = pickle_name(zip).ok_or_else(|| missing("data.pkl"))?;
    let folder = pickle_name.strip_suffix("data.pkl").unwrap_or_default();

    let big_endian = match find(&format!("{folder}byteorder")) {
        Some(member) => &zip.bytes(member)?[..] == b"big",
        None => false,
    };
    let member = find(pickle_name).ok_or_else(|| missing(pickle_name))?;
    let bytes = zip.bytes(member)?;
    let place = zip.source(member, &bytes);
    let pickle = pickle::read(place, 0, budget)?;

    let mut storages = Storages::default();
    for storage in &pickle.storages {
        if storages.get(storage.key).is_none() {
            let name = format!("{folder}data/{}", storage.key);
            let member = find(&name).ok_or_else(|| missing(&name))?;
            let bytes = zip.bytes(member)?;
            storages.insert(storage.key, bytes);
        }
    }
    Collector { source: place, pickle: &pickle, storages, big_endian, budget, found: vec![] }.collect()
}

/// magic, protocol, system, value, the storages' keys, and for each storage a count and its numbers
pub(crate) fn read_legacy(source: Source<'_>, budget: &mut Budget) -> Result<Vec<Named>> {
    let magic = pickle::read(source, 0, budget)?;
    if magic.root != Value::Long(&MAGIC) {
        return Err(source.bad(0, &"a pickle", &"one that torch.save wrote"));
    }
    let protocol = pickle::read(source, magic.end, budget)?;
    if protocol.root != Value::Int(PROTOCOL) {
        return Err(source.bad(magic.end, &kind(protocol.root), &"protocol 1001"));
    }
    let system = pickle::read(source, protocol.end, budget)?;
    let pickle = pickle::read(source, system.end, budget)?;
    let keys = pickle::read(source, pickle.end, budget)?;
    let Value::List(list) = keys.root else {
        return Err(source.bad(pickle.end, &kind(keys.root), &"a list of the storages' keys"));
    };

    let mut known = Names::new();
    for (at, storage) in pickle.storages.iter().enumerate() {
        known.insert(storage.key, at);
    }
    let mut storages = Storages::default();
    let mut at = keys.end;
    for &key in &keys.containers[list] {
        let Value::Text(key) = key else {
            return Err(source.bad(pickle.end, &kind(key), &"a storage's key"));
        };
        let storage = known.get(key).map(|&at| &pickle.storages[at]).ok_or_else(|| {
            source.bad(pickle.end, &format_args!("storage {}", Quoted(key)), &"a storage that a tensor names")
        })?;
        let held = *source.take(at, 8, "a storage's count")?.first_chunk().unwrap_or(&[0; 8]);
        let held = u64::from_le_bytes(held);
        if held != storage.count {
            return Err(source.bad(
                at,
                &format_args!("{held} numbers"),
                &format_args!("{} in {}", storage.count, named(storage)),
            ));
        }
        let size = size(storage, source)?;
        storages.insert(key, Cow::Borrowed(source.take(at + 8, size, &named(storage))?));
        at += 8 + size;
    }
    Collector { source, pickle: &pickle, storages, big_endian: false, budget, found: vec![] }.collect()
}

fn named(storage: &Storage<'_>) -> String {
    format!("storage {}", Quoted(storage.key))
}

fn size(storage: &Storage<'_>, source: Source<'_>) -> Result<u64> {
    let size = storage.count.checked_mul(storage.element.size());
    size.ok_or_else(|| source.bad(storage.at, &format_args!("{} numbers", storage.count), &"as many as fit in memory"))
}

/// Finds the tensors of a pickle and reads their numbers.
struct Collector<'a, 'b> {
    source: Source<'a>,
    pickle: &'b Pickle<'a>,
    storages: Storages<'b>,
    big_endian: bool,
    budget: &'b mut Budget,
    found: Vec<Named>,
}

impl Collector<'_, '_> {
    fn collect(mut self) -> Result<Vec<Named>> {
        self.visit(self.pickle.root, &mut String::new(), 0)?;
        Ok(self.found)
    }

    /// `name` is the way from the root: keys and positions between dots.
    fn visit(&mut self, value: Value<'_>, name: &mut String, depth: usize) -> Result<()> {
        self.budget.take(BYTES_PER_VALUE)?;
        if depth > MAX_DEPTH {
            let found = format!("values more than {MAX_DEPTH} deep at {}", Quoted(name));
            return Err(self.source.bad(self.pickle.start, &found, &format_args!("at most {MAX_DEPTH}")));
        }
        match value {
            Value::Tensor(tensor) => self.tensor(&self.pickle.views[tensor], name),
            Value::Tuple(items) | Value::List(items) => {
                for (i, &item) in self.pickle.containers[items].iter().enumerate() {
                    self.visit_inner(&i.to_string(), item, name, depth)?;
                }
                Ok(())
            }
            Value::Dict(items) => {
                for pair in self.pickle.containers[items].as_chunks::<2>().0 {
                    match pair[0] {
                        Value::Text(key) => self.visit_inner(key, pair[1], name, depth)?,
                        Value::Int(key) => self.visit_inner(&key.to_string(), pair[1], name, depth)?,
                        other => {
                            let found = format!("a key that is {}", kind(other));
                            return Err(self.source.bad(self.pickle.start, &found, &"keys that are a str or an int"));
                        }
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn visit_inner(&mut self, key: &str, value: Value<'_>, name: &mut String, depth: usize) -> Result<()> {
        let outer = name.len();
        if depth > 0 {
            name.push('.');
        }
        name.push_str(key);
        self.visit(value, name, depth + 1)?;
        name.truncate(outer);
        Ok(())
    }

    fn tensor(&mut self, view: &View, name: &str) -> Result<()> {
        let View { at, storage, offset, shape, strides } = view;
        let name = if name.is_empty() { BARE_NAME } else { name };
        let storage = &self.pickle.storages[*storage];
        let bad = |found: &dyn Display, expected: &dyn Display| {
            Err(self.source.bad(*at, &format_args!("{}: {found}", Quoted(name)), expected))
        };
        let numbers = count(shape).filter(|_| shape.len() == strides.len() && shape.len() <= MAX_AXES);
        let Some(numbers) = numbers else {
            let found = format!("shape of {} axes with {} strides", shape.len(), strides.len());
            return bad(
                &found,
                &format_args!("a stride for each of at most {MAX_AXES} axes, and a shape that fits in memory"),
            );
        };
        if numbers == 0 {
            return Ok(());
        }
        let reach = shape
            .iter()
            .zip(strides)
            .try_fold(*offset, |last, (axis, stride)| last.checked_add((axis - 1).checked_mul(*stride)?));
        if reach.is_none_or(|last| last >= storage.count) {
            let found = format!("offset {offset}, shape {shape:?}, strides {strides:?}");
            return bad(&found, &format_args!("a view within the {} numbers of {}", storage.count, named(storage)));
        }
        let Some(bytes) = self.storages.get(storage.key) else {
            return bad(&format_args!("no {}", named(storage)), &"every storage that a tensor names");
        };
        // Two may have one key and claim different sizes.
        let size = size(storage, self.source)?;
        if size > bytes.len() as u64 {
            let found = format_args!("{} bytes", bytes.len());
            return Err(self.source.bad(storage.at, &found, &format_args!("{size} bytes of {}", named(storage))));
        }
        self.budget.take(name.len() as u64)?;
        let mut out = self.budget.numbers(numbers)?;
        let layout = Layout { element: storage.element, big_endian: self.big_endian, shape };
        layout.read_strided(bytes, *offset, strides, &mut out);
        self.found.extend(tensor(out, shape).map(|tensor| (name.to_string(), tensor)));
        Ok(())
    }
}
