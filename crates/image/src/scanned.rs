//! A scanned layer: its verification, and its caching for the next run.

use std::io;
use std::sync::Arc;

use layer::cache::{CachedScan, ScanKey};
use layer::scan::{Compression, LayerScan, ScanError};
use model::{BlobRef, Digest, Gap, help_line};

use super::plan::{LayerLocation, PlannedLayer};
use super::{ImageError, ScanContext};

/// The layers of an image, lowest first.
pub(super) type ScannedLayers = Result<Vec<ScannedLayer>, ImageError>;

/// A layer that was scanned, with its verification.
#[derive(Clone, Debug)]
pub(super) struct ScannedLayer {
    pub(super) scan: Arc<LayerScan>,
    /// Digest of the stored blob, computed from its bytes. `None` for a folder.
    pub(super) stored: Option<Digest>,
    pub(super) size: u64,
    /// Number of stored bytes that were read: none if the scan comes from the cache and nothing else needed the bytes.
    pub(super) read: u64,
    /// True if the scan comes from the cache.
    pub(super) cached: bool,
    /// True if that scan may be another user's.
    pub(super) is_shared: bool,
    /// The reason why the content of the layer is unknown, or not all of it known.
    pub(super) unknown: Option<Gap>,
}

impl ScannedLayer {
    /// A layer that was read from its first byte to its last.
    pub(super) fn whole(scan: LayerScan, stored: Digest, size: u64) -> Self {
        Self { stored: Some(stored), size, read: size, ..Self::of(scan) }
    }

    /// A layer that is a folder, and so has no digest to verify.
    pub(super) fn unhashed(scan: LayerScan) -> Self {
        let size = scan.unpacked;
        Self { size, read: size, ..Self::of(scan) }
    }

    /// A foreign layer whose blob is not there, for this reason. `what` names it.
    pub(super) fn missing_foreign(layer: &PlannedLayer, what: &str, why: &str) -> Self {
        let gap = Gap::new(format!(
            "{what} is a foreign layer, which is not distributed with the image ({why}), and its URLs are never \
             contacted"
        ))
        .settled_by("check the image where that layer is present, such as in the engine that runs it");
        let blob = layer.location.blob();
        let size = blob.as_ref().map_or(0, |blob| blob.size);
        Self { stored: blob.map(|blob| blob.digest), size, unknown: Some(gap), ..Self::of(LayerScan::empty()) }
    }

    fn of(scan: LayerScan) -> Self {
        Self { scan: Arc::new(scan), stored: None, size: 0, read: 0, cached: false, is_shared: false, unknown: None }
    }

    /// The digest of the tar inside, if it was computed from every byte.
    pub(super) fn tar_digest(&self) -> Option<&Digest> {
        let is_plain = self.scan.compression == Compression::None && self.unknown.is_none();
        self.scan.diff_id.as_ref().or(if is_plain { self.stored.as_ref() } else { None })
    }
}

/// The cached scan of a blob. The blob has not been opened.
pub(super) fn cached(context: ScanContext<'_>, blob: &BlobRef) -> Option<ScannedLayer> {
    let CachedScan { scan, is_shared } = context.cache.get(&ScanKey { blob, limits: context.limits })?;
    // Without the digest of the tar, the diff ID could not be verified.
    let scanned = ScannedLayer::whole(scan, blob.digest.clone(), blob.size);
    scanned.tar_digest()?;
    Some(ScannedLayer { cached: true, is_shared, read: 0, ..scanned })
}

/// The digests under which a scan is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeptUnder {
    /// The digest of the blob, by which the next run finds it.
    Blob,
    /// Also that of the tar inside: the medium does not know the digest of the blob, and the tar may be stored
    /// uncompressed elsewhere.
    BlobAndTar,
}

/// Caches a scan under digests that were computed from its bytes.
pub(super) fn keep(context: ScanContext<'_>, scanned: &ScannedLayer, under: KeptUnder) {
    let limits = context.limits;
    let Some(stored) = &scanned.stored else { return };
    let blob = BlobRef { digest: stored.clone(), size: scanned.size };
    context.cache.put(&ScanKey { blob: &blob, limits }, &scanned.scan);
    if let (KeptUnder::BlobAndTar, Some(diff_id)) = (under, &scanned.scan.diff_id)
        && diff_id != stored
    {
        let tar = BlobRef { digest: diff_id.clone(), size: scanned.scan.unpacked };
        let scan = LayerScan { compression: Compression::None, ..LayerScan::clone(&scanned.scan) };
        context.cache.put(&ScanKey { blob: &tar, limits }, &scan);
    }
}

/// The digest and size that the location itself determines: from a descriptor, or from a member named by its digest.
pub(super) fn promised(location: &LayerLocation, size: Option<u64>) -> Option<BlobRef> {
    match location {
        LayerLocation::Blob { .. } => location.blob(),
        LayerLocation::Folder(_) | LayerLocation::Squashfs => None,
        LayerLocation::Member(path) => {
            let parts: Vec<&str> =
                path.components().map(|part| std::str::from_utf8(part).unwrap_or_default()).collect();
            let [.., "blobs", algorithm, hex] = *parts.as_slice() else { return None };
            Some(BlobRef { digest: format!("{algorithm}:{hex}").parse().ok()?, size: size? })
        }
    }
}

/// Verifies the layer's tar against the diff ID in the configuration. A layer that was not read has no digest to compare.
pub(super) fn verify_diff_id(scanned: &ScannedLayer, diff_id: Option<&Digest>, what: &str) -> Result<(), ImageError> {
    let Some((found, expected)) = scanned.tar_digest().zip(diff_id).filter(|(found, expected)| found != expected)
    else {
        return Ok(());
    };
    let short = |digest: &Digest| format!("{}:{}", digest.algorithm(), digest.short());
    let found = short(found);
    let expected = short(expected);
    let text = format!(
        "the layer is corrupt: its tar has the digest {found}, but the image configuration says {expected}{}",
        help_line(Some("build or push the image again: Docker and containerd refuse it"))
    );
    Err(ImageError::Layer {
        layer: what.to_owned(),
        error: ScanError::Read(io::Error::new(io::ErrorKind::InvalidData, text)),
    })
}
