//! A scanned layer: what it is checked against, and how it is kept for the next run.

use std::io;
use std::sync::Arc;

use crate::layer::cache::ScanKey;
use crate::layer::scan::{Compression, LayerScan, ScanError};
use crate::model::{BlobRef, Digest};

use super::plan::LayerLocation;
use super::{ImageError, ScanContext};

/// A layer that was scanned, and whose bytes are the promised ones.
#[derive(Clone, Debug)]
pub(super) struct ScannedLayer {
    pub(super) scan: Arc<LayerScan>,
    /// Digest of the blob as stored: computed here, unless only parts were read. `None` for a folder, which has none.
    pub(super) stored: Option<Digest>,
    pub(super) size: u64,
    /// Bytes of the blob that the scan was made of.
    pub(super) read: u64,
    /// Whether the scan was made before.
    pub(super) cached: bool,
    /// The table of contents by which parts were read; `None` where the whole blob was, and verified.
    pub(super) part: Option<TableOfContents>,
    /// Why it could not be read in part, though it says that it can.
    pub(super) note: Option<String>,
}

impl ScannedLayer {
    /// A layer that was read from its first byte to its last.
    pub(super) fn whole(scan: LayerScan, stored: Digest, size: u64) -> Self {
        Self { scan: Arc::new(scan), stored: Some(stored), size, read: size, cached: false, part: None, note: None }
    }

    /// A layer that is a folder: nothing of it can be compared with a digest.
    pub(super) fn unhashed(scan: LayerScan) -> Self {
        let size = scan.unpacked;
        Self { scan: Arc::new(scan), stored: None, size, read: size, cached: false, part: None, note: None }
    }
}

/// The table of contents by which a layer was read in part.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableOfContents {
    /// For reports.
    pub(super) form: &'static str,
    /// Whether the image's digest covers it.
    pub(super) is_verified: bool,
}

/// The scan that was made before of a blob.
pub(super) fn cached(context: ScanContext<'_>, blob: &BlobRef) -> Option<ScannedLayer> {
    let scan = context.cache.get(&ScanKey { blob, limits: context.limits })?;
    Some(ScannedLayer { cached: true, ..ScannedLayer::whole(scan, blob.digest.clone(), blob.size) })
}

/// Keeps a scan under every digest that was computed of its bytes: of the blob, and of the tar inside, which may be stored
/// elsewhere without compression. A blob of which only parts were read has none.
pub(super) fn keep(context: ScanContext<'_>, scanned: &ScannedLayer) {
    let limits = context.limits;
    let Some(stored) = &scanned.stored else { return };
    let blob = BlobRef { digest: stored.clone(), size: scanned.size };
    let Some(diff_id) = &scanned.scan.diff_id else {
        context.cache.put(&ScanKey { blob: &blob, limits }, &scanned.scan);
        return;
    };
    // What a scan was asked for besides is no part of what the bytes hold.
    let scan = LayerScan { diff_id: None, ..LayerScan::clone(&scanned.scan) };
    context.cache.put(&ScanKey { blob: &blob, limits }, &scan);
    if diff_id != stored {
        let tar = BlobRef { digest: diff_id.clone(), size: scan.unpacked };
        context.cache.put(&ScanKey { blob: &tar, limits }, &LayerScan { compression: Compression::None, ..scan });
    }
}

/// What the location itself promises of the stored bytes: a descriptor, or a member named by its digest.
pub(super) fn promised(location: &LayerLocation, size: Option<u64>) -> Option<BlobRef> {
    match location {
        LayerLocation::Blob { .. } => location.blob(),
        LayerLocation::Folder(_) => None,
        LayerLocation::Member(path) => {
            let parts: Vec<&str> =
                path.components().map(|part| std::str::from_utf8(part).unwrap_or_default()).collect();
            let [.., "blobs", algorithm, hex] = *parts.as_slice() else { return None };
            Some(BlobRef { digest: format!("{algorithm}:{hex}").parse().ok()?, size: size? })
        }
    }
}

/// The tar of a layer against the configuration.
pub(super) fn verify_diff_id(scanned: &ScannedLayer, diff_id: Option<&Digest>, what: &str) -> Result<(), ImageError> {
    let Some(diff_id) = diff_id else { return Ok(()) };
    let plain = (scanned.scan.compression == Compression::None).then(|| scanned.stored.clone()).flatten();
    let Some(found) = scanned.scan.diff_id.clone().or(plain).filter(|found| found != diff_id) else { return Ok(()) };
    let text = format!("the layer is corrupt: its tar has the digest {found}, the image configuration says {diff_id}");
    Err(ImageError::Layer {
        layer: what.to_owned(),
        error: ScanError::Read(io::Error::new(io::ErrorKind::InvalidData, text)),
    })
}
