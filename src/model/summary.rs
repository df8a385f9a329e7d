//! What was read of an image, without its content.

use super::{Digest, Platform};

/// What was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageSummary {
    /// What the user asked for.
    pub reference: String,
    /// Where it was found: a transport and a place, such as `docker://localhost:5000/torch:2.9.0`.
    pub source: String,
    /// Digest of its manifest, where it has one.
    pub manifest: Option<Digest>,
    /// Digest of its configuration: the image ID.
    pub config: Option<Digest>,
    /// The platform that was judged.
    pub platform: Option<Platform>,
    /// Layers with content, the lowest first. A site's layer is an index into these.
    pub layers: Vec<LayerSummary>,
    /// Build steps that made no layer, such as `ENV`, as the builder wrote them.
    pub empty_steps: Vec<String>,
    /// Things worth a word that change nothing: a media type that lies, an attestation that was passed over.
    pub notes: Vec<String>,
}

/// One layer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerSummary {
    /// Digest of the blob as stored, where the medium tells it.
    pub digest: Option<Digest>,
    /// Digest of the tar inside, as the configuration has it.
    pub diff_id: Option<Digest>,
    /// `none`, `gzip` or `zstd`.
    pub compression: &'static str,
    /// Bytes as stored.
    pub size: u64,
    /// Bytes of it that were scanned.
    pub read: u64,
    /// Bytes of the tar inside; of its files alone, where the layer was read in part.
    pub unpacked: u64,
    /// Entries of the tar.
    pub entries: usize,
    /// Whether its scan was made before, and it was not read now.
    pub cached: bool,
    /// The build step that made it (`created_by` of its history), as the builder wrote it.
    pub history: Option<String>,
}

impl LayerSummary {
    /// What it is called in reports: the digest of the blob, else of the tar inside.
    pub fn name(&self) -> Option<&Digest> {
        self.digest.as_ref().or(self.diff_id.as_ref())
    }
}
