//! Scanning the layers of an image: several at once, the largest first, each verified.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::model::BlobRef;

use crate::image::source::SourceError;
use crate::image::verify::Verification;
use crate::layer::cache::Key;
use crate::layer::scan::{Compression, LayerScan, ScanError, scan_layer};
use crate::model::{Digest, Hasher};
use unpack::pipe::with_watched_pipe;

use super::part::{self, ByTable, Part};
use super::soci::Tables;
use super::{Error, Means, Place, Plan, PlannedLayer};

/// A layer that was scanned, and whose bytes are the promised ones.
#[derive(Clone, Debug)]
pub(super) struct Scanned {
    pub(super) scan: Arc<LayerScan>,
    /// Digest of the blob as stored: computed here, unless only parts were read.
    pub(super) stored: Digest,
    pub(super) size: u64,
    /// Bytes of the blob that the scan was made of.
    pub(super) read: u64,
    /// Whether the scan was made before.
    pub(super) cached: bool,
    /// The table of contents by which parts were read; `None` where the whole blob was, and verified.
    pub(super) part: Option<ByTable>,
    /// Why it could not be read in part, though it says that it can.
    pub(super) note: Option<String>,
}

impl Scanned {
    /// A layer that was read from its first byte to its last.
    pub(super) fn whole(scan: LayerScan, stored: Digest, size: u64) -> Self {
        Self { scan: Arc::new(scan), stored, size, read: size, cached: false, part: None, note: None }
    }
}

/// A layer's bytes: how many there will be, if that is known.
type Opened<'a> = (Box<dyn Read + Send + 'a>, Option<u64>);

