//! Turns one layer blob into a [`LayerScan`] in one forward pass: what is in it, and what extractors found in the files
//! they asked for. A pure function of the blob: nothing is extracted, nothing runs.

mod compat_note;
mod decompress;
mod elf;
mod error;
mod extract;
mod fatbin;
mod folder;
mod nccl;
mod overlay;
mod partial;
mod text;
mod torch;

use std::collections::BTreeMap;
use std::io::BufRead as _;

use crate::layer::tar::{TarError, TarInput, TarReader};
use crate::model::{BuildOptions, Digest, Entry, EntryKind, Found, Gap, Hasher, Limits, part};
use unpack::pipe::Pipe;
use unpack::pool::Pool;

use decompress::BoundedDecoder;
use extract::{Extractor, Running};

pub use decompress::{Compression, CompressionError, DecompressError};
pub use error::ScanError;
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
        // Damage is a symptom: if the blob is not the promised one, that is the cause to report.
        Err(ScanError::Compression(_) | ScanError::Tar(_)) => drain(&mut blob).and(result),
        Ok(scan) => drain(&mut blob).map(|()| scan),
        Err(_) => result,
    }
}

/// The bytes inside a compressed archive that is no layer itself; a plain one passes as it is.
pub fn unpack<'a>(
    blob: &'a mut Pipe,
    limits: &Limits,
    pool: Option<&'a Pool>,
) -> Result<impl TarInput<Error = DecompressError> + 'a, DecompressError> {
    decompress::open(blob, limits, pool)
}

/// What the code of a libtorch says of how it was built; `None` where it says nothing. Here for fuzzing: otherwise the bytes
/// of a file only come to it through [`scan_layer`].
#[doc(hidden)]
pub fn build_options(library: &[u8]) -> Result<Option<BuildOptions>, String> {
    torch::build_options(&library)
}

/// Reads a blob to its end, where a verification fails that compares its digest.
fn drain(blob: &mut Pipe) -> Result<(), ScanError> {
    loop {
        let count = blob.fill_buf().map_err(DecompressError::from)?.len();
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
    let unpacked = decompress::open(blob, limits, pool)?;
    let compression = unpacked.compression();
    let mut hasher = want_diff_id.then(Hasher::sha256);
    let mut tar = TarReader::new(Hashed { inner: unpacked, hasher: hasher.as_mut(), seen: 0 }, limits);
    let mut entries = Vec::new();
    let mut found = BTreeMap::new();
    while let Some(entry) = tar.next_member()? {
        if entry.kind == EntryKind::File && entry.size > 0 {
            let answers = extract(&mut tar, &entry, limits)?;
            if !answers.is_empty() {
                found.insert(entries.len(), answers);
            }
        }
        entries.push(entry);
    }
    let unpacked = tar.drain()?;
    let diff_id = hasher.map(Hasher::finish);
    Ok(LayerScan { compression, unpacked, diff_id, entries, found })
}

/// Shows the content of one file to every extractor that wants it.
fn extract<R: TarInput>(
    tar: &mut TarReader<'_, R>,
    entry: &Entry,
    limits: &Limits,
) -> Result<Vec<Result<Found, Gap>>, TarError<R::Error>> {
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

fn rest<R: TarInput>(
    tar: &mut TarReader<'_, R>,
    mut running: Running,
) -> Result<Vec<Result<Found, Gap>>, TarError<R::Error>> {
    if !running.is_idle() {
        while let Some(chunk) = tar.chunk()? {
            running.push(chunk.offset, chunk.bytes);
        }
    }
    Ok(running.finish())
}

/// Hashes the bytes of a blob as they come to hand, if there is a hasher.
struct Hashed<'h, 'b> {
    inner: BoundedDecoder<'b>,
    hasher: Option<&'h mut Hasher>,
    /// How many of the bytes at hand it has seen.
    seen: usize,
}

impl TarInput for Hashed<'_, '_> {
    type Error = DecompressError;

    fn fill(&mut self) -> Result<&[u8], DecompressError> {
        let bytes = self.inner.fill()?;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(part(bytes, self.seen..)?);
            self.seen = bytes.len();
        }
        Ok(bytes)
    }

    fn advance(&mut self, count: usize) {
        self.inner.advance(count);
        self.seen = self.seen.saturating_sub(count);
    }
}

#[cfg(test)]
mod tests;
