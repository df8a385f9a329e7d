//! Encoding of a scan. The bytes may come from an untrusted writer: decoding refuses what no scan could have produced.
//!
//! ```text
//! magic        8 bytes   "ncclscan"
//! form         4 bytes   version of the format, little-endian
//! head                   one Zstandard frame (RFC 8878), with its size and checksum
//! body                   another one: entries and findings
//! ```
//!
//! In the frames, each value has postcard's form.

use std::io::{self, Read as _};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zstd::bulk::{Compressor, Decompressor};

use crate::scan::{Compression, LayerScan};
use model::{Digest, Entry, EntryKind, Found, Gap};

use super::key::{ScanKey, Scanner};

const MAGIC: &[u8; 8] = b"ncclscan";

/// Version of the format.
const FORM: u32 = 2;

/// Maximum size of a stored entry, in bytes. A layer with a million files takes about 20 MB.
pub(super) const MOST_STORED: u64 = 64 << 20;

/// Maximum size of an unpacked entry, in bytes.
const MOST_UNPACKED: usize = 256 << 20;

/// More than the size of an unpacked head, in bytes: two digests and a few numbers.
const LONGEST_HEAD: u64 = 1 << 10;

/// The default level of zstd. The programs of a release lack the compressors of higher levels.
const LEVEL: i32 = 3;

/// Header of the unpacked entry: the scanned bytes, the scanner, and the counts of what follows.
#[derive(Debug, Serialize, Deserialize)]
struct EntryHead {
    digest: Digest,
    size: u64,
    scanner: String,
    compression: Compression,
    unpacked: u64,
    diff_id: Option<Digest>,
    entries: u64,
    found: u64,
}

/// Findings in the file of one entry.
type EntryFindings = (u64, Vec<Result<Found, Gap>>);

/// Reason to ignore an entry. A new scan replaces it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("it is not a scan in a known format")]
    Form,
    #[error("it is corrupt")]
    Damaged,
    #[error("it is larger than any cached scan")]
    TooLarge,
    #[error("it is a scan of other bytes, or from another scanner")]
    OtherKey,
    #[error("no scan could have produced it: {0}")]
    Unsound(&'static str),
}

/// Encodes a scan; `None` if it is too large for the cache.
pub(super) fn encode(key: &ScanKey<'_>, scan: &LayerScan) -> Option<Vec<u8>> {
    let head = EntryHead {
        digest: key.blob.digest.clone(),
        size: key.blob.size,
        scanner: key.scanner().to_string(),
        compression: scan.compression,
        unpacked: scan.unpacked,
        diff_id: scan.diff_id.clone(),
        entries: scan.entries.len() as u64,
        found: scan.found.len() as u64,
    };
    let mut body = Vec::new();
    for entry in &scan.entries {
        body = postcard::to_extend(entry, body).ok()?;
    }
    for (index, found) in &scan.found {
        body = postcard::to_extend(&(*index as u64, found), body).ok()?;
    }
    let mut compressor = Compressor::new(LEVEL).ok()?;
    compressor.include_checksum(true).ok()?;
    let head = postcard::to_stdvec(&head).ok()?;
    let frames = [compressor.compress(&head).ok()?, compressor.compress(&body).ok()?].concat();
    let whole = [MAGIC, &FORM.to_le_bytes()[..], &frames].concat();
    (head.len() + body.len() <= MOST_UNPACKED && whole.len() as u64 <= MOST_STORED).then_some(whole)
}

