//! Turns a layer blob into a [`LayerScan`] in one forward pass: its entries, and the findings of the extractors in the
//! files that they selected. A pure function of the blob: it extracts no file and runs none.

mod compat_note;
mod decompress;
mod elf;
mod error;
mod extract;
mod fatbin;
mod folder;
mod imports;
mod nccl;
mod overlay;
mod pin;
mod program;
mod script;
mod section_names;
mod sections;
mod spool;
mod squashfs;
mod text;
mod torch;
mod tree;

use std::collections::BTreeMap;
use std::io::{self, BufRead as _};
use std::thread;

use crate::tar::{TarError, TarInput, TarReader};
use model::{BuildOptions, Digest, Entry, EntryKind, Found, Gap, Hasher, Limits, part};
use unpack::pipe::{Pipe, PipeWriter, pipe};
use unpack::pool::Pool;

use decompress::BoundedDecoder;
use extract::{Extractor, FileContent, look};

pub use decompress::{Compression, CompressionError, DecompressError};
pub use error::ScanError;
pub use fatbin::gpu_code;
pub use folder::scan_folder;
pub use overlay::{OverlayMarks, OwnProcess, scan_overlay};
pub use squashfs::scan_squashfs;
pub use tree::TreeJobs;

/// All extractors: each has one file of this folder and one line here.
const EXTRACTORS: &[Extractor] = &[
    compat_note::EXTRACTOR,
    elf::EXTRACTOR,
    fatbin::EXTRACTOR,
    imports::EXTRACTOR,
    nccl::EXTRACTOR,
    pin::EXTRACTOR,
    program::EXTRACTOR,
    text::EXTRACTOR,
    torch::BUILD_OPTIONS,
    torch::ARCH_FLAGS,
    torch::NCCL_VERSION,
];

/// Name of a whiteout that hides all of a directory (OCI image-spec, `layer.md`, "Opaque Whiteout").
const OPAQUE: &[u8] = b".wh..wh..opq";

/// Content of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerScan {
    /// Compression of the blob, detected from its bytes.
    pub compression: Compression,
    /// Size of the tar inside, in bytes.
    pub unpacked: u64,
    /// Digest of the tar inside, which the image configuration calls the diff ID; `None` if it was not requested.
    pub diff_id: Option<Digest>,
    /// The tar's entries in order, including whiteouts.
    pub entries: Vec<Entry>,
    /// Findings, and gaps, in the content of an entry, by the entry's index.
    pub found: BTreeMap<usize, Vec<Result<Found, Gap>>>,
}

impl LayerScan {
    /// The scan of a layer without entries.
    pub const fn empty() -> Self {
        Self { compression: Compression::None, unpacked: 0, diff_id: None, entries: Vec::new(), found: BTreeMap::new() }
    }

    /// Bytes of the text files and of the lists of libraries that were read.
    pub fn text_bytes(&self) -> u64 {
        let size = |index: &usize| self.entries.get(*index).map_or(u64::MAX, |entry| entry.size);
        self.found.iter().map(|(index, answers)| text::bytes(answers, size(index))).sum()
    }

    /// Returns true if another scan of the same bytes would have the same result: no gap is due to this machine or this
    /// run.
    pub fn is_reproducible(&self) -> bool {
        let gap = |found: &Result<Found, Gap>| match found {
            Err(gap) | Ok(Found::GpuCode(Err(gap))) => Some(gap.is_transient),
            Ok(Found::Elf(elf)) => elf.symbols.as_ref().err().map(|gap| gap.is_transient),
            Ok(_) => None,
        };
        !self.found.values().flatten().filter_map(gap).any(|is_transient| is_transient)
    }
}

/// Scans a layer. It reads `blob` to its last byte, so that a verifying reader below sees all of it.
///
/// The threads of a pool decode gzip, and zstd with several frames, ahead of the scan.
pub fn scan_layer(
    mut blob: Pipe,
    limits: &Limits,
    want_diff_id: bool,
    pool: Option<&Pool>,
) -> Result<LayerScan, ScanError> {
    let result = scan_unpacked(&mut blob, limits, want_diff_id, pool);
    match result {
        // A damaged tar may be a symptom: if the digest of the blob is wrong, report that.
        Err(ScanError::Compression(_) | ScanError::Tar(_)) => drain(&mut blob).and(result),
        Ok(scan) => drain(&mut blob).map(|()| scan),
        Err(_) => result,
    }
}

/// Decompresses an archive that is not a layer; a plain tar passes unchanged.
pub fn unpack<'a>(
    blob: &'a mut Pipe,
    limits: &Limits,
    pool: Option<&'a Pool>,
) -> Result<impl TarInput<Error = DecompressError> + 'a, DecompressError> {
    decompress::open(blob, limits, pool)
}

/// The build options in the code of a libtorch; `None` if it has none. Public for fuzzing: otherwise this code only
/// sees the bytes of a file through [`scan_layer`].
#[doc(hidden)]
pub fn build_options(library: &[u8]) -> Result<Option<BuildOptions>, String> {
    torch::build_options(&library)
}

