//! SOCI (soci-snapshotter, `docs/index.md`): any gzip layer, with a table stored beside it, the zTOC. This has the
//! files with their positions in the tar, the positions in the gzip stream at which decoding can start, and the digests
//! of the spans between them. The finder of the zTOC is responsible for its binding to the layer.

use std::ops::Range;

use crate::model::{Digest, EntryKind, FileOwner, Limits, part};

use super::super::Compression;
use super::listing::{ListedLayer, Listing, shown};
use super::pieces::Streams;
use super::spans::Span;
use super::table::{Seal, TableChunk, TableMember};
use super::ztoc::Ztoc;
use super::{PartialError, Ranged, TableFormat, Toc, stored};

/// The only version.
const VERSION: &[u8] = b"0.9";

/// Number of gzip among the algorithms of the schema.
const GZIP: u8 = 1;

/// Maximum distance of a match, in bytes.
const WINDOW: usize = 32 << 10;

/// Size of the checkpoints' head: their number, and the requested size of a span.
const HEAD: usize = 4 + 8;

/// Size of a checkpoint: its offsets in the blob and in the tar, the number of bits before the former, and the window.
const CHECKPOINT: usize = 8 + 8 + 1 + WINDOW;

/// First bytes of a gzip stream (RFC 1952, section 2.3.1).
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// Maximum number of bytes before the first span: a gzip header with its extra field and two short texts.
const LONGEST_HEADER: u64 = 128 << 10;

/// Size of the largest span for a partial read, since spans are held in memory. Writers make spans of 4 MiB, unpacked.
const LARGEST: u64 = 64 << 20;

const BLOCK: u64 = 512;

pub(super) const FORMAT: TableFormat =
    TableFormat { name: "SOCI", compression: Compression::Gzip, promised: |blob| blob.ztoc.is_some(), table };

fn table<'a>(blob: &Ranged<'a>, limits: &Limits) -> Result<Toc<'a>, PartialError> {
    let ztoc = Ztoc::read(blob.ztoc.unwrap_or_default()).map_err(|error| PartialError::Unusable(error.to_string()))?;
    let spans = spans(&ztoc, blob.size).map_err(PartialError::Unusable)?;
    let members = members(&ztoc, &spans, limits).map_err(PartialError::Unusable)?;
    // The bytes before the first span have no digest, and their content is not needed. Reading them shows whether the
    // medium provides ranges.
    let start = spans.first().map(|span| span.stored.start).filter(|start| *start <= LONGEST_HEADER);
    let start = start
        .ok_or_else(|| PartialError::Unusable("its first span begins after the longest gzip header".to_owned()))?;
    if !stored::bytes(blob, 0..start)?.starts_with(&MAGIC) {
        return Err(PartialError::Unusable("the layer does not begin with a gzip header".to_owned()));
    }
    Ok(Toc { members, end: blob.size, read: start, streams: Streams::Spans(spans) })
}

/// The spans, which are contiguous in the blob and in the tar.
fn spans<'z>(ztoc: &Ztoc<'z>, size: u64) -> Result<Vec<Span<'z>>, String> {
    if ztoc.version != VERSION {
        return Err(format!("its version '{}' is not supported, only 0.9 is", shown(ztoc.version)));
    }
    if ztoc.algorithm != GZIP {
        return Err("its layer is not compressed with gzip".to_owned());
    }
    if ztoc.packed != size {
        return Err(format!("it belongs to a layer of {} bytes", ztoc.packed));
    }
    let digests = ztoc.digests();
    let (count, size_said) = (digests.len(), ztoc.checkpoints.len().checked_sub(HEAD));
    let counts =
        [ztoc.last_span.checked_add(1), ztoc.checkpoints.first_chunk().map(|count| u32::from_le_bytes(*count).into())];
    if counts.iter().any(|said| *said != Some(count as u64)) || size_said != count.checked_mul(CHECKPOINT) {
        return Err(format!("it has {count} digests of spans, but a different number of checkpoints"));
    }
    let places = part(ztoc.checkpoints, HEAD..)?.chunks_exact(CHECKPOINT).map(checkpoint);
    let places = places.collect::<Option<Vec<_>>>().ok_or("a span begins at an invalid position")?;
    let mut spans = Vec::new();
    for (number, (digest, place)) in digests.zip(&places).enumerate() {
        let digest = digest.map_err(|error| error.to_string())?;
        let digest: Option<Digest> = std::str::from_utf8(digest).ok().and_then(|text| text.parse().ok());
        let digest = digest.ok_or_else(|| format!("its span {number} has no supported digest"))?;
        let (end, unpacked_end) =
            places.get(number + 1).map_or((size, ztoc.unpacked), |next| (next.packed, next.unpacked));
        let start = place.packed - u64::from(place.bits > 0);
        let is_first_right = number > 0 || place.unpacked == 0;
        if !is_first_right || start >= end || place.unpacked >= unpacked_end || end - start > LARGEST {
            return Err(format!("its span {number} is invalid, or larger than {LARGEST} bytes"));
        }
        let known = usize::try_from(place.unpacked).unwrap_or(usize::MAX).min(WINDOW);
        spans.push(Span {
            stored: start..end,
            bit: (8 - place.bits) % 8,
            unpacked: place.unpacked..unpacked_end,
            window: part(place.window, WINDOW - known..)?,
            digest,
        });
    }
    Ok(spans)
}

