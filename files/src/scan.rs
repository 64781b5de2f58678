//! A cursor over text that knows where it stands.

use std::fmt::{Display, Formatter};

use crate::source::Source;
use crate::{Fault, Format, Place, Result};

/// Text being read: a file of it, or the header of a binary file.
pub(crate) struct Scanner<'a> {
    format: Format,
    pub text: &'a str,
    pub at: usize,
    header: Option<Source<'a>>,
}

/// What a file may print where it left numbers out.
const ELLIPSES: [&str; 2] = ["...", "…"];

impl<'a> Scanner<'a> {
    /// A file's text; errors say line and column.
    pub fn of_file(source: Source<'a>) -> Result<Self> {
        let text = utf8(source)?;
        Ok(Self { format: source.format, text: text.strip_prefix('\u{feff}').unwrap_or(text), at: 0, header: None })
    }

    /// The text in a binary file; errors say the byte.
    pub fn of_header(source: Source<'a>) -> Result<Self> {
        Ok(Self { format: source.format, text: utf8(source)?, at: 0, header: Some(source) })
    }

    pub fn bad(&self, at: usize, found: &dyn Display, expected: &dyn Display) -> Fault {
        if let Some(source) = &self.header {
            return source.bad(at as u64, found, expected);
        }
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        let column = 1 + String::from_utf8_lossy(&before[start..]).chars().count();
        self.format.bad(Place::Text { line, column }, found, expected)
    }

    /// Refuses what stands here.
    pub fn unexpected(&mut self, expected: &dyn Display) -> Fault {
        self.peek();
        let at = self.at;
        let word = self.word();
        match self.text[at..].chars().next() {
            None => self.bad(at, &"the end", expected),
            Some(other) if word.is_empty() => self.bad(at, &format_args!("\"{other}\""), expected),
            Some(_) => self.bad(at, &Quoted(word), expected),
        }
    }

    /// The next byte after white space.
    pub fn peek(&mut self) -> Option<u8> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_ascii_start().len();
        self.text.as_bytes().get(self.at).copied()
    }

    pub fn accept(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    pub fn expect(&mut self, byte: u8) -> Result<()> {
        if self.accept(byte) { Ok(()) } else { Err(self.unexpected(&format_args!("\"{}\"", byte as char))) }
    }

    pub fn end(&mut self) -> Result<()> {
        if self.peek().is_none() { Ok(()) } else { Err(self.unexpected(&"the end")) }
    }

    /// Up to white space, a bracket, a quote, a comma or a colon; may be empty.
    pub fn word(&mut self) -> &'a str {
        self.peek();
        let rest = &self.text[self.at..];
        let is_end = |byte: &u8| {
            matches!(byte, b'[' | b']' | b'(' | b')' | b'{' | b'}' | b',' | b':' | b';' | b'"' | b'\'')
                || byte.is_ascii_whitespace()
        };
        let word = &rest[..rest.bytes().position(|byte| is_end(&byte)).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    pub fn whole(&mut self) -> Result<u64> {
        self.peek();
        let at = self.at;
        let word = self.word();
        if word.bytes().all(|byte| byte.is_ascii_digit())
            && let Ok(number) = word.parse()
        {
            return Ok(number);
        }
        self.at = at;
        Err(self.unexpected(&"a whole number of at least 0"))
    }

    /// Whole numbers between brackets.
    pub fn wholes(&mut self, open: u8, close: u8) -> Result<Vec<u64>> {
        let mut numbers = Vec::new();
        self.expect(open)?;
        while !self.accept(close) {
            numbers.push(self.whole()?);
            if !self.accept(b',') && self.peek() != Some(close) {
                return Err(self.unexpected(&format_args!("\",\" or \"{}\"", close as char)));
            }
        }
        Ok(numbers)
    }

    /// Values by name between braces: `entry` reads a value, given its name and where that stands.
    pub fn object(&mut self, entry: &mut dyn FnMut(&mut Self, String, usize) -> Result<()>) -> Result<()> {
        self.expect(b'{')?;
        while !self.accept(b'}') {
            self.peek();
            let at = self.at;
            let name = self.string()?;
            self.expect(b':')?;
            entry(self, name, at)?;
            if !self.accept(b',') && self.peek() != Some(b'}') {
                return Err(self.unexpected(&"\",\" or \"}\""));
            }
        }
        Ok(())
    }

    pub fn number(&mut self) -> Result<f32> {
        self.peek();
        let at = self.at;
        let word = self.word();
        number(word).ok_or_else(|| {
            self.at = at;
            self.unexpected(&expected_number(word))
        })
    }

    /// Text in double quotes, or in single ones as Python writes it.
    pub fn string(&mut self) -> Result<String> {
        let quote = self.peek();
        if !matches!(quote, Some(b'"' | b'\'')) {
            return Err(self.unexpected(&"text in quotes"));
        }
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(step) = rest.find(|c| c == '\\' || Some(c as u32) == quote.map(u32::from)) else {
                return Err(self.bad(start, &"text without an end", &"a closing quote"));
            };
            text.push_str(&rest[..step]);
            self.at += step + 1;
            if rest.as_bytes()[step] != b'\\' {
                return Ok(text);
            }
            text.push(self.escaped()?);
        }
    }

    /// What stands after a backslash. Source: RFC 8259, section 7.
    fn escaped(&mut self) -> Result<char> {
        let at = self.at;
        let escape = self.text[at..].chars().next().unwrap_or(' ');
        self.at += escape.len_utf8().min(self.text.len() - at);
        let found = match escape {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            '"' | '\'' | '\\' | '/' => Some(escape),
            'u' => self.code_unit().and_then(|unit| match unit {
                0xd800..0xdc00 if self.text[self.at..].starts_with("\\u") => {
                    self.at += 2;
                    let low = self.code_unit().filter(|low| (0xdc00..0xe000).contains(low))?;
                    char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
                }
                _ => char::from_u32(unit),
            }),
            _ => None,
        };
        found.ok_or_else(|| self.bad(at, &format_args!("\\{escape}"), &"an escape that JSON knows"))
    }

    fn code_unit(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}

fn utf8(source: Source<'_>) -> Result<&str> {
    std::str::from_utf8(source.bytes).map_err(|error| {
        let at = error.valid_up_to();
        source.bad(at as u64, &format_args!("byte {:#04x}", source.bytes[at]), &"text in UTF-8")
    })
}

/// A cell as a notebook or a program writes it; None where it is no number.
pub(crate) fn number(word: &str) -> Option<f32> {
    match word {
        "true" | "True" => Some(1.0),
        "false" | "False" => Some(0.0),
        "null" => Some(f32::NAN),
        _ => word.parse().ok(),
    }
}

/// What is expected where a word is no number.
pub(crate) fn expected_number(word: &str) -> &'static str {
    if ELLIPSES.iter().any(|ellipsis| word.starts_with(ellipsis)) {
        "every number: print again after torch.set_printoptions(threshold=float(\"inf\")) or \
         numpy.set_printoptions(threshold=sys.maxsize)"
    } else {
        "a number"
    }
}

/// A word of a file in an error, cut where it is long.
pub(crate) struct Quoted<'a>(pub &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self.0.char_indices().nth(40) {
            Some((cut, _)) => write!(f, "\"{}…\"", &self.0[..cut]),
            None => write!(f, "\"{}\"", self.0),
        }
    }
}
