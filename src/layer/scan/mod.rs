//! Turns one layer blob into a [`LayerScan`] in one forward pass: what is in it, and what extractors found in the files
//! they asked for. A pure function of the blob: nothing is extracted, nothing runs.

mod compat_note;
mod decompress;
mod elf;
mod extract;
mod fatbin;
mod folder;
mod nccl;
mod overlay;
mod partial;
mod text;
mod torch;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use crate::layer::tar::{TarError, TarErrorKind, TarReader};
use crate::model::{BuildOptions, Digest, Entry, EntryKind, Found, Gap, Hasher, Limits};
use unpack::pipe::Pipe;
use unpack::pool::Pool;

use extract::{Extractor, Running};

pub use decompress::Compression;
pub use fatbin::gpu_code;
pub use folder::scan_folder;
pub use overlay::scan_overlay;
pub use partial::{Annotations, OpenRange, Partly, Ranged, is_offered, scan_partly};

/// Everyone who looks into files: one file of this folder, one line here.
const EXTRACTORS: &[Extractor] = &[
    compat_note::EXTRACTOR,
    elf::EXTRACTOR,
    fatbin::EXTRACTOR,
    nccl::EXTRACTOR,
    text::EXTRACTOR,
    torch::BUILD_OPTIONS,
    torch::ARCH_FLAGS,
    torch::NCCL_VERSION,
];

/// What one layer holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerScan {
    /// How the blob is compressed, by its bytes.
    pub compression: Compression,
    /// Bytes of the tar inside.
    pub unpacked: u64,
    /// Digest of the tar inside, if it was asked for.
    pub diff_id: Option<Digest>,
    /// The tar's entries in its order, whiteouts among them.
    pub entries: Vec<Entry>,
    /// What was found in the content of an entry (by its index), and what could not be found out.
    pub found: BTreeMap<usize, Vec<Result<Found, Gap>>>,
}

impl LayerScan {
    /// Whether another scan of the same bytes would say the same: nothing failed for a reason of this machine or this run.
    pub fn is_reproducible(&self) -> bool {
        let gap = |found: &Result<Found, Gap>| match found {
            Err(gap) | Ok(Found::GpuCode(Err(gap))) => Some(gap.passing),
            Ok(Found::Elf(elf)) => elf.symbols.as_ref().err().map(|gap| gap.passing),
            Ok(_) => None,
        };
        !self.found.values().flatten().filter_map(gap).any(|passing| passing)
    }
}

/// Why a layer could not be scanned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The blob could not be read, or is not what its descriptor says.
    #[error("{0}")]
    Read(io::Error),
    /// The compressed bytes are damaged.
    #[error("{0}")]
    Compression(decompress::CompressionError),
    /// The tar inside is damaged.
    #[error("{0}")]
    Tar(TarError),
    /// A bound of [`Limits`] was passed.
    #[error("{0}")]
    Limit(String),
    /// A piece of a layer that is read in part is not the promised one.
    #[error("{0}")]
    Piece(String),
}

/// Scans one layer. `blob` is read to its last byte, so that whoever verifies it below has seen all of it.
///
/// With a pool, its threads unpack gzip ahead, and zstd of many frames.
pub fn scan_layer(
    mut blob: Pipe,
    limits: &Limits,
    want_diff_id: bool,
    pool: Option<&Pool>,
) -> Result<LayerScan, ScanError> {
    let result = scan_unpacked(&mut blob, limits, want_diff_id, pool);
    match result {
        // Damage is a symptom: if the blob is not the promised one, that is the cause to tell.
        Err(ScanError::Compression(_) | ScanError::Tar(_)) => drain(&mut blob).map_err(ScanError::Read).and(result),
        Ok(scan) => drain(&mut blob).map_err(ScanError::Read).map(|()| scan),
        Err(_) => result,
    }
}

/// The bytes inside a compressed archive that is no layer itself; a plain one passes as it is.
pub fn unpack<'a>(blob: &'a mut Pipe, limits: &Limits, pool: Option<&'a Pool>) -> io::Result<impl BufRead + 'a> {
    decompress::open(blob, limits, pool)
}