/// A boundary between two blocks of a gzip stream.
struct Checkpoint<'z> {
    /// Offset in the blob of the first whole byte after it.
    packed: u64,
    /// Number of bits after it in the byte before, where they are the highest.
    bits: u8,
    unpacked: u64,
    window: &'z [u8],
}

fn checkpoint(bytes: &[u8]) -> Option<Checkpoint<'_>> {
    let number = |at: usize| bytes.get(at..)?.first_chunk().map(|number| u64::from_le_bytes(*number));
    let (packed, unpacked, bits) = (number(0)?, number(8)?, *bytes.get(16)?);
    let window = bytes.get(17..)?;
    (packed > 0 && bits < 8).then_some(Checkpoint { packed, bits, unpacked, window })
}

/// The members of the tar, in order.
fn members(ztoc: &Ztoc<'_>, spans: &[Span<'_>], limits: &Limits) -> Result<Vec<TableMember>, String> {
    let mut listing = Listing::new(limits);
    let mut members = Vec::new();
    // Earliest offset of the next member's header.
    let mut header: u64 = 0;
    for file in ztoc.files() {
        let file = file.map_err(|error| error.to_string())?;
        let wrong = |what: &str| format!("'{}' {what}", shown(file.name));
        let number = |number: u64| u32::try_from(number).map_err(|_number| wrong("has a number too large for a tar"));
        let entry = listing.entry(&ListedLayer {
            name: file.name,
            kind: file.kind,
            size: file.size,
            link: file.link,
            mode: number(file.mode & 0o7777)?,
            owner: FileOwner { user: file.owner.0, group: file.owner.1 },
            device: (number(file.device.0)?, number(file.device.1)?),
        })?;
        if file.is_sparse {
            return Err(wrong("has holes at unknown positions"));
        }
        let end = file.offset.checked_add(entry.size).filter(|end| *end <= ztoc.unpacked);
        let is_behind = file.offset >= header + BLOCK && file.offset % BLOCK == 0;
        let Some(end) = end.filter(|_| is_behind) else { return Err(wrong("lies at an invalid position in the tar")) };
        header = end.next_multiple_of(BLOCK);
        let chunks = if entry.kind == EntryKind::File { chunks(file.offset..end, spans) } else { Vec::new() };
        members.push(TableMember { entry, chunks });
    }
    Ok(members)
}

/// Splits a range of the tar at the boundaries of spans.
fn chunks(file: Range<u64>, spans: &[Span<'_>]) -> Vec<TableChunk> {
    let first = spans.partition_point(|span| span.unpacked.end <= file.start);
    let of_file = spans.iter().enumerate().skip(first).take_while(|(_, span)| span.unpacked.start < file.end);
    let chunk = |(number, span): (usize, &Span<'_>)| {
        let (start, end) = (span.unpacked.start.max(file.start), span.unpacked.end.min(file.end));
        TableChunk {
            offset: start - file.start,
            size: end - start,
            stored: span.stored.clone(),
            inner: start - span.unpacked.start,
            seal: Seal::Span(number),
        }
    };
    of_file.map(chunk).collect()
}

#[cfg(test)]
mod tests;
