//! Partial reads of layers with a table of contents: only the pieces that an extractor needs are read. The layer's
//! descriptor, which the manifest's digest covers, has the digest of the table, and the table has those of the pieces:
//! no unverified byte is trusted. A zTOC is stored outside of the layer, so its finder reports what binds it to the
//! layer.
//!
//! A table lists names, types and sizes, but not the leading bytes by which extractors select files. So the first piece
//! of every file is read, and only parts of large files are skipped. The result is that of a whole read.

mod estargz;
mod file;
mod listing;
mod piece_error;
mod pieces;
mod soci;
mod spans;
mod stored;
mod table;
mod zstd_chunked;
mod ztoc;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::model::{Digest, Entry, Found, Gap, ImagePath, Limits, Meter};
use unpack::pipe::Cancel;

use super::extract::look;
use super::{Compression, EXTRACTORS, LayerScan, ScanError};
use file::RangedFile;
use pieces::{Pieces, Streams};
use stored::StoredEntries;
use table::TableMember;

/// All formats of tables: each has one file of this folder and one line here. The first format on offer is used.
const FORMATS: &[TableFormat] = &[zstd_chunked::FORMAT, estargz::FORMAT, soci::FORMAT];

/// A format of tables.
struct TableFormat {
    /// Name for reports.
    name: &'static str,
    compression: Compression,
    /// Returns true if the layer's annotations, or the finder of a zTOC, offer a table.
    promised: fn(&Ranged<'_>) -> bool,
    /// Reads and verifies the table.
    table: for<'a> fn(&Ranged<'a>, &Limits) -> Result<Toc<'a>, PartialError>,
}

/// A verified table of contents.
struct Toc<'a> {
    members: Vec<TableMember>,
    /// End of all pieces in the blob.
    end: u64,
    /// Bytes of the blob read for the table.
    read: u64,
    streams: Streams<'a>,
}

/// Annotations of a layer's descriptor (OCI image-spec, `annotations.md`).
pub type Annotations = BTreeMap<String, String>;

/// Opens a range of a blob; `None` if the medium only provides whole blobs.
pub type OpenRange<'a> = dyn Fn(Range<u64>) -> io::Result<Option<Box<dyn Read + Send + 'a>>> + Sync + 'a;

/// A layer's blob that can be read from any offset.
pub struct Ranged<'a> {
    /// Annotations of its descriptor.
    pub annotations: &'a Annotations,
    /// Its zTOC, if its finder provides a verified one.
    pub ztoc: Option<&'a [u8]>,
    /// Size in bytes.
    pub size: u64,
    /// Opens ranges of it.
    pub open: &'a OpenRange<'a>,
    /// Number of bytes that can be read in the time it takes to open another range.
    pub cost: u64,
    /// Number of reading threads.
    pub threads: NonZeroUsize,
}

impl std::fmt::Debug for Ranged<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ranged").field("size", &self.size).finish_non_exhaustive()
    }
}

/// Outcome of a partial read.
#[derive(Debug)]
pub enum Partly {
    /// The layer was read in part.
    Scanned {
        /// Content of the layer. Its `unpacked` is the total size of its files.
        scan: LayerScan,
        /// Bytes of the blob that were read.
        read: u64,
    },
    /// The table cannot be used, for this reason.
    Unusable(String),
}

/// Reason why a table cannot be used.
enum PartialError {
    /// Its digest is right, but it cannot be read. The layer can still be read whole.
    Unusable(String),
    /// The layer is damaged, or cannot be read.
    Fatal(ScanError),
}

impl From<io::Error> for PartialError {
    /// Converts an error of the medium.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::Unsupported => Self::Unusable(error.to_string()),
            _ => Self::Fatal(ScanError::Read(error)),
        }
    }
}

