//! Layers with a table of contents: only those pieces are read that somebody looks into. The descriptor of the layer, which
//! the manifest's digest covers, has the digest of the table, and the table those of the pieces: nothing is believed that was
//! not verified. A zTOC comes from beside the layer, and whoever hands it in says what binds it.
//!
//! A table tells names, types and sizes, but not the leading bytes by which extractors choose. So the first piece of every
//! file is read; what is passed over lies inside of large files. The answers are those of the whole layer.

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

use crate::model::{Digest, Entry, Found, Gap, Limits, Meter};
use unpack::pipe::Cancel;

use super::extract::look;
use super::{Compression, EXTRACTORS, LayerScan, ScanError};
use file::RangedFile;
use pieces::{Pieces, Streams};
use stored::StoredEntries;
use table::TableMember;

/// Every form of such a table: one file of this folder, one line here. The first that is promised is taken.
const FORMATS: &[TableFormat] = &[zstd_chunked::FORMAT, estargz::FORMAT, soci::FORMAT];

/// A form of table.
struct TableFormat {
    /// For reports.
    name: &'static str,
    compression: Compression,
    /// Whether a layer says of itself that it has a table, or somebody else does.
    promised: fn(&Ranged<'_>) -> bool,
    /// Reads and verifies it.
    table: for<'a> fn(&Ranged<'a>, &Limits) -> Result<Toc<'a>, PartialError>,
}

/// A verified table.
struct Toc<'a> {
    members: Vec<TableMember>,
    /// Where in the blob all pieces end.
    end: u64,
    /// Bytes of the blob that were read for it.
    read: u64,
    streams: Streams<'a>,
}

/// Annotations of a layer's descriptor (OCI image-spec, `annotations.md`).
pub type Annotations = BTreeMap<String, String>;

/// Opens a range of a blob; `None` from a medium that only gives whole blobs.
pub type OpenRange<'a> = dyn Fn(Range<u64>) -> io::Result<Option<Box<dyn Read + Send + 'a>>> + Sync + 'a;

/// A layer's blob, to be read from any place on.
pub struct Ranged<'a> {
    /// What its descriptor says.
    pub annotations: &'a Annotations,
    /// Its zTOC, if one is at hand, as it was verified by who found it.
    pub ztoc: Option<&'a [u8]>,
    /// Bytes of it.
    pub size: u64,
    /// How its bytes are had.
    pub open: &'a OpenRange<'a>,
    /// Bytes that are read as fast as another range is opened.
    pub cost: u64,
    /// Threads that read it.
    pub threads: NonZeroUsize,
}

impl std::fmt::Debug for Ranged<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ranged").field("size", &self.size).finish_non_exhaustive()
    }
}

/// What became of the wish to read a layer in part.
#[derive(Debug)]
pub enum Partly {
    /// It was.
    Scanned {
        /// What the layer holds: `unpacked` counts the bytes of its files.
        scan: LayerScan,
        /// Bytes of the blob that were read.
        read: u64,
        /// The form of its table.
        format: &'static str,
    },
    /// It must be read whole, and why.
    Whole(String),
}

/// Why a table could not be used.
enum PartialError {
    /// Nothing is wrong with it by its digest, but it cannot be read. The layer can, as a whole.
    Unusable(String),
    /// The layer is damaged, or could not be read.
    Fatal(ScanError),
}

impl From<io::Error> for PartialError {
    /// An error of the medium.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::Unsupported => Self::Unusable(error.to_string()),
            _ => Self::Fatal(ScanError::Read(error)),
        }
    }
}

/// Whether a layer can be read in part, as far as it says.
pub fn is_offered(blob: &Ranged<'_>) -> bool {
    FORMATS.iter().any(|format| (format.promised)(blob))
}

/// Scans a layer by its table of contents.
pub fn scan_partly<'a>(
    blob: &'a Ranged<'a>,
    limits: &Limits,
    meter: &'a dyn Meter,
    cancel: &'a Cancel,
) -> Result<Partly, ScanError> {
    let Some(format) = FORMATS.iter().find(|format| (format.promised)(blob)) else {
        return Ok(Partly::Whole("it has no table of contents".to_owned()));
    };
    let toc = match (format.table)(blob, limits) {
        Ok(toc) => toc,
        Err(PartialError::Unusable(why)) => {
            return Ok(Partly::Whole(format!("its {} table cannot be used: {why}", format.name)));
        }
        Err(PartialError::Fatal(error)) => return Err(error),
    };
    let pieces = || Pieces::new(StoredEntries::new(blob, toc.end, meter, cancel), &toc.streams, limits);
    let batches = batches(&toc.members, toc.streams.batch());
    let (found, read) = scan(&toc.members, &batches, &pieces, blob.threads, limits)?;
    meter.add(blob.size.saturating_sub(read));
    let entries: Vec<Entry> = toc.members.into_iter().map(|member| member.entry).collect();
    let unpacked = entries.iter().map(|entry| entry.size).sum();
    let scan = LayerScan { compression: format.compression, unpacked, diff_id: None, entries, found };
    Ok(Partly::Scanned { scan, read: toc.read + read, format: format.name })
}

/// What was found, by the places of members.
type Answers = BTreeMap<usize, Vec<Result<Found, Gap>>>;

/// Looks into files, several at once: pieces need nothing of each other. Also says how many bytes were read.
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

/// Files that lie together: so many that a thread reads on for a while, up to so many stored bytes.
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

/// One thread: takes batches in their order, so that it reads forward.
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

/// The digest of some bytes against the promised one.
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