/// Decodes a scan if it belongs to this key.
pub(super) fn decode(bytes: &[u8], key: &ScanKey<'_>) -> Result<LayerScan, Refused> {
    let unpacked = unpack(bytes)?;
    let mut rest = Rest(&unpacked);
    let head: EntryHead = rest.next()?;
    if head.digest != key.blob.digest || head.size != key.blob.size || head.scanner != key.scanner().to_string() {
        return Err(Refused::OtherKey);
    }
    let bounds = key.limits;
    if head.entries > bounds.entries || head.unpacked > bounds.unpacked || head.found > head.entries {
        return Err(Refused::Unsound("it exceeds the limits of its scanner"));
    }
    let mut scan = LayerScan {
        compression: head.compression,
        unpacked: head.unpacked,
        diff_id: head.diff_id,
        entries: Vec::new(),
        found: std::collections::BTreeMap::new(),
    };
    for _ in 0..head.entries {
        let entry: Entry = rest.next()?;
        check_entry(&entry, bounds.path)?;
        scan.entries.push(entry);
    }
    for _ in 0..head.found {
        let (index, answers): EntryFindings = rest.next()?;
        let index = usize::try_from(index).map_err(|_large| Refused::Damaged)?;
        let file = scan.entries.get(index).filter(|entry| entry.kind == EntryKind::File && entry.size > 0);
        if file.is_none() || answers.is_empty() || scan.found.last_key_value().is_some_and(|(last, _)| *last >= index) {
            return Err(Refused::Unsound("findings that are out of order or not in a file"));
        }
        answers.iter().try_for_each(|found| check_found(found, bounds.text_file.max(bounds.settings_file)))?;
        scan.found.insert(index, answers);
    }
    if rest.0.is_empty() && scan.is_reproducible() {
        Ok(scan)
    } else {
        Err(Refused::Unsound("trailing bytes, or a gap that is not cached"))
    }
}

/// The size of the scanned blob, if the entry is the scan of the blob with this digest by this scanner.
pub(super) fn size(bytes: &[u8], digest: &Digest, scanner: &Scanner) -> Result<u64, Refused> {
    let decoder = zstd::stream::read::Decoder::with_buffer(frames(bytes)?).map_err(|_zstd| Refused::Damaged)?;
    let mut head = Vec::new();
    io::copy(&mut decoder.single_frame().take(LONGEST_HEAD), &mut head).map_err(|_zstd| Refused::Damaged)?;
    let head: EntryHead = Rest(&head).next()?;
    if head.digest != *digest || head.scanner != scanner.to_string() {
        return Err(Refused::OtherKey);
    }
    Ok(head.size)
}

/// Returns true if the checksums are right, whatever the content is.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    unpack(bytes).is_ok()
}

/// The part after the header.
fn frames(bytes: &[u8]) -> Result<&[u8], Refused> {
    let frames = bytes.strip_prefix(MAGIC).and_then(|bytes| bytes.strip_prefix(&FORM.to_le_bytes()));
    frames.ok_or(Refused::Form)
}

/// The content of all frames, if their checksums are right.
fn unpack(bytes: &[u8]) -> Result<Vec<u8>, Refused> {
    let frames = frames(bytes)?;
    match Decompressor::upper_bound(frames) {
        Some(size) if size > MOST_UNPACKED => Err(Refused::TooLarge),
        Some(size) => zstd::bulk::decompress(frames, size).map_err(|_zstd| Refused::Damaged),
        None => Err(Refused::Damaged),
    }
}

/// The bytes left to decode. Values are decoded one at a time, so that a hostile entry is refused before it takes much
/// memory.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn next<T: DeserializeOwned>(&mut self) -> Result<T, Refused> {
        let (value, rest) = postcard::take_from_bytes(self.0).map_err(|_postcard| Refused::Damaged)?;
        self.0 = rest;
        Ok(value)
    }
}

/// Checks the invariants of a scanned entry that its types do not express.
fn check_entry(entry: &Entry, longest: usize) -> Result<(), Refused> {
    let target = match &entry.kind {
        EntryKind::Symlink(target) => target.len(),
        EntryKind::Hardlink(target) => target.as_bytes().len(),
        _ => 0,
    };
    if entry.mode > 0o7777 {
        return Err(Refused::Unsound("unknown permission bits"));
    }
    if entry.size > 0 && entry.kind != EntryKind::File {
        return Err(Refused::Unsound("content in an entry that is not a file"));
    }
    if entry.path.as_bytes().len().max(target) > longest {
        return Err(Refused::Unsound("a path over the limit"));
    }
    Ok(())
}

fn check_found(found: &Result<Found, Gap>, longest: u64) -> Result<(), Refused> {
    match found {
        Ok(Found::Elf(elf)) if !matches!(elf.bits, 32 | 64) => Err(Refused::Unsound("an ELF file of unknown width")),
        Ok(Found::Text(text)) if text.len() as u64 > longest => Err(Refused::Unsound("a text over the limit")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
