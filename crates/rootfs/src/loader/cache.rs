//! `/etc/ld.so.cache`: the index that the dynamic loader reads instead of `ld.so.conf` (glibc,
//! `sysdeps/generic/dl-cache.h` and `elf/dl-cache.c`).

use scroll::{LE, Pread};

use model::part;

use super::CpuLevel;

/// The entries of a cache, in file order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LdSoCache<'a>(Vec<CacheEntry<'a>>);

/// One entry: a soname and the path of a library with that soname.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CacheEntry<'a> {
    soname: &'a [u8],
    path: &'a [u8],
    /// `FLAG_ELF_LIBC6` and the architecture's bits.
    flags: u32,
    processor: Processor<'a>,
}

/// The processors that an entry is for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Processor<'a> {
    Any,
    /// Processors whose level includes this directory below `glibc-hwcaps`.
    Folder(&'a [u8]),
    /// Processors with features that glibc before 2.37 encoded as bits.
    Bits,
}

/// The cache's result for a soname.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CacheAnswer<'c> {
    Nothing,
    Path {
        path: &'c [u8],
        /// True when another CPU level might get another path.
        depends_on_level: bool,
    },
    /// There is an entry for CPU features, which no level determines.
    Bits(&'c [u8]),
}

const OLD_MAGIC: &[u8] = b"ld.so-1.7.0\0";
const NEW_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";

/// `struct cache_file_new`: magic, number of libraries, length of strings, flags, extension offset, three unused words.
const NEW_HEADER: usize = 48;
const NEW_ENTRY: usize = 24;

/// `DL_CACHE_HWCAP_EXTENSION` in the upper half of an entry's `hwcap`; the lower bits are the minimum CPU level.
const IS_FOLDER: u32 = 1 << 30;
const LEVEL_BITS: u32 = (1 << 10) - 1;

const EXTENSION_MAGIC: u32 = 0xeaa4_2174;
/// `cache_extension_tag_glibc_hwcaps`.
const FOLDER_NAMES: u32 = 1;

impl<'a> LdSoCache<'a> {
    /// Parses a cache. Accepts the old format (written by glibc before 2.2), the new one, and the old one followed by
    /// the new one.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let start = if bytes.starts_with(NEW_MAGIC) {
            0
        } else if bytes.starts_with(OLD_MAGIC) {
            let count: u32 = word(bytes, 12)?;
            let end = usize::try_from(count)
                .ok()
                .and_then(|count| count.checked_mul(12)?.checked_add(16))
                .ok_or("it is too large")?;
            // The new format starts at the next multiple of 8 after the old entries.
            let new = end.next_multiple_of(8);
            if !bytes.get(new..).is_some_and(|rest| rest.starts_with(NEW_MAGIC)) {
                return old_entries(bytes, count, end);
            }
            new
        } else {
            return Err("it has no header of an ld.so cache".to_owned());
        };
        new_entries(part(bytes, start..)?)
    }

    /// The path that the loader uses for a soname on a machine (`e_machine`): from the best hwcaps directory that the
    /// processor supports, else from the first generic entry. The loader tries only one: if that path leads nowhere, it
    /// does not look at the next entry.
    pub(super) fn find(&self, soname: &[u8], machine: u16, level: CpuLevel) -> CacheAnswer<'a> {
        let mut best: Option<(usize, &CacheEntry<'a>)> = None;
        let mut any = None;
        let mut depends_on_level = false;
        for entry in self.0.iter().filter(|entry| is_usable(entry.flags, machine) && is_same(entry.soname, soname)) {
            match &entry.processor {
                Processor::Any => any = any.or(Some(entry)),
                Processor::Bits => return CacheAnswer::Bits(entry.path),
                Processor::Folder(name) => {
                    depends_on_level = true;
                    let rank = level.folders().iter().position(|folder| folder.as_bytes() == *name);
                    if let Some(rank) = rank.filter(|rank| best.is_none_or(|(known, _)| *rank < known)) {
                        best = Some((rank, entry));
                    }
                }
            }
        }
        match best.map(|(_, entry)| entry).or(any) {
            Some(entry) => CacheAnswer::Path { path: entry.path, depends_on_level },
            None => CacheAnswer::Nothing,
        }
    }

    /// The paths of all entries for a soname.
    pub(super) fn paths(&self, soname: &[u8], machine: u16) -> impl Iterator<Item = &'a [u8]> {
        let entries = self.0.iter().filter(move |entry| is_usable(entry.flags, machine));
        entries.filter(move |entry| is_same(entry.soname, soname)).map(|entry| entry.path)
    }
}

