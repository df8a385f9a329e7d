//! An archive that can be read only once: standard input, an engine's export, a compressed file. Layers are scanned as
//! they arrive, because the documents that describe them come last.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::thread;

use crate::layers::describe;
use crate::layout::{ImageLayout, LayoutFiles, OpenedFile, blob_path};
use crate::medium::Medium;
use crate::oci::Finder;
use crate::plan::{ImagePlan, LayerLocation, PlannedLayer, over};
use crate::scanned::{KeptUnder, ScannedLayer, ScannedLayers, cached, keep, promised, verify_diff_id};
use crate::source::SourceError;
use crate::target::Selector;
use crate::texts::KeptTexts;
use crate::verify::digest_mismatch;
use crate::{ImageError, Request, ScanContext};
use layer::scan::{DecompressError, LayerScan, ScanError, scan_layer, unpack};
use layer::tar::{LayerPaths, TarError, TarInput, TarReader};
use model::{Digest, Entry, EntryKind, Hasher, ImagePath, Limits, OverLimit};
use unpack::pipe::{PipeWriter, pipe, with_pipe};

use super::dual::first_or;
use super::packed::Packed;
use super::{ArchiveForm, docker, tar_message};

/// Maximum total size of an archive's documents in bytes.
const DOCUMENTS: u64 = 64 << 20;

/// Maximum number of documents and links of an archive. `docker save` writes three for each layer.
const MEMBERS: usize = 1 << 16;

/// Maximum number of layers of an archive, which may hold several images. Each costs a scan, also an empty one.
const LAYERS: usize = 1 << 14;

/// Unpacked bytes of layers that every archive may have, as every layer may.
const SMALL: u64 = 64 << 20;

/// An archive that can be read only once, as a medium.
pub(crate) struct Stream {
    /// Name for reports.
    name: String,
    /// Selects among its images.
    selector: Option<Selector>,
    form: ArchiveForm,
    /// The reference of the archive without a selector, if it has one.
    reference: Option<String>,
    size: Option<u64>,
    /// The stream, until it has been read.
    unread: Option<Box<dyn Read + Send>>,
    archive: StreamedArchive,
}

impl Stream {
    /// An unread stream. `what` is its name in messages, `size` its number of bytes if known.
    pub(crate) fn new(name: String, what: &str, bytes: Box<dyn Read + Send>, size: Option<u64>) -> Self {
        let selector = None;
        let form = ArchiveForm::Any;
        let reference = None;
        Self { name, selector, form, reference, size, unread: Some(bytes), archive: StreamedArchive::empty(what) }
    }

    /// Selects among several images. `reference` is that of the archive, to which a selector can be added.
    pub(super) fn select(self, selector: Option<Selector>, form: ArchiveForm, reference: &str) -> Self {
        Self { selector, form, reference: Some(reference.to_owned()), ..self }
    }

    /// Keeps a document of the stream, which has been read, in the cache, if it has one with this digest.
    pub(crate) fn keep_document(&self, digest: &Digest, context: ScanContext<'_>) {
        if let Some(bytes) = self.archive.documents.values().find(|bytes| digest.is_of(bytes)) {
            context.cache.keep_document(bytes, digest, context.limits);
        }
    }

    /// A stream from standard input.
    pub(crate) fn standard_input(selector: Option<&Selector>) -> Self {
        let name = "standard input";
        Self::new(name.to_owned(), name, Box::new(io::stdin()), None).select(selector.cloned(), ArchiveForm::Any, "-")
    }
}

impl Medium for Stream {
    fn name(&self) -> &str {
        &self.name
    }