/// What the code of a libtorch says of how it was built; `None` where it says nothing. Here for fuzzing: otherwise the bytes
/// of a file only come to it through [`scan_layer`].
#[doc(hidden)]
pub fn build_options(library: &[u8]) -> Result<Option<BuildOptions>, String> {
    torch::build_options(&library)
}

fn drain(blob: &mut Pipe) -> io::Result<()> {
    loop {
        let count = blob.fill_buf()?.len();
        if count == 0 {
            return Ok(());
        }
        blob.consume(count);
    }
}

fn scan_unpacked(
    blob: &mut Pipe,
    limits: &Limits,
    want_diff_id: bool,
    pool: Option<&Pool>,
) -> Result<LayerScan, ScanError> {
    let unpacked = decompress::open(blob, limits, pool).map_err(cause)?;
    let compression = unpacked.compression();
    let mut hashed = Hashed { inner: unpacked, hasher: want_diff_id.then(Hasher::sha256) };
    let mut tar = TarReader::new(&mut hashed, limits);
    let mut entries = Vec::new();
    let mut found = BTreeMap::new();
    while let Some(entry) = tar.next_member().map_err(tar_cause)? {
        if entry.kind == EntryKind::File && entry.size > 0 {
            let answers = extract(&mut tar, &entry, limits).map_err(tar_cause)?;
            if !answers.is_empty() {
                found.insert(entries.len(), answers);
            }
        }
        entries.push(entry);
    }
    let unpacked = tar.drain().map_err(tar_cause)?;
    let diff_id = hashed.hasher.map(Hasher::finish);
    Ok(LayerScan { compression, unpacked, diff_id, entries, found })
}

/// Shows the content of one file to every extractor that wants it.
fn extract<R: BufRead>(
    tar: &mut TarReader<'_, R>,
    entry: &Entry,
    limits: &Limits,
) -> Result<Vec<Result<Found, Gap>>, TarError> {
    // The leading bytes decide who wants the file. A chunk may be cut anywhere, so they are gathered first.
    let mut head = Vec::new();
    let mut at = 0;
    while head.len() < extract::HEAD {
        let Some(chunk) = tar.chunk()? else { break };
        if head.is_empty() {
            at = chunk.offset;
        } else if at + head.len() as u64 != chunk.offset {
            // A hole follows: what comes behind it is no leading byte.
            let mut running = Running::start(EXTRACTORS, entry, &head, at, limits);
            running.push(at, &head);
            running.push(chunk.offset, chunk.bytes);
            return rest(tar, running);
        }
        head.extend_from_slice(chunk.bytes);
    }
    let mut running = Running::start(EXTRACTORS, entry, &head, at, limits);
    running.push(at, &head);
    rest(tar, running)
}

fn rest<R: BufRead>(tar: &mut TarReader<'_, R>, mut running: Running) -> Result<Vec<Result<Found, Gap>>, TarError> {
    if !running.is_idle() {
        while let Some(chunk) = tar.chunk()? {
            running.push(chunk.offset, chunk.bytes);
        }
    }
    Ok(running.finish())
}

/// Hashes what goes through, if asked.
#[derive(Debug)]
struct Hashed<R> {
    inner: R,
    hasher: Option<Hasher>,
}

impl<R: BufRead> BufRead for Hashed<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        // What is consumed lies in the buffer; where nothing is, an error may come, which is not to be lost.
        if amount > 0
            && let Some(hasher) = &mut self.hasher
            && let Ok(bytes) = self.inner.fill_buf()
        {
            hasher.update(bytes.get(..amount).unwrap_or_default());
        }
        self.inner.consume(amount);
    }
}

impl<R: BufRead> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

/// An error from below the tar reader is told as what it is.
fn tar_cause(error: TarError) -> ScanError {
    match error.what {
        TarErrorKind::Read(below) => cause(below),
        TarErrorKind::Limit(_) => ScanError::Limit(error.to_string()),
        TarErrorKind::Malformed(_) => ScanError::Tar(error),
    }
}

fn cause(error: io::Error) -> ScanError {
    match error.downcast::<decompress::DecompressError>() {
        Ok(decompress::DecompressError::Damage(damage)) => ScanError::Compression(damage),
        Ok(decompress::DecompressError::Limit(limit)) => ScanError::Limit(limit),
        Err(error) => ScanError::Read(error),
    }
}

#[cfg(test)]
mod tests;