/// Scans every layer of a plan. A layer that is listed several times is scanned once.
pub(super) fn scan<'s>(
    plan: &Plan,
    open: &(dyn Fn(&Place) -> Result<Opened<'s>, SourceError> + Sync),
    tables: Option<&Tables<'_>>,
    means: Means<'_>,
) -> Result<Vec<Scanned>, Error> {
    let count = plan.layers.len();
    let mut waiting: Vec<(usize, &PlannedLayer)> = Vec::new();
    for (index, layer) in plan.layers.iter().enumerate() {
        if !waiting.iter().any(|(_, known)| known.place == layer.place) {
            waiting.push((index, layer));
        }
    }
    // The largest decides how long it takes: it must not be the last to begin.
    waiting.sort_by_key(|(_, layer)| layer.place.blob().map_or(0, |blob| blob.size));
    let waiting = Mutex::new(waiting);
    let done = Mutex::new(BTreeMap::new());
    let failed = Mutex::new(None);
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
    thread::scope(|scope| {
        for _ in 0..means.jobs.get().min(count.max(1)) {
            scope.spawn(|| {
                while let Some((index, layer)) = next().filter(|_| !means.cancel.is_cancelled()) {
                    let what = describe(index, count, layer);
                    match scan_one(layer, open, tables, means, &what) {
                        Ok(scanned) => {
                            done.lock().unwrap_or_else(PoisonError::into_inner).insert(&layer.place, scanned);
                        }
                        Err(error) => {
                            // The first error is the one to tell; the others stop because of it.
                            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                            means.cancel.cancel();
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    plan.layers.iter().map(|layer| done.get(&layer.place).cloned().ok_or(Error::Cancelled)).collect()
}

/// For messages: which layer.
pub(super) fn describe(index: usize, count: usize, layer: &PlannedLayer) -> String {
    let digest = layer.place.blob().map_or_else(|| layer.diff_id.clone(), |blob| blob.digest);
    format!("layer {} of {count} ({}:{})", index + 1, digest.algorithm(), digest.short())
}

fn scan_one<'s>(
    layer: &PlannedLayer,
    open: &(dyn Fn(&Place) -> Result<Opened<'s>, SourceError> + Sync),
    tables: Option<&Tables<'_>>,
    means: Means<'_>,
    what: &str,
) -> Result<Scanned, Error> {
    let known = |blob: &BlobRef| cached(means, blob);
    // Where the digest is known before, the blob is not even opened.
    if let Some(scanned) = layer.place.blob().and_then(|blob| known(&blob)) {
        return Ok(scanned);
    }
    let note = match tables.map(|tables| part::scan(layer, tables, means, what)).transpose()? {
        Some(Part::Scanned(scanned)) => return Ok(scanned),
        Some(Part::Whole(why)) => Some(why),
        Some(Part::NotOffered) | None => None,
    };
    let (mut reader, size) = open(&layer.place)?;
    let expected = promised(&layer.place, size);
    let meter = means.progress.begin(what, size.or(expected.as_ref().map(|blob| blob.size)));
    let error = |error| Error::Layer { layer: what.to_owned(), error };
    let (limits, pool) = (means.limits, means.pool);
    if let Some(expected) = expected {
        if let Some(scanned) = known(&expected) {
            return Ok(scanned);
        }
        let mut verification = Verification::new(expected.clone());
        let watch = |bytes: &[u8]| verification.see(bytes);
        let scan = with_watched_pipe(
            reader,
            watch,
            |bytes| meter.add(bytes),
            means.cancel,
            |pipe| scan_layer(pipe, limits, false, pool),
        );
        let scanned = Scanned { note, ..Scanned::whole(scan.map_err(error)?, expected.digest, expected.size) };
        keep(means, &scanned);
        return Ok(scanned);
    }
    // Of a plain tar, the configuration says what the stored bytes are.
    let head = head(&mut reader).map_err(|failed| error(ScanError::Read(failed)))?;
    if let (Ok(Compression::None), Some(size)) = (Compression::detect(&head), size)
        && let Some(scanned) = known(&BlobRef { digest: layer.diff_id.clone(), size })
    {
        return Ok(scanned);
    }
    // Nobody says what the stored bytes are: the configuration says what the tar inside is.
    let (mut size, mut hasher) = (0, Hasher::sha256());
    let watch = |bytes: &[u8]| {
        hasher.update(bytes);
        size += bytes.len() as u64;
        Ok(())
    };
    let reader = Cursor::new(head).chain(reader);
    let scan = with_watched_pipe(
        reader,
        watch,
        |bytes| meter.add(bytes),
        means.cancel,
        |pipe| scan_layer(pipe, limits, true, pool),
    );
    let scanned = Scanned::whole(scan.map_err(error)?, hasher.finish(), size);
    verify_diff_id(&scanned, &layer.diff_id, what)?;
    keep(means, &scanned);
    Ok(scanned)
}

/// The scan that was made before of a blob.
pub(super) fn cached(means: Means<'_>, blob: &BlobRef) -> Option<Scanned> {
    let scan = means.cache.get(&Key { blob, limits: means.limits })?;
    Some(Scanned { cached: true, ..Scanned::whole(scan, blob.digest.clone(), blob.size) })
}

/// Keeps a scan under every digest that was computed of its bytes: of the blob, and of the tar inside, which may be stored
/// elsewhere without compression. A blob of which only parts were read has none.
pub(super) fn keep(means: Means<'_>, scanned: &Scanned) {
    let limits = means.limits;
    let blob = BlobRef { digest: scanned.stored.clone(), size: scanned.size };
    let Some(diff_id) = &scanned.scan.diff_id else {
        means.cache.put(&Key { blob: &blob, limits }, &scanned.scan);
        return;
    };
    // What a scan was asked for besides is no part of what the bytes hold.
    let scan = LayerScan { diff_id: None, ..LayerScan::clone(&scanned.scan) };
    means.cache.put(&Key { blob: &blob, limits }, &scan);
    if *diff_id != scanned.stored {
        let tar = BlobRef { digest: diff_id.clone(), size: scan.unpacked };
        means.cache.put(&Key { blob: &tar, limits }, &LayerScan { compression: Compression::None, ..scan });
    }
}

/// The first bytes, as many as tell how the others are compressed.
fn head(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    io::copy(&mut reader.take(8), &mut head)?;
    Ok(head)
}

/// What the place itself promises of the stored bytes: a descriptor, or a member named by its digest.
pub(super) fn promised(place: &Place, size: Option<u64>) -> Option<BlobRef> {
    match place {
        Place::Blob { .. } => place.blob(),
        Place::Member(path) => {
            let parts: Vec<&str> =
                path.components().map(|part| std::str::from_utf8(part).unwrap_or_default()).collect();
            let [.., "blobs", algorithm, hex] = *parts.as_slice() else { return None };
            Some(BlobRef { digest: format!("{algorithm}:{hex}").parse().ok()?, size: size? })
        }
    }
}

/// The tar of a layer against the configuration.
pub(super) fn verify_diff_id(scanned: &Scanned, diff_id: &Digest, what: &str) -> Result<(), Error> {
    let plain = (scanned.scan.compression == Compression::None).then(|| scanned.stored.clone());
    let Some(found) = scanned.scan.diff_id.clone().or(plain).filter(|found| found != diff_id) else { return Ok(()) };
    let text = format!("the layer is corrupt: its tar has the digest {found}, the image configuration says {diff_id}");
    Err(Error::Layer {
        layer: what.to_owned(),
        error: ScanError::Read(io::Error::new(io::ErrorKind::InvalidData, text)),
    })
}
