//! SOCI indexes (soci-snapshotter, `docs/index.md`): an artifact stored beside an image, with a zTOC for each of its
//! larger layers.
//!
//! An image's manifest names its version 2 index, so the image's digest covers the index. A version 1 index only claims
//! to belong to the image, and is used only if the user waives verification.

use std::fmt;
use std::io;
use std::sync::OnceLock;

use oci_spec::image::{Descriptor, ImageManifest};

use crate::model::BlobRef;

use crate::image::source::{Source, SourceError};
use crate::image::verify::Verified;
use crate::layer::scan::Annotations;
use crate::model::{Digest, Limits, OverLimit, printable};

use super::go_json::parse_document;
use super::plan::ImagePlan;

/// Annotation of a manifest: the digest of its index (`docs/soci-index-manifest-v2.md`, `soci/soci_index.go`).
const INDEX_DIGEST: &str = "com.amazon.soci.index-digest";

/// Annotation of a descriptor in an index: the digest of the layer that the zTOC describes.
const LAYER_DIGEST: &str = "com.amazon.soci.image-layer-digest";

/// The media type of zTOCs.
const ZTOC: &str = "application/octet-stream";

/// The link between an index and an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// Version 2: the image names the index.
    ByImage,
    /// Version 1: the index names the image.
    ByItself,
}

impl Binding {
    /// The media type of the index's configuration, which is its artifact type.
    const fn artifact_type(self) -> &'static str {
        match self {
            Self::ByImage => "application/vnd.amazon.soci.index.v2+json",
            Self::ByItself => "application/vnd.amazon.soci.index.v1+json",
        }
    }
}

/// Returns true if this artifact in an image index is a SOCI index.
pub(super) fn is_index(artifact_type: &str) -> bool {
    artifact_type == Binding::ByImage.artifact_type()
}

/// The zTOCs of an image's layers. The index is fetched when the first layer is read.
pub(super) struct SociTables<'a> {
    pub(super) source: &'a dyn Source,
    manifest: Option<&'a Digest>,
    annotations: &'a Annotations,
    is_unverified: bool,
    limits: &'a Limits,
    index: OnceLock<Result<Option<SociIndex>, SociError>>,
}

/// A layer's zTOC.
pub(super) struct LayerZtoc {
    pub(super) bytes: Vec<u8>,
    pub(super) binding: Binding,
}

/// The reason why there is no zTOC.
#[derive(Clone, Debug)]
pub(super) enum SociError {
    /// Layers can be read without it.
    Unusable(String),
    /// The zTOC exists, but its digest is wrong.
    Fatal(String),
}

impl From<SourceError> for SociError {
    fn from(error: SourceError) -> Self {
        Self::Unusable(error.to_string())
    }
}

/// A SOCI index.
struct SociIndex {
    digest: Digest,
    binding: Binding,
    manifest: ImageManifest,
}

impl fmt::Debug for SociTables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SociTables").field("manifest", &self.manifest).finish_non_exhaustive()
    }
}

impl<'a> SociTables<'a> {
    /// The zTOCs of a planned image; with `is_unverified`, also those of an index that the image does not name.
    pub(super) fn new(source: &'a dyn Source, plan: &'a ImagePlan, is_unverified: bool, limits: &'a Limits) -> Self {
        let (manifest, annotations) = (plan.manifest.as_ref(), &plan.annotations);
        Self { source, manifest, annotations, is_unverified, limits, index: OnceLock::new() }
    }

    /// The zTOC of a layer, if it has one.
    pub(super) fn of(&self, layer: &Digest) -> Result<Option<LayerZtoc>, SociError> {
        let index = match self.index.get_or_init(|| self.find()) {
            Ok(Some(index)) => index,
            // Reported once for all layers, in [`Self::note`].
            Ok(None) | Err(SociError::Unusable(_)) => return Ok(None),
            Err(fatal) => return Err(fatal.clone()),
        };
        let said = |table: &Descriptor| table.annotations().as_ref().and_then(|all| all.get(LAYER_DIGEST).cloned());
        let is_table = |table: &&Descriptor| {
            table.media_type().to_string() == ZTOC && said(table).is_some_and(|digest| digest == layer.as_str())
        };
        let Some(table) = index.manifest.layers().iter().find(is_table) else { return Ok(None) };
        let digest = table.digest().to_string().parse().map_err(SourceError::from)?;
        let bytes = self.fetch(&BlobRef { digest, size: table.size() })?;
        Ok(Some(LayerZtoc { bytes, binding: index.binding }))
    }

    /// Note for the report: the index is unusable, or was used unverified.
    pub(super) fn note(&self) -> Option<String> {
        match self.index.get()? {
            Err(SociError::Unusable(why) | SociError::Fatal(why)) => {
                Some(format!("the SOCI index cannot be used: {why}"))
            }
            Ok(Some(SociIndex { binding: Binding::ByItself, digest, .. })) => Some(format!(
                "layers read in part by the SOCI index {digest} are not verified: the image does not name this index, \
                 and anyone who can push to the repository may have attached it (--unverified)"
            )),
            Ok(_) => None,
        }
    }

    fn find(&self) -> Result<Option<SociIndex>, SociError> {
        if let Some(text) = self.annotations.get(INDEX_DIGEST) {
            let digest =
                text.parse().map_err(|error| SociError::Unusable(format!("its annotation is invalid: {error}")))?;
            return self.index(digest, Binding::ByImage).map(Some);
        }
        let Some(manifest) = self.manifest.filter(|_| self.is_unverified) else { return Ok(None) };
        let binding = Binding::ByItself;
        let first = self.source.referrers(manifest, binding.artifact_type())?.into_iter().next();
        let Some(index) = first.map(|digest| self.index(digest, binding)).transpose()? else { return Ok(None) };
        let subject = index.manifest.subject().as_ref().map(|subject| subject.digest().to_string());
        if subject.as_deref() != Some(manifest.as_str()) {
            return Err(SociError::Unusable(format!("{} belongs to another image", index.digest)));
        }
        Ok(Some(index))
    }

    fn index(&self, digest: Digest, binding: Binding) -> Result<SociIndex, SociError> {
        let bytes = self.source.manifest(&digest)?;
        let mut hasher = digest.hasher();
        hasher.update(&bytes);
        let found = hasher.finish();
        if found != digest {
            return Err(SociError::Fatal(format!("SOCI index {digest} is corrupt: its bytes have the digest {found}")));
        }
        let manifest: ImageManifest =
            parse_document(&bytes).map_err(|error| SociError::Unusable(format!("{digest} is malformed: {error}")))?;
        let kind = manifest.config().media_type().to_string();
        if kind != binding.artifact_type() {
            return Err(SociError::Unusable(format!("{digest} has the type {}", printable(&kind))));
        }
        Ok(SociIndex { digest, binding, manifest })
    }

    /// Fetches a zTOC and verifies it against the index.
    fn fetch(&self, blob: &BlobRef) -> Result<Vec<u8>, SociError> {
        let most = self.limits.toc;
        if blob.size > most {
            let over = OverLimit::new(format!("it has {} bytes", blob.size), "toc", most);
            return Err(SociError::Unusable(format!("its SOCI table cannot be used: {over}")));
        }
        let reader = self.source.open(blob);
        let reader =
            reader.map_err(|error| SociError::Unusable(format!("its SOCI table cannot be fetched: {error}")))?;
        let mut bytes = Vec::new();
        let read = io::copy(&mut Verified::new(reader, blob.clone()), &mut bytes);
        read.map_err(|error| SociError::Fatal(format!("reading its SOCI table: {error}")))?;
        Ok(bytes)
    }
}