    fn plans(&mut self, request: &Request, context: ScanContext<'_>) -> Result<Vec<ImagePlan>, ImageError> {
        if let Some(bytes) = self.unread.take() {
            let bytes = Packed::new(bytes, &request.limits);
            self.archive = read(bytes, self.size, &self.archive.name, context)?;
            self.archive.reference.clone_from(&self.reference);
        }
        let files = &self.archive;
        let selector = self.selector.as_ref();
        let Request { choice, limits, .. } = request;
        let has = |name| files.documents.contains_key(&ImagePath::from(name));
        let oci = || Finder::plans(&ImageLayout::open(files, limits)?, selector, choice, limits);
        let docker = || docker::plans(files, self.reference.as_deref(), selector, choice, limits);
        match self.form {
            ArchiveForm::Any if has("index.json") && has("manifest.json") => first_or(oci(), docker),
            ArchiveForm::Oci if has("index.json") => oci(),
            _ if has("index.json") && !has("manifest.json") => oci(),
            _ => docker(),
        }
    }

    fn scan(&self, plan: &mut ImagePlan, _request: &Request, _context: ScanContext<'_>) -> ScannedLayers {
        let count = plan.layers.len();
        let layers = plan.layers.iter().enumerate();
        layers.map(|(index, layer)| self.archive.scanned(layer, &describe(index, count, layer))).collect()
    }
}

/// The content of a streamed archive.
#[derive(Debug)]
struct StreamedArchive {
    name: String,
    /// As in [`Stream`].
    reference: Option<String>,
    documents: BTreeMap<ImagePath, Vec<u8>>,
    layers: BTreeMap<ImagePath, ScannedLayer>,
    links: BTreeMap<ImagePath, ImagePath>,
}

impl StreamedArchive {
    fn empty(name: &str) -> Self {
        let documents = BTreeMap::new();
        let layers = BTreeMap::new();
        let links = BTreeMap::new();
        Self { name: name.to_owned(), reference: None, documents, layers, links }
    }

    /// Finds a planned layer and verifies its diff ID. `what` names it in messages.
    fn scanned(&self, layer: &PlannedLayer, what: &str) -> Result<ScannedLayer, ImageError> {
        let path = match &layer.location {
            LayerLocation::Member(path) => path.clone(),
            LayerLocation::Blob { digest, .. } => blob_path(digest),
            LayerLocation::Folder(_) | LayerLocation::Squashfs => {
                return Err(ImageError::invalid("a layer without a name"));
            }
        };
        let missing = format!("{} has no member {path}", self.name);
        let scanned = match self.layer(&path) {
            Some(scanned) => scanned,
            None if layer.is_foreign() => return Ok(ScannedLayer::missing_foreign(layer, what, &missing)),
            None => return Err(ImageError::invalid(format!("{missing}, which is {what}"))),
        };
        verify_diff_id(scanned, layer.diff_id.as_ref(), what)?;
        Ok(scanned.clone())
    }

    /// The layer under a member's name, following links.
    fn layer(&self, path: &ImagePath) -> Option<&ScannedLayer> {
        let mut path = path;
        for _ in 0..8 {
            match self.links.get(path) {
                Some(target) => path = target,
                None => break,
            }
        }
        self.layers.get(path)
    }
}

impl LayoutFiles for StreamedArchive {
    fn open(&self, path: &ImagePath) -> Result<Option<OpenedFile<'_>>, SourceError> {
        let found = self.documents.get(path);
        Ok(found.map(|bytes| (Box::new(Cursor::new(bytes)) as Box<dyn Read + Send>, bytes.len() as u64)))
    }

    fn place(&self) -> String {
        self.name.clone()
    }

    fn reference(&self) -> Option<String> {
        self.reference.clone()
    }
}

/// Reads an archive to its end. `name` is for messages.
fn read(
    source: impl Read + Send,
    size: Option<u64>,
    name: &str,
    context: ScanContext<'_>,
) -> Result<StreamedArchive, ImageError> {
    let meter = context.progress.begin(name, size);
    with_pipe(
        source,
        |bytes| meter.add(bytes),
        context.cancel,
        |mut input| {
            let unpacked = unpack(&mut input, context.limits, context.pool)
                .map_err(|error| ImageError::invalid(format!("{name}: {error}")))?;
            let mut reader = ArchiveReader {
                tar: TarReader::new(unpacked, context.limits),
                context,
                documents: 0,
                paths: LayerPaths::default(),
                texts: KeptTexts::default(),
                size,
                layers: 0,
                found: StreamedArchive::empty(name),
            };
            while let Some(entry) = reader.tar.next_member().map_err(|error| tar_error(name, &error))? {
                reader.member(&entry)?;
            }
            let size = reader.tar.drain().map_err(|error| tar_error(name, &error))?;
            if size == 0 {
                return Err(ImageError::invalid(format!("{name} is empty")));
            }
            Ok(reader.found)
        },
    )
}

