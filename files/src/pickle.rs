//! The part of Python's pickle that saved tensors are made of. It builds containers and descriptions of tensors and can run
//! nothing: classes and functions that hold no tensors are passed over, any other is refused by its name.
//! Source: <https://docs.python.org/3/library/pickletools.html>, protocols 2 to 5

use std::fmt::Display;

use crate::element::Element;
use crate::source::{Budget, Source};
use crate::{Fault, Result};

/// What a pickle holds; containers, storages and tensors are kept by their number, so that a value is small and a cycle harmless.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    /// None, or a value that no tensor needs: a float, bytes, a device.
    Leaf,
    Bool(bool),
    Int(i64),
    /// A whole number too large for 64 bits, little-endian.
    Long(&'a [u8]),
    Text(&'a str),
    Known(Known),
    Tuple(usize),
    List(usize),
    Dict(usize),
    Storage(usize),
    Tensor(usize),
}

/// The classes and functions that a tensor is made with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Known {
    /// An empty one is made and then filled.
    Dict,
    /// Whatever it makes holds no tensor.
    Harmless,
    Size,
    Tensor,
    Parameter,
    Storage(Element),
}

/// Where a tensor's numbers lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Storage<'a> {
    /// The place in the pickle.
    pub at: u64,
    pub key: &'a str,
    pub element: Element,
    pub count: u64,
}

/// A view of a storage.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// The place in the pickle.
    pub at: u64,
    pub storage: usize,
    pub offset: u64,
    pub shape: Vec<u64>,
    pub strides: Vec<u64>,
}

/// The values of a pickle.
pub(crate) struct Pickle<'a> {
    pub root: Value<'a>,
    pub start: u64,
    pub end: u64,
    /// Tuples, lists, and dicts as key, value, key, value.
    pub containers: Vec<Vec<Value<'a>>>,
    pub storages: Vec<Storage<'a>>,
    pub views: Vec<View>,
}

/// Classes of Python that hold no tensors where a pickle calls them by name.
const BUILTINS: [&str; 11] =
    ["bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "set", "str"];
/// Number types by name, as in `torch.float32`.
const DTYPES: [&str; 17] = [
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "float",
    "double",
    "half",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "bool",
    "complex64",
    "complex128",
    "int",
    "long",
];

const STOP: u8 = b'.';
/// What an operation may keep in memory at most, beside what it copies.
const BYTES_PER_OPERATION: u64 = 128;

pub(crate) fn read<'a>(source: Source<'a>, at: u64, budget: &mut Budget) -> Result<Pickle<'a>> {
    let pickle = Pickle { root: Value::Leaf, start: at, end: at, containers: vec![], storages: vec![], views: vec![] };
    let mut machine = Machine { source, at, operation: at, stack: vec![], marks: vec![], memo: vec![], pickle };
    loop {
        budget.take(BYTES_PER_OPERATION)?;
        machine.operation = machine.at;
        let operation = machine.whole(1)? as u8;
        if operation == STOP {
            let root = machine.pop()?;
            return Ok(Pickle { root, end: machine.at, ..machine.pickle });
        }
        if let Some(value) = machine.step(operation)? {
            machine.stack.push(value);
        }
    }
}

struct Machine<'a> {
    source: Source<'a>,
    at: u64,
    /// Where the operation at work stands.
    operation: u64,
    stack: Vec<Value<'a>>,
    /// How high the stack was at each mark.
    marks: Vec<usize>,
    memo: Vec<Value<'a>>,
    pickle: Pickle<'a>,
}

