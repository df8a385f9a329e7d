//! Scans the layers of an image: several at once, the largest first, each verified.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::source::{SourceError, SourceErrorKind};
use crate::verify::Verification;
use layer::cache::ScanKey;
use layer::scan::{Compression, ScanError, scan_layer};
use model::{BlobRef, Hasher};
use unpack::pipe::with_watched_pipe;

use super::plan::{ImagePlan, LayerLocation, PlannedLayer};
use super::scanned::{KeptUnder, ScannedLayer, ScannedLayers, cached, keep, promised, verify_diff_id};
use super::texts::KeptTexts;
use super::{ImageError, ScanContext};

/// A layer's bytes, and their number where it is known.
type LayerReader<'a> = (Box<dyn Read + Send + 'a>, Option<u64>);

/// Scans every layer of a plan. A layer that is listed several times is scanned once.
pub(super) fn scan<'s>(
    plan: &ImagePlan,
    open: &(dyn Fn(&LayerLocation) -> Result<LayerReader<'s>, SourceError> + Sync),
    context: ScanContext<'_>,
) -> ScannedLayers {
    let count = plan.layers.len();
    let mut waiting: Vec<(usize, &PlannedLayer)> = Vec::new();
    for (index, layer) in plan.layers.iter().enumerate() {
        if !waiting.iter().any(|(_, known)| known.location == layer.location) {
            waiting.push((index, layer));
        }
    }
    // The largest layer determines the total time, so it starts first.
    waiting.sort_by_key(|(_, layer)| layer.location.blob().map_or(0, |blob| blob.size));
    let waiting = Mutex::new(waiting);
    let done = Mutex::new(BTreeMap::new());
    let failed = Mutex::new(None);
    let texts = KeptTexts::default();
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
    thread::scope(|scope| {
        for _ in 0..context.jobs.get().min(count.max(1)) {
            scope.spawn(|| {
                while let Some((index, layer)) = next().filter(|_| !context.cancel.is_cancelled()) {
                    let what = describe(index, count, layer);
                    let scanned = scan_one(layer, open, context, &what);
                    let scanned = scanned.and_then(|scanned| {
                        texts.add(&scanned.scan, context.limits)?;
                        Ok(scanned)
                    });
                    match scanned {
                        Ok(scanned) => {
                            done.lock().unwrap_or_else(PoisonError::into_inner).insert(&layer.location, scanned);
                        }
                        Err(error) => {
                            // Report the first error; the others are consequences of the cancellation.
                            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                            context.cancel.cancel();
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
    let scanned = |(index, layer): (usize, &PlannedLayer)| {
        let scanned = done.get(&layer.location).cloned().ok_or(ImageError::Cancelled)?;
        verify_diff_id(&scanned, layer.diff_id.as_ref(), &describe(index, count, layer))?;
        Ok(scanned)
    };
    plan.layers.iter().enumerate().map(scanned).collect()
}

/// Position and digest of a layer, for messages.
pub(super) fn describe(index: usize, count: usize, layer: &PlannedLayer) -> String {
    let digest = layer.location.blob().map(|blob| blob.digest).or_else(|| layer.diff_id.clone());
    let digest = digest.map(|digest| format!(" ({}:{})", digest.algorithm(), digest.short())).unwrap_or_default();
    format!("layer {} of {count}{digest}", index + 1)
}

/// Scans a layer, or waits for another process that scans it.
fn scan_one<'s>(
    layer: &PlannedLayer,
    open: &(dyn Fn(&LayerLocation) -> Result<LayerReader<'s>, SourceError> + Sync),
    context: ScanContext<'_>,
    what: &str,
) -> Result<ScannedLayer, ImageError> {
    let Some(blob) = layer.location.blob() else { return scan_here(layer, open, context, what) };
    // A known digest makes opening the blob unnecessary.
    if let Some(scanned) = cached(context, &blob) {
        return Ok(scanned);
    }
    // Another image of this run may be scanning the layer.
    let turn = context.cache.turn(&blob.digest);
    if let Some(scanned) = turn.as_ref().and_then(|_| cached(context, &blob)) {
        return Ok(scanned);
    }
    let here = || scan_here(layer, open, context, what);
    match context.cache.once(&ScanKey { blob: &blob, limits: context.limits }, context.cancel, here) {
        Some(scanned) => scanned,
        None => cached(context, &blob).map_or_else(here, Ok),
    }
}

fn scan_here<'s>(
    layer: &PlannedLayer,
    open: &(dyn Fn(&LayerLocation) -> Result<LayerReader<'s>, SourceError> + Sync),
    context: ScanContext<'_>,
    what: &str,
) -> Result<ScannedLayer, ImageError> {
    let known = |blob: &BlobRef| cached(context, blob);
    let (mut reader, size) = match open(&layer.location) {
        Err(error) if error.kind() == SourceErrorKind::Missing && layer.is_foreign() => {
            return Ok(ScannedLayer::missing_foreign(layer, what, &error.what));
        }
        opened => opened?,
    };
    let expected = promised(&layer.location, size);
    let meter = context.progress.begin(what, size.or(expected.as_ref().map(|blob| blob.size)));
    let error = |error| ImageError::Layer { layer: what.to_owned(), error };
    let limits = context.limits;
    let pool = context.pool;
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
            context.cancel,
            |pipe| scan_layer(pipe, limits, true, pool),
        );
        let scanned = ScannedLayer::whole(scan.map_err(error)?, expected.digest, expected.size);
        keep(context, &scanned, KeptUnder::Blob);
        return Ok(scanned);
    }
    // The stored bytes of an uncompressed layer are its diff, so the diff ID identifies them.
    let head = head(&mut reader).map_err(|failed| error(ScanError::Read(failed)))?;
    if let (Ok(Compression::None), Some(size), Some(digest)) = (Compression::detect(&head), size, layer.diff_id.clone())
        && let Some(scanned) = known(&BlobRef { digest, size })
    {
        return Ok(scanned);
    }
    // The digest of the stored bytes is unknown; the diff ID verifies the tar inside.
    let mut size = 0;
    let mut hasher = Hasher::sha256();
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
        context.cancel,
        |pipe| scan_layer(pipe, limits, true, pool),
    );
    let scanned = ScannedLayer::whole(scan.map_err(error)?, hasher.finish(), size);
    keep(context, &scanned, KeptUnder::BlobAndTar);
    Ok(scanned)
}

/// The first bytes, enough to detect the compression.
fn head(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    io::copy(&mut reader.take(8), &mut head)?;
    Ok(head)
}
