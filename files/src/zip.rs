//! Zip archives: members stored or deflated, and nothing inflated before its size is known to fit.
//! Source: PKWARE's APPNOTE.TXT, <https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT>

use std::borrow::Cow;
use std::fmt::Display;

use miniz_oxide::inflate::decompress_to_vec_with_limit;
use rawzip::{CompressionMethod, ZipArchive};

use crate::Result;
use crate::scan::Quoted;
use crate::source::{Budget, Source};

/// Deflate packs no better than this: 258 bytes in two bits.
const LARGEST_RATIO: u64 = 1032;

/// What an archive without extensions can name and count.
pub(crate) const LONGEST_NAME: usize = 65_000;
pub(crate) const MOST_MEMBERS: usize = 65_000;

/// Whether bytes start as an archive does, be it empty.
pub(crate) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

pub(crate) struct Zip<'a> {
    source: Source<'a>,
    pub members: Vec<Member<'a>>,
}

pub(crate) struct Member<'a> {
    pub name: String,
    bytes: &'a [u8],
    start: u64,
    deflated: bool,
    size: u64,
    crc: u32,
}

impl<'a> Zip<'a> {
    /// The archive's members. The sum of what would be inflated is asked of the budget here.
    pub fn open(source: Source<'a>, budget: &mut Budget) -> Result<Self> {
        let end = source.bytes.len() as u64;
        let fault = |at: u64| source.bad(at.min(end), &"a broken archive", &"a whole zip archive");
        let archive = ZipArchive::from_slice(source.bytes).map_err(|_| fault(end))?;
        let mut members = Vec::new();
        let mut entries = archive.entries();
        let (mut found, mut packed) = (0, 0);
        while let Some(entry) = entries.next_entry().map_err(|_| fault(archive.directory_offset()))? {
            found += 1;
            if entry.is_dir() {
                continue;
            }
            let at = entry.local_header_offset().min(end);
            let path = entry.file_path();
            let name = String::from_utf8_lossy(path.as_bytes()).into_owned();
            let bad = |found: &dyn Display, expected: &dyn Display| {
                Err(source.bad(at, &format_args!("{}: {found}", Quoted(&name)), expected))
            };
            if entry.flags().is_encrypted() {
                return bad(&"encrypted", &"a member that is not");
            }
            let method = entry.compression_method();
            let deflated = method == CompressionMethod::DEFLATE;
            if !deflated && method != CompressionMethod::STORE {
                return bad(&format_args!("compression method {}", method.as_u16()), &"stored or deflated");
            }
            let located = archive.get_entry(entry.wayfinder()).map_err(|_| fault(at))?;
            let (start, stop) = located.compressed_data_range();
            let bytes = source.take(start, stop - start, "a member")?;
            let (size, there) = (entry.uncompressed_size_hint(), bytes.len() as u64);
            if if deflated { size > there.saturating_mul(LARGEST_RATIO) } else { size != there } {
                return bad(&format_args!("{size} bytes in {there}"), &"a size that the packed bytes can hold");
            }
            packed += there;
            if packed > end {
                return bad(&format_args!("{packed} packed bytes so far"), &"members that do not overlap");
            }
            if deflated {
                budget.take(size)?;
            }
            members.push(Member { name, bytes, start, deflated, size, crc: entry.crc32() });
        }
        let expected = archive.entries_hint();
        if found != expected {
            let at = archive.directory_offset();
            return Err(source.bad(
                at,
                &format_args!("{found} entries"),
                &format_args!("{expected}, as the directory's end says"),
            ));
        }
        Ok(Self { source, members })
    }

    pub fn bytes(&self, member: &Member<'a>) -> Result<Cow<'a, [u8]>> {
        if !member.deflated {
            return Ok(Cow::Borrowed(member.bytes));
        }
        let bad = |found: &dyn Display, expected: &dyn Display| {
            Err(self.source.bad(member.start, &format_args!("{}: {found}", Quoted(&member.name)), expected))
        };
        let inflated = match decompress_to_vec_with_limit(member.bytes, member.size as usize) {
            Ok(inflated) => inflated,
            Err(error) => {
                return bad(&format_args!("{:?}", error.status), &format_args!("{} deflated bytes", member.size));
            }
        };
        if inflated.len() as u64 != member.size {
            return bad(&format_args!("{} bytes", inflated.len()), &format_args!("{}", member.size));
        }
        Ok(Cow::Owned(inflated))
    }

    /// A member's bytes with their place.
    pub fn source<'b>(&self, member: &Member<'a>, bytes: &'b [u8]) -> Source<'b> {
        self.source.member(bytes, member.start, member.deflated)
    }

    /// Whether the bytes are those that were put in. PyTorch may leave the checksum out; NumPy does not.
    pub fn verify(&self, member: &Member<'a>, bytes: &[u8]) -> Result<()> {
        let found = crc32(bytes);
        if found == member.crc {
            return Ok(());
        }
        let found = format!("{}: checksum {found:08x}", Quoted(&member.name));
        Err(self.source.bad(member.start, &found, &format_args!("{:08x}", member.crc)))
    }
}

/// An archive of stored members, as `numpy.savez` makes it.
pub(crate) fn write(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut directory = Vec::new();
    for (name, data) in members {
        let offset = bytes.len() as u32;
        let mut common = Vec::new();
        // The version needed, names in UTF-8, stored, 1 January 1980.
        for field in [20u16, 1 << 11, 0, 0, 1 << 5 | 1] {
            common.extend(field.to_le_bytes());
        }
        for field in [crc32(data), data.len() as u32, data.len() as u32] {
            common.extend(field.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0; 2]);
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&common);
        bytes.extend(name.bytes());
        bytes.extend(data);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.bytes());
    }
    let (offset, entries) = (bytes.len() as u32, (members.len() as u16).to_le_bytes());
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\x00\x00\x00\x00");
    bytes.extend(entries);
    bytes.extend(entries);
    bytes.extend((directory.len() as u32).to_le_bytes());
    bytes.extend(offset.to_le_bytes());
    bytes.extend([0; 2]);
    bytes
}

/// The checksum of zip, four bits at a time.
fn crc32(bytes: &[u8]) -> u32 {
    const STEP: [u32; 16] = {
        let mut table = [0u32; 16];
        let mut i = 0;
        while i < 64 {
            let rest = if i % 4 == 0 { i as u32 / 4 } else { table[i / 4] };
            table[i / 4] = if rest & 1 == 1 { rest >> 1 ^ 0xedb8_8320 } else { rest >> 1 };
            i += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |crc, &byte| {
        let crc = crc ^ u32::from(byte);
        let crc = crc >> 4 ^ STEP[crc as usize & 15];
        crc >> 4 ^ STEP[crc as usize & 15]
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_is_the_standards() {
        assert_eq!(super::crc32(b"123456789"), 0xcbf4_3926);
    }
}