impl<'a> Machine<'a> {
    /// Carries out one operation; gives what it pushes.
    fn step(&mut self, operation: u8) -> Result<Option<Value<'a>>> {
        let value = match operation {
            // PROTO, FRAME
            0x80 => {
                let version = self.whole(1)?;
                if !(2..=5).contains(&version) {
                    return Err(self.bad(&format_args!("protocol {version}"), &"protocol 2 to 5"));
                }
                return Ok(None);
            }
            0x95 => return self.whole(8).map(|_| None),
            b'(' => {
                self.marks.push(self.stack.len());
                return Ok(None);
            }
            b'0' => return self.pop().map(|_| None),
            b'1' => return self.pop_mark().map(|_| None),
            b'2' => self.top()?,

            b'N' => Value::Leaf,
            0x88 => Value::Bool(true),
            0x89 => Value::Bool(false),
            b'K' => Value::Int(self.whole(1)? as i64),
            b'M' => Value::Int(self.whole(2)? as i64),
            b'J' => Value::Int((self.whole(4)? as i32).into()),
            // LONG1, LONG4
            0x8a => self.long(1)?,
            0x8b => self.long(4)?,
            b'G' => self.whole(8).map(|_| Value::Leaf)?,
            // Strings of Python 2 and 3, bytes
            b'X' | b'T' => self.text(4)?,
            0x8c | b'U' => self.text(1)?,
            0x8d => self.text(8)?,
            b'B' => self.counted(4).map(|_| Value::Leaf)?,
            b'C' => self.counted(1).map(|_| Value::Leaf)?,
            0x8e => self.counted(8).map(|_| Value::Leaf)?,

            b')' => self.container(Value::Tuple, vec![]),
            b']' => self.container(Value::List, vec![]),
            b'}' => self.container(Value::Dict, vec![]),
            // EMPTY_SET, FROZENSET
            0x8f => self.container(Value::List, vec![]),
            0x91 => {
                let items = self.pop_mark()?;
                self.container(Value::List, items)
            }
            b't' => {
                let items = self.pop_mark()?;
                self.container(Value::Tuple, items)
            }
            0x85..=0x87 => {
                let mut items = vec![Value::Leaf; usize::from(operation - 0x84)];
                for item in items.iter_mut().rev() {
                    *item = self.pop()?;
                }
                self.container(Value::Tuple, items)
            }
            b'a' | b'e' | b's' | b'u' | 0x90 => return self.add(operation).map(|()| None),

            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.known(module, name)?
            }
            // STACK_GLOBAL
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (Value::Text(module), Value::Text(name)) = (module, name) else {
                    return Err(self.bad(&"a global whose name is no text", &"the name of a class or function"));
                };
                self.known(module, name)?
            }
            // REDUCE, NEWOBJ
            b'R' | 0x81 => {
                let (arguments, function) = (self.pop()?, self.pop()?);
                self.call(function, arguments)?
            }
            // BUILD sets attributes, which no tensor here needs.
            b'b' => {
                self.pop()?;
                self.pop()?
            }
            b'Q' => {
                let id = self.pop()?;
                self.storage(id)?
            }

            // BINPUT, LONG_BINPUT, MEMOIZE
            b'q' => return self.whole(1).and_then(|key| self.put(key)),
            b'r' => return self.whole(4).and_then(|key| self.put(key)),
            0x94 => return self.put(self.memo.len() as u64),
            b'h' => self.whole(1).and_then(|key| self.get(key))?,
            b'j' => self.whole(4).and_then(|key| self.get(key))?,
            other => {
                return Err(self.bad(&format_args!("operation {other:#04x}"), &"one that tensors are saved with"));
            }
        };
        Ok(Some(value))
    }

    fn put(&mut self, key: u64) -> Result<Option<Value<'a>>> {
        let value = self.top()?;
        let count = self.memo.len() as u64;
        if key < count {
            self.memo[key as usize] = value;
        } else if key == count {
            self.memo.push(value);
        } else {
            return Err(self.bad(&format_args!("memo {key}"), &"keys that count up"));
        }
        Ok(None)
    }

    fn get(&self, key: u64) -> Result<Value<'a>> {
        let value = self.memo.get(key as usize).copied();
        value.ok_or_else(|| self.bad(&format_args!("memo {key}"), &"one that was put before"))
    }

    fn bad(&self, found: &dyn Display, expected: &dyn Display) -> Fault {
        self.source.bad(self.operation, found, expected)
    }

    fn take(&mut self, size: u64) -> Result<&'a [u8]> {
        let bytes = self.source.take(self.at, size, "the pickle")?;
        self.at += size;
        Ok(bytes)
    }

    /// A little-endian whole number of up to eight bytes.
    fn whole(&mut self, size: u64) -> Result<u64> {
        Ok(self.take(size)?.iter().rev().fold(0, |whole, &byte| whole << 8 | u64::from(byte)))
    }

    /// Bytes behind their count, which has `size` bytes itself.
    fn counted(&mut self, size: u64) -> Result<&'a [u8]> {
        let count = self.whole(size)?;
        self.take(count)
    }

    fn text(&mut self, size: u64) -> Result<Value<'a>> {
        let text = std::str::from_utf8(self.counted(size)?);
        text.map(Value::Text).map_err(|_| self.bad(&"text that is not UTF-8", &"UTF-8"))
    }

    fn long(&mut self, size: u64) -> Result<Value<'a>> {
        let bytes = self.counted(size)?;
        if bytes.len() > 8 {
            return Ok(Value::Long(bytes));
        }
        let negative = bytes.last().is_some_and(|&byte| byte >= 0x80);
        let mut whole = [if negative { 0xff } else { 0 }; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        Ok(Value::Int(i64::from_le_bytes(whole)))
    }

    /// Text up to a new line.
    fn line(&mut self) -> Result<&'a str> {
        let rest = &self.source.bytes[self.at as usize..];
        let end = rest.iter().position(|&byte| byte == b'\n');
        let end = end.ok_or_else(|| self.bad(&"a name without an end", &"a new line"))?;
        self.at += end as u64 + 1;
        std::str::from_utf8(&rest[..end]).map_err(|_| self.bad(&"a name that is not UTF-8", &"UTF-8"))
    }

    fn pop(&mut self) -> Result<Value<'a>> {
        let value = self.top()?;
        self.stack.pop();
        Ok(value)
    }

    /// The top of the stack; what lies below the last mark is out of reach.
    fn top(&self) -> Result<Value<'a>> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let top = self.stack[floor..].last().copied();
        top.ok_or_else(|| self.bad(&"an empty stack", &"a value for this operation"))
    }

    fn pop_mark(&mut self) -> Result<Vec<Value<'a>>> {
        let mark = self.marks.pop().ok_or_else(|| self.bad(&"no mark", &"a mark before this operation"))?;
        Ok(self.stack.split_off(mark))
    }

    fn container(&mut self, kind: fn(usize) -> Value<'a>, items: Vec<Value<'a>>) -> Value<'a> {
        self.pickle.containers.push(items);
        kind(self.pickle.containers.len() - 1)
    }

    /// APPEND, APPENDS, SETITEM, SETITEMS, ADDITEMS
    fn add(&mut self, operation: u8) -> Result<()> {
        let items = match operation {
            b'a' => vec![self.pop()?],
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                vec![key, value]
            }
            _ => self.pop_mark()?,
        };
        let is_dict = matches!(operation, b's' | b'u');
        match self.top()? {
            Value::List(list) if !is_dict => self.pickle.containers[list].extend(items),
            Value::Dict(dict) if is_dict && items.len().is_multiple_of(2) => {
                self.pickle.containers[dict].extend(items);
            }
            other => {
                let expected = if is_dict { "a dict, and a value for each key" } else { "a list" };
                return Err(self.bad(&kind(other), &expected));
            }
        }
        Ok(())
    }

    fn known(&self, module: &str, name: &str) -> Result<Value<'a>> {
        let known = match (module, name) {
            ("collections", "OrderedDict" | "defaultdict") => Known::Dict,
            ("collections", "Counter") | ("argparse", "Namespace") | ("_codecs", "encode") => Known::Harmless,
            ("builtins" | "__builtin__", name) if BUILTINS.contains(&name) => Known::Harmless,
            ("numpy", "dtype") | ("numpy.core.multiarray" | "numpy._core.multiarray", "scalar") => Known::Harmless,
            ("torch", name) if DTYPES.contains(&name) || name == "device" => Known::Harmless,
            ("torch", "Size") => Known::Size,
            ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2") => Known::Tensor,
            ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => Known::Parameter,
            ("torch", "FloatStorage") => Known::Storage(Element::F32),
            ("torch", "DoubleStorage") => Known::Storage(Element::F64),
            ("torch", "HalfStorage") => Known::Storage(Element::F16),
            ("torch", "BFloat16Storage") => Known::Storage(Element::Bf16),
            ("torch", "LongStorage") => Known::Storage(Element::I64),
            ("torch", "IntStorage") => Known::Storage(Element::I32),
            ("torch", "ShortStorage") => Known::Storage(Element::I16),
            ("torch", "CharStorage") => Known::Storage(Element::I8),
            ("torch", "ByteStorage") => Known::Storage(Element::U8),
            ("torch", "BoolStorage") => Known::Storage(Element::Bool),
            _ => {
                let expected = "tensors, numbers, text, lists, tuples and dicts only; nothing in a file is run. Save \
                                model.state_dict() instead";
                return Err(self.bad(&format_args!("\"{module}.{name}\""), &expected));
            }
        };
        Ok(Value::Known(known))
    }

    fn call(&mut self, function: Value<'a>, arguments: Value<'a>) -> Result<Value<'a>> {
        let items = match arguments {
            Value::Tuple(items) => &self.pickle.containers[items][..],
            _ => &[],
        };
        match (function, items) {
            // A defaultdict is told what its defaults are.
            (Value::Known(Known::Dict), [] | [Value::Known(Known::Harmless | Known::Dict)]) => {
                Ok(self.container(Value::Dict, vec![]))
            }
            (Value::Known(Known::Harmless), _) => Ok(Value::Leaf),
            (Value::Known(Known::Size), &[shape @ Value::Tuple(_)]) => Ok(shape),
            (Value::Known(Known::Parameter), &[tensor @ Value::Tensor(_), ..]) => Ok(tensor),
            (
                Value::Known(Known::Tensor),
                &[Value::Storage(storage), Value::Int(offset), Value::Tuple(shape), Value::Tuple(strides), ..],
            ) => {
                if let Some(&Value::Dict(flags)) = items.get(6)
                    && self.pickle.containers[flags].iter().any(|flag| matches!(flag, Value::Text("neg")))
                {
                    return Err(
                        self.bad(&"a tensor whose signs are to be turned", &"tensor.resolve_neg() saved instead")
                    );
                }
                let offset =
                    u64::try_from(offset).map_err(|_| self.bad(&format_args!("offset {offset}"), &"0 or more"))?;
                let (shape, strides) = (self.wholes(shape)?, self.wholes(strides)?);
                self.pickle.views.push(View { at: self.operation, storage, offset, shape, strides });
                Ok(Value::Tensor(self.pickle.views.len() - 1))
            }
            _ => Err(self.bad(&format_args!("a call of {}", kind(function)), &"a call that makes a tensor or a dict")),
        }
    }

    fn wholes(&self, tuple: usize) -> Result<Vec<u64>> {
        let whole = |&value: &Value<'a>| match value {
            Value::Int(number) => u64::try_from(number).ok(),
            _ => None,
        };
        let numbers: Option<Vec<u64>> = self.pickle.containers[tuple].iter().map(whole).collect();
        numbers.ok_or_else(|| self.bad(&"a shape or strides", &"whole numbers of at least 0"))
    }

    /// `("storage", type, key, device, count)`; older files add the view of another storage.
    fn storage(&mut self, id: Value<'a>) -> Result<Value<'a>> {
        if let Value::Tuple(items) = id
            && let &[
                Value::Text("storage"),
                Value::Known(Known::Storage(element)),
                Value::Text(key),
                _,
                Value::Int(count),
                ref view @ ..,
            ] = &self.pickle.containers[items][..]
            && let Ok(count) = u64::try_from(count)
            && matches!(view, [] | [Value::Leaf])
        {
            self.pickle.storages.push(Storage { at: self.operation, key, element, count });
            return Ok(Value::Storage(self.pickle.storages.len() - 1));
        }
        Err(self.bad(&"a persistent id", &"(\"storage\", type, key, device, count)"))
    }
}

/// A value in an error.
pub(crate) fn kind(value: Value<'_>) -> &'static str {
    match value {
        Value::Leaf => "None, a float or bytes",
        Value::Bool(_) => "a bool",
        Value::Int(_) | Value::Long(_) => "an int",
        Value::Text(_) => "a str",
        Value::Known(_) => "a class or function",
        Value::Tuple(_) => "a tuple",
        Value::List(_) => "a list",
        Value::Dict(_) => "a dict",
        Value::Storage(_) => "a storage",
        Value::Tensor(_) => "a tensor",
    }
}