/// The name of the format of the table that the layer's annotations, or a zTOC, offer.
pub fn table_format(blob: &Ranged<'_>) -> Option<&'static str> {
    FORMATS.iter().find(|format| (format.promised)(blob)).map(|format| format.name)
}

/// Returns true for a file of a layer that belongs to the table's format, so that the table does not list it.
pub fn is_part_of_table(path: &ImagePath) -> bool {
    estargz::OWN.iter().any(|own| *path == ImagePath::from(*own))
}

/// Scans a layer with its table of contents.
pub fn scan_partly<'a>(
    blob: &'a Ranged<'a>,
    limits: &Limits,
    meter: &'a dyn Meter,
    cancel: &'a Cancel,
) -> Result<Partly, ScanError> {
    let Some(format) = FORMATS.iter().find(|format| (format.promised)(blob)) else {
        return Ok(Partly::Unusable("it has no table of contents".to_owned()));
    };
    let toc = match (format.table)(blob, limits) {
        Ok(toc) => toc,
        Err(PartialError::Unusable(why)) => {
            return Ok(Partly::Unusable(format!("its {} table cannot be used: {why}", format.name)));
        }
        Err(PartialError::Fatal(error)) => return Err(error),
    };
    let pieces = || Pieces::new(StoredEntries::new(blob, toc.end, meter, cancel), &toc.streams, limits);
    let batches = batches(&toc.members, toc.streams.batch());
    let (found, read) = scan(&toc.members, &batches, &pieces, blob.threads, limits)?;
    meter.add(blob.size.saturating_sub(read));
    let entries: Vec<Entry> = toc.members.into_iter().map(|member| member.entry).collect();
    let unpacked = entries.iter().map(|entry| entry.size).sum();
    let scan =
        LayerScan { compression: format.compression, unpacked, diff_id: None, entries, found, ambiguities: None };
    Ok(Partly::Scanned { scan, read: toc.read + read })
}

/// Findings by index of the member.
type Answers = BTreeMap<usize, Vec<Result<Found, Gap>>>;

/// Scans files in parallel, since pieces are independent. Also returns the number of bytes read.
fn scan<'a, 'z>(
    members: &[TableMember],
    batches: &[Range<usize>],
    pieces: &(dyn Fn() -> Pieces<'a, 'z> + Sync),
    threads: NonZeroUsize,
    limits: &Limits,
) -> Result<(Answers, u64), ScanError> {
    let next = AtomicUsize::new(0);
    let work = || {
        let result = work(members, batches, &next, pieces(), limits);
        if result.is_err() {
            next.store(batches.len(), Ordering::Relaxed);
        }
        result
    };
    let results: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.get().min(batches.len())).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or(Err(ScanError::Panicked))).collect()
    });
    let mut all = (Answers::new(), 0);
    for result in results {
        let (found, read) = result?;
        all.0.extend(found);
        all.1 += read;
    }
    Ok(all)
}

/// Groups adjacent files into batches of up to `most` stored bytes, so that a thread reads forward for a while.
fn batches(members: &[TableMember], most: u64) -> Vec<Range<usize>> {
    let mut batches: Vec<Range<usize>> = Vec::new();
    let mut begin = None;
    for (index, member) in members.iter().enumerate() {
        let (Some(first), Some(last)) = (member.chunks.first(), member.chunks.last()) else { continue };
        let start = begin.filter(|start| last.stored.end - start <= most);
        if let (Some(_), Some(batch)) = (start, batches.last_mut()) {
            batch.end = index + 1;
        } else {
            begin = Some(first.stored.start);
            batches.push(index..index + 1);
        }
    }
    batches
}

/// Runs one thread, which takes batches in order, so that it reads forward.
fn work(
    members: &[TableMember],
    batches: &[Range<usize>],
    next: &AtomicUsize,
    mut pieces: Pieces<'_, '_>,
    limits: &Limits,
) -> Result<(Answers, u64), ScanError> {
    let mut found = Answers::new();
    while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
        let files = members.iter().enumerate().take(batch.end).skip(batch.start);
        for (index, TableMember { entry, chunks }) in files.filter(|(_, member)| !member.chunks.is_empty()) {
            let mut file = RangedFile::new(&entry.path, chunks, &mut pieces);
            let answers = look(&mut file, EXTRACTORS, entry, limits)?;
            file.finish()?;
            if !answers.is_empty() {
                found.insert(index, answers);
            }
        }
    }
    Ok((found, pieces.finish()))
}

/// Compares the digest of some bytes with the expected one.
fn verify(what: &str, bytes: &[u8], expected: &Digest) -> Result<(), PartialError> {
    let mut hasher = expected.hasher();
    hasher.update(bytes);
    let found = hasher.finish();
    if found == *expected {
        return Ok(());
    }
    let text = format!("{what} is corrupt: it has the digest {found}, the layer's descriptor says {expected}");
    Err(PartialError::Fatal(ScanError::Piece(text)))
}

#[cfg(test)]
mod tests;