/// `_dl_cache_check_flags`: accepts glibc libraries for the loader's own architecture, and libraries of no known C
/// library.
fn is_usable(flags: u32, machine: u16) -> bool {
    const ELF: u32 = 1;
    let libc6 = match machine {
        62 => 0x0303,
        183 => 0x0a03,
        _ => 3,
    };
    flags == ELF || flags == libc6
}

/// `_dl_cache_libcmp`: compares runs of digits as numbers.
fn is_same(left: &[u8], right: &[u8]) -> bool {
    left == right || (left.iter().any(u8::is_ascii_digit) && parts(left).eq(parts(right)))
}

/// A name without the leading zeros of its numbers.
fn parts(name: &[u8]) -> impl Iterator<Item = u8> {
    let mut in_number = false;
    name.iter().enumerate().filter_map(move |(at, &byte)| {
        let is_leading = byte == b'0' && !in_number && name.get(at + 1).is_some_and(u8::is_ascii_digit);
        in_number = byte.is_ascii_digit() && !is_leading;
        (!is_leading).then_some(byte)
    })
}

fn new_entries(table: &[u8]) -> Result<LdSoCache<'_>, String> {
    let number = |at| word(table, at);
    // Bits 0 and 1 of the flags are the byte order; files written before 2.33 have 0 there.
    if number(28)? & 3 == 3 {
        return Err("it was written for a big-endian machine".to_owned());
    }
    let folders = folders(table, number(32)?)?;
    (0..usize::try_from(number(20)?).map_err(|error| error.to_string())?)
        .map(|index| {
            let at = index.checked_mul(NEW_ENTRY).and_then(|at| at.checked_add(NEW_HEADER)).ok_or("it is too large")?;
            let text = |at| string(table, number(at)?);
            let low = number(at + 16)?;
            let high = number(at + 20)?;
            let processor = if high & !LEVEL_BITS == IS_FOLDER {
                let index = usize::try_from(low).unwrap_or(usize::MAX);
                Processor::Folder(folders.get(index).ok_or("an entry refers to an unnamed glibc-hwcaps directory")?)
            } else if low != 0 || high & !LEVEL_BITS != 0 {
                Processor::Bits
            } else {
                Processor::Any
            };
            Ok(CacheEntry { flags: number(at)?, soname: text(at + 4)?, path: text(at + 8)?, processor })
        })
        .collect::<Result<_, _>>()
        .map(LdSoCache)
}

/// Names of the directories below `glibc-hwcaps` that entries refer to, from the extension after the strings; caches
/// written before glibc 2.33 have none.
fn folders(table: &[u8], extension: u32) -> Result<Vec<&[u8]>, String> {
    let at = usize::try_from(extension).map_err(|error| error.to_string())?;
    if at == 0 || word(table, at)? != EXTENSION_MAGIC {
        return Ok(Vec::new());
    }
    for section in 0..word(table, at + 4)? {
        let header = usize::try_from(section).ok().and_then(|index| at.checked_add(index.checked_mul(16)? + 8));
        let header = header.ok_or("it is too large")?;
        if word(table, header)? != FOLDER_NAMES {
            continue;
        }
        let begin = word(table, header + 8)?;
        let size = word(table, header + 12)?;
        let offsets = (begin..begin.saturating_add(size)).step_by(4);
        return offsets
            .map(|offset| {
                let name = word(table, usize::try_from(offset).map_err(|error| error.to_string())?)?;
                string(table, name)
            })
            .collect();
    }
    Ok(Vec::new())
}

fn old_entries(bytes: &[u8], count: u32, strings: usize) -> Result<LdSoCache<'_>, String> {
    let strings = bytes.get(strings..).unwrap_or_default();
    let number = |at| word(bytes, at);
    (0..usize::try_from(count).map_err(|error| error.to_string())?)
        .map(|index| {
            let at = 16 + index * 12;
            let soname = string(strings, number(at + 4)?)?;
            let path = string(strings, number(at + 8)?)?;
            Ok(CacheEntry { flags: number(at)?, soname, path, processor: Processor::Any })
        })
        .collect::<Result<_, _>>()
        .map(LdSoCache)
}

fn word(bytes: &[u8], at: usize) -> Result<u32, String> {
    bytes.pread_with(at, LE).map_err(|error: scroll::Error| error.to_string())
}

fn string(table: &[u8], offset: u32) -> Result<&[u8], String> {
    let wild = || format!("the string at {offset} is out of bounds");
    let rest = usize::try_from(offset).ok().and_then(|at| table.get(at..)).ok_or_else(wild)?;
    let end = memchr::memchr(0, rest).ok_or_else(wild)?;
    Ok(part(rest, ..end)?)
}