struct ArchiveReader<'l, R> {
    tar: TarReader<'l, R>,
    context: ScanContext<'l>,
    /// Total size of the documents so far, in bytes.
    documents: u64,
    /// The members so far.
    paths: LayerPaths,
    /// The texts of the layers so far.
    texts: KeptTexts,
    /// Size of the archive, if known.
    size: Option<u64>,
    /// Unpacked bytes of the layers so far.
    layers: u64,
    found: StreamedArchive,
}

impl<R: TarInput<Error = DecompressError>> ArchiveReader<'_, R> {
    fn member(&mut self, entry: &Entry) -> Result<(), ImageError> {
        let target = match &entry.kind {
            EntryKind::Symlink(target) => target.len(),
            EntryKind::Hardlink(target) => target.as_bytes().len(),
            _ => 0,
        };
        let counted = self.paths.count_bytes(&entry.path, target, self.context.limits);
        counted.map_err(|over: OverLimit| ImageError::invalid(format!("{}: {}", self.found.name, over.advice())))?;
        if self.found.links.len() + self.found.documents.len() > MEMBERS {
            let what = format!("{}: more than {MEMBERS} documents and links", self.found.name);
            return Err(ImageError::invalid(what));
        }
        if self.found.layers.len() > LAYERS {
            return Err(ImageError::invalid(format!("{}: more than {LAYERS} layers", self.found.name)));
        }
        match &entry.kind {
            EntryKind::Symlink(target) => {
                self.found.links.insert(entry.path.clone(), entry.path.parent().join(target));
            }
            EntryKind::Hardlink(target) => {
                self.found.links.insert(entry.path.clone(), target.clone());
            }
            EntryKind::File => {
                let head = self.take(512)?;
                if is_layer(entry, &head) {
                    let scanned = self.layer(entry, &head)?;
                    self.texts.add(&scanned.scan, self.context.limits)?;
                    self.layers = self.layers.saturating_add(scanned.scan.unpacked);
                    self.found.layers.insert(entry.path.clone(), scanned);
                } else if entry.size <= self.context.limits.document {
                    self.documents += entry.size;
                    if self.documents > DOCUMENTS {
                        let what = format!("{}: more than {DOCUMENTS} bytes of documents", self.found.name);
                        return Err(ImageError::invalid(what));
                    }
                    let mut bytes = head;
                    bytes.extend(self.take(usize::try_from(self.context.limits.document).unwrap_or(usize::MAX))?);
                    self.found.documents.insert(entry.path.clone(), bytes);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns at least `least` of the member's next bytes, or all that remain.
    fn take(&mut self, least: usize) -> Result<Vec<u8>, ImageError> {
        let mut bytes = Vec::new();
        while bytes.len() < least {
            let name = &self.found.name;
            match self.tar.chunk().map_err(|error| tar_error(name, &error))? {
                Some(chunk) => bytes.extend_from_slice(chunk.bytes),
                None => break,
            }
        }
        Ok(bytes)
    }

    /// Hashes a layer here and scans it on another thread.
    fn layer(&mut self, entry: &Entry, head: &[u8]) -> Result<ScannedLayer, ImageError> {
        let left = self.left();
        let pool = self.context.pool;
        let bounded = Limits { unpacked: left, ..self.context.limits.clone() };
        let limits = &bounded;
        let expected = promised(&LayerLocation::Member(entry.path.clone()), Some(entry.size));
        let what = format!("layer {} of {}", entry.path, self.found.name);
        let bound = (left < self.context.limits.unpacked).then_some(self.context.limits.expansion);
        let scan_error = |error| match (error, bound) {
            // The limit on one layer is higher, so it is that of all layers.
            (ScanError::Limit(_), Some(expansion)) => {
                over(format!("{what} and those before it expand over {expansion}-fold"), "expansion", expansion)
            }
            (error, _) => ImageError::Layer { layer: what.clone(), error },
        };
        let known = expected.as_ref().and_then(|blob| cached(self.context, blob).zip(Some(blob)));
        if let Some((scanned, blob)) = known {
            let mut hasher = blob.digest.hasher();
            self.feed(&mut hasher, head, |_| true)?;
            check(&blob.digest, &hasher.finish(), entry.size).map_err(scan_error)?;
            // The stream cannot be skipped.
            return Ok(ScannedLayer { read: entry.size, ..scanned });
        }
        let scanned: Result<ScannedLayer, ImageError> = thread::scope(|scope| {
            let (mut blocks, input) = pipe();
            let scan = scope.spawn(move || scan_layer(input, limits, true, pool));
            let mut hasher = expected.as_ref().map_or_else(Hasher::sha256, |blob| blob.digest.hasher());
            let fed = self.feed(&mut hasher, head, blocks_of(&mut blocks));
            blocks.finish();
            let scan: Result<LayerScan, ScanError> = scan.join().unwrap_or(Err(ScanError::Panicked));
            // A read error of the stream is the cause of the scan's error.
            fed?;
            let stored = hasher.finish();
            let scan = scan.map_err(scan_error)?;
            if let Some(expected) = &expected {
                check(&expected.digest, &stored, entry.size).map_err(scan_error)?;
            }
            Ok(ScannedLayer::whole(scan, stored, entry.size))
        });
        let scanned = scanned?;
        let under = if expected.is_some() { KeptUnder::Blob } else { KeptUnder::BlobAndTar };
        keep(self.context, &scanned, under);
        Ok(scanned)
    }

    /// Bytes that further layers may unpack to: the expansion counts from the archive's own bytes, over all levels of
    /// compression.
    fn left(&self) -> u64 {
        let Limits { unpacked, expansion, .. } = *self.context.limits;
        let all = self.size.map_or(unpacked, |size| size.saturating_mul(expansion).saturating_add(SMALL));
        unpacked.min(all.saturating_sub(self.layers))
    }

    fn feed(
        &mut self,
        hasher: &mut Hasher,
        head: &[u8],
        mut write: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), ImageError> {
        hasher.update(head);
        let mut listening = write(head);
        let name = &self.found.name;
        while listening {
            let Some(chunk) = self.tar.chunk().map_err(|error| tar_error(name, &error))? else { break };
            hasher.update(chunk.bytes);
            listening = write(chunk.bytes);
        }
        Ok(())
    }
}

/// Compares the digest of a member with the one in its name.
fn check(expected: &Digest, found: &Digest, size: u64) -> Result<(), ScanError> {
    if expected == found {
        return Ok(());
    }
    Err(ScanError::Read(digest_mismatch(expected, found, size)))
}

fn blocks_of(blocks: &mut PipeWriter) -> impl FnMut(&[u8]) -> bool {
    |bytes| blocks.write(bytes)
}

/// Detects layers by content, because every writer names them differently: compressed bytes, a tar header, or (by name)
/// an empty tar.
fn is_layer(entry: &Entry, head: &[u8]) -> bool {
    let compressed = head.starts_with(&[0x1f, 0x8b]) || head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    let ustar = head.get(257..262) == Some(b"ustar");
    let named = entry.path.file_name().ends_with(b".tar") || entry.path.file_name().ends_with(b".tar.gz");
    compressed || ustar || named
}

fn tar_error(name: &str, error: &TarError<DecompressError>) -> ImageError {
    ImageError::invalid(tar_message(name, 0, error))
}
