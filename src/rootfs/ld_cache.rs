//! `/etc/ld.so.cache`: the index that the dynamic loader reads instead of `ld.so.conf` (glibc, `sysdeps/generic/dl-cache.h`).

use scroll::{LE, Pread};

use crate::model::ImagePath;

/// One entry: a soname and the path of a library that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CacheEntry {
    pub(super) soname: Vec<u8>,
    pub(super) path: ImagePath,
    /// `FLAG_ELF_LIBC6` and the architecture's bits.
    pub(super) flags: u32,
    /// Not 0 for a library of a `glibc-hwcaps` folder, or of the older hwcap folders.
    pub(super) hwcap: u64,
}

const OLD_MAGIC: &[u8] = b"ld.so-1.7.0\0";
const NEW_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";

/// `struct cache_file_new`: magic, number of libraries, length of strings, flags, extension offset, three unused words.
const NEW_HEADER: usize = 48;
const NEW_ENTRY: usize = 24;

/// Entries in the order of the file. The old format alone (glibc before 2.2 wrote it so) and the old one with the new
/// one behind it are both accepted.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<CacheEntry>, String> {
    let start = if bytes.starts_with(NEW_MAGIC) {
        0
    } else if bytes.starts_with(OLD_MAGIC) {
        let count: u32 = word(bytes, 12)?;
        let end = usize::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(12)?.checked_add(16))
            .ok_or("it is too large")?;
        // The new format begins at the next multiple of 8 behind the old entries.
        let new = end.next_multiple_of(8);
        if !bytes.get(new..).is_some_and(|rest| rest.starts_with(NEW_MAGIC)) {
            return old_entries(bytes, count, end);
        }
        new
    } else {
        return Err("it does not begin as a cache of ld.so does".to_owned());
    };
    let table = bytes.get(start..).unwrap_or_default();
    let number = |at| word(table, at);
    // Bits 0 and 1 of the flags say the byte order; 0 is a file of before 2.33, which did not say.
    if number(28)? & 3 == 3 {
        return Err("it is of a big-endian machine".to_owned());
    }
    (0..usize::try_from(number(20)?).map_err(|error| error.to_string())?)
        .map(|index| {
            let at = index.checked_mul(NEW_ENTRY).and_then(|at| at.checked_add(NEW_HEADER)).ok_or("it is too large")?;
            let text = |at| -> Result<Vec<u8>, String> { string(table, number(at)?) };
            let hwcap = table.pread_with(at + 16, LE).map_err(|error: scroll::Error| error.to_string())?;
            Ok(CacheEntry {
                flags: number(at)?,
                soname: text(at + 4)?,
                path: ImagePath::normalise(&text(at + 8)?),
                hwcap,
            })
        })
        .collect()
}

fn old_entries(bytes: &[u8], count: u32, strings: usize) -> Result<Vec<CacheEntry>, String> {
    let strings = bytes.get(strings..).unwrap_or_default();
    let number = |at| word(bytes, at);
    (0..usize::try_from(count).map_err(|error| error.to_string())?)
        .map(|index| {
            let at = 16 + index * 12;
            let path = ImagePath::normalise(&string(strings, number(at + 8)?)?);
            Ok(CacheEntry { flags: number(at)?, soname: string(strings, number(at + 4)?)?, path, hwcap: 0 })
        })
        .collect()
}

fn word(bytes: &[u8], at: usize) -> Result<u32, String> {
    bytes.pread_with(at, LE).map_err(|error: scroll::Error| error.to_string())
}

fn string(table: &[u8], offset: u32) -> Result<Vec<u8>, String> {
    let wild = || format!("a string at {offset} lies outside");
    let rest = usize::try_from(offset).ok().and_then(|at| table.get(at..)).ok_or_else(wild)?;
    let end = memchr::memchr(0, rest).ok_or_else(wild)?;
    Ok(rest.get(..end).unwrap_or_default().to_vec())
}
