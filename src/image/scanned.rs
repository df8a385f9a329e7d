//! A scanned layer: its verification, and its caching for the next run.

use std::io;
use std::sync::Arc;

use crate::layer::cache::ScanKey;
use crate::layer::scan::{Compression, LayerScan, ScanError};
use crate::model::{BlobRef, Digest};

use super::plan::LayerLocation;
use super::{ImageError, ScanContext};

/// A layer that was scanned, with its verification.
#[derive(Clone, Debug)]
pub(super) struct ScannedLayer {
    pub(super) scan: Arc<LayerScan>,
    /// Digest of the stored blob, computed from its bytes unless only parts were read. `None` for a folder.
    pub(super) stored: Option<Digest>,
    pub(super) size: u64,
    /// Number of bytes read for the scan.
    pub(super) read: u64,
    /// True if the scan comes from the cache.
    pub(super) cached: bool,
    /// The table of contents of a partial read; `None` for a blob that was read whole and verified.
    pub(super) part: Option<TableOfContents>,
    /// The reason why the layer was read whole, or not compared with its table of contents.
    pub(super) note: Option<String>,
}

impl ScannedLayer {
    /// A layer that was read from its first byte to its last.
    pub(super) fn whole(scan: LayerScan, stored: Digest, size: u64) -> Self {
        Self { stored: Some(stored), size, read: size, ..Self::unhashed(scan) }
    }

    /// A layer that is a folder, and so has no digest to verify.
    pub(super) fn unhashed(scan: LayerScan) -> Self {
        let size = scan.unpacked;
        Self { scan: Arc::new(scan), stored: None, size, read: size, cached: false, part: None, note: None }
    }
}

/// The table of contents of a partial read.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableOfContents {
    /// Name for reports.
    pub(super) form: &'static str,
    /// True if the image's digest covers it.
    pub(super) is_verified: bool,
}

/// The cached scan of a blob.
pub(super) fn cached(context: ScanContext<'_>, blob: &BlobRef) -> Option<ScannedLayer> {
    let scan = context.cache.get(&ScanKey { blob, limits: context.limits })?;
    Some(ScannedLayer { cached: true, ..ScannedLayer::whole(scan, blob.digest.clone(), blob.size) })
}

/// Caches a scan under every digest computed from its bytes: that of the blob, and that of the tar inside, which may be
/// stored uncompressed elsewhere. A partially read blob has no computed digest.
pub(super) fn keep(context: ScanContext<'_>, scanned: &ScannedLayer) {
    let limits = context.limits;
    let Some(stored) = &scanned.stored else { return };
    let blob = BlobRef { digest: stored.clone(), size: scanned.size };
    let Some(diff_id) = &scanned.scan.diff_id else {
        context.cache.put(&ScanKey { blob: &blob, limits }, &scanned.scan);
        return;
    };
    // `diff_id` depends on the request, not on the bytes, so it is not cached.
    let scan = LayerScan { diff_id: None, ..LayerScan::clone(&scanned.scan) };
    context.cache.put(&ScanKey { blob: &blob, limits }, &scan);
    if diff_id != stored {
        let tar = BlobRef { digest: diff_id.clone(), size: scan.unpacked };
        context.cache.put(&ScanKey { blob: &tar, limits }, &LayerScan { compression: Compression::None, ..scan });
    }
}

/// The digest and size that the location itself determines: from a descriptor, or from a member named by its digest.
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

/// Verifies the layer's tar against the diff ID in the configuration.
pub(super) fn verify_diff_id(scanned: &ScannedLayer, diff_id: Option<&Digest>, what: &str) -> Result<(), ImageError> {
    let Some(diff_id) = diff_id else { return Ok(()) };
    let plain = (scanned.scan.compression == Compression::None).then(|| scanned.stored.clone()).flatten();
    let Some(found) = scanned.scan.diff_id.clone().or(plain).filter(|found| found != diff_id) else { return Ok(()) };
    let text =
        format!("the layer is corrupt: its tar has the digest {found}, but the image configuration says {diff_id}");
    Err(ImageError::Layer {
        layer: what.to_owned(),
        error: ScanError::Read(io::Error::new(io::ErrorKind::InvalidData, text)),
    })
}