/// Reads a blob to its end, where the verification of its digest fails.
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
    if !want_diff_id {
        return scan_tar(&mut Hashed { inner: unpacked, sink: HashSink::None, seen: 0 }, limits);
    }
    if pool.is_none() {
        let mut hashed = Hashed { inner: unpacked, sink: HashSink::Here(Hasher::sha256()), seen: 0 };
        let scan = scan_tar(&mut hashed, limits)?;
        let HashSink::Here(hasher) = hashed.sink else { return Ok(scan) };
        return Ok(LayerScan { diff_id: Some(hasher.finish()), ..scan });
    }
    // Hashing takes about as long as the scan, so another thread does it.
    thread::scope(|scope| {
        let (writer, reader) = pipe();
        let digest = scope.spawn(move || digest_of(reader));
        let mut hashed = Hashed { inner: unpacked, sink: HashSink::Thread(writer), seen: 0 };
        let scan = scan_tar(&mut hashed, limits)?;
        if let HashSink::Thread(writer) = hashed.sink {
            writer.finish();
        }
        let digest = digest.join().map_err(|_panic| ScanError::Panicked)?.map_err(DecompressError::from)?;
        Ok(LayerScan { diff_id: Some(digest), ..scan })
    })
}

fn scan_tar(unpacked: &mut Hashed<'_>, limits: &Limits) -> Result<LayerScan, ScanError> {
    let compression = unpacked.inner.compression();
    let mut tar = TarReader::new(unpacked, limits);
    let mut entries = Vec::new();
    let mut found = BTreeMap::new();
    let mut opaque = Vec::new();
    let mut texts = 0;
    while let Some(entry) = tar.next_member()? {
        if tar.hides_lower() {
            opaque.push(entry.path.child(OPAQUE));
        }
        if entry.kind == EntryKind::File && entry.size > 0 {
            let answers = look(&mut tar, EXTRACTORS, &entry, limits)?;
            texts += text::bytes(&answers, entry.size);
            text::within(texts, limits).map_err(|over| ScanError::Limit(over.advice()))?;
            if !answers.is_empty() {
                found.insert(entries.len(), answers);
            }
        }
        entries.push(entry);
    }
    let unpacked = tar.drain()?;
    entries.iter_mut().for_each(mark_whiteout_device);
    // What overlayfs does with an attribute, layers spell as a whiteout.
    entries.extend(opaque.into_iter().map(|path| Entry { path, kind: EntryKind::File, mode: 0, owner: None, size: 0 }));
    Ok(LayerScan { compression, unpacked, diff_id: None, entries, found })
}

/// Turns a character device with the number 0:0 into a whiteout, as overlayfs reads it (Linux,
/// `Documentation/filesystems/overlayfs.rst`).
fn mark_whiteout_device(entry: &mut Entry) {
    if entry.kind == EntryKind::CharDevice(0, 0) && !entry.path.file_name().starts_with(b".wh.") {
        let path = entry.path.parent().child(&[b".wh.", entry.path.file_name()].concat());
        *entry = Entry { path, kind: EntryKind::File, mode: 0, owner: None, size: 0 };
    }
}

/// The digest of a stream.
fn digest_of(mut bytes: Pipe) -> io::Result<Digest> {
    let mut hasher = Hasher::sha256();
    loop {
        let some = bytes.fill_buf()?;
        if some.is_empty() {
            return Ok(hasher.finish());
        }
        hasher.update(some);
        let count = some.len();
        bytes.consume(count);
    }
}

/// The content of the current member, which can only be read on.
impl<R: TarInput> FileContent for TarReader<'_, R> {
    type Error = TarError<R::Error>;

    fn read(&mut self, _place: u64) -> Result<(u64, &[u8]), Self::Error> {
        Ok(self.chunk()?.map_or((0, &[]), |chunk| (chunk.offset, chunk.bytes)))
    }
}

/// Passes on the unpacked bytes, and hashes them.
struct Hashed<'b> {
    inner: BoundedDecoder<'b>,
    sink: HashSink,
    /// Number of buffered bytes already hashed.
    seen: usize,
}

/// The place where bytes are hashed.
enum HashSink {
    None,
    Here(Hasher),
    Thread(PipeWriter),
}

impl HashSink {
    fn take(&mut self, bytes: &[u8]) {
        match self {
            Self::None => {}
            Self::Here(hasher) => hasher.update(bytes),
            Self::Thread(writer) => {
                // A reader that is gone has panicked, which its thread reports.
                let _listens = writer.write(bytes);
            }
        }
    }
}

impl TarInput for &mut Hashed<'_> {
    type Error = DecompressError;

    fn fill(&mut self) -> Result<&[u8], DecompressError> {
        let bytes = self.inner.fill()?;
        if !matches!(self.sink, HashSink::None) {
            self.sink.take(part(bytes, self.seen..)?);
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
