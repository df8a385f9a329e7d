//! Summary of an image without its content.

use super::{Digest, Platform};

/// Summary of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageSummary {
    /// Image reference as the user wrote it.
    pub reference: String,
    /// Resolved source: a transport and a location, such as `docker://localhost:5000/torch:2.9.0`. Empty for a program
    /// that ran in place.
    pub source: String,
    /// The place that served the image if it is not the one in `source`: a mirror or a rewritten location, with the file
    /// and line that configure it.
    pub served_by: Option<String>,
    /// Digest of the manifest, if the image has one.
    pub manifest: Option<Digest>,
    /// Digest of the image configuration: the image ID.
    pub config: Option<Digest>,
    /// Platform of the image.
    pub platform: Option<Platform>,
    /// Layers with content, lowest first. The layer of a site is an index into this list.
    pub layers: Vec<LayerSummary>,
    /// Build steps without a layer, such as `ENV`, as the builder recorded them.
    pub empty_steps: Vec<String>,
    /// Notes that do not affect the verdict: a wrong media type, a skipped attestation.
    pub notes: Vec<String>,
}

/// Summary of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerSummary {
    /// Digest of the stored blob, if the source provides it.
    pub digest: Option<Digest>,
    /// Diff ID: digest of the uncompressed tar, from the configuration.
    pub diff_id: Option<Digest>,
    /// True if the diff ID was compared with the digest of all the tar's bytes. False for a layer
    /// whose bytes are missing, and for a folder.
    pub diff_id_verified: bool,
    /// Compression: `none`, `gzip` or `zstd`.
    pub compression: &'static str,
    /// Stored size in bytes.
    pub size: u64,
    /// Stored bytes that were read: none if the scan came from the cache.
    pub read: u64,
    /// Size of the uncompressed tar in bytes.
    pub unpacked: u64,
    /// Number of entries in the tar.
    pub entries: usize,
    /// True if the scan came from the cache, so that the layer was not read.
    pub cached: bool,
    /// True if that cache was a shared one, into which other users write.
    pub shared: bool,
    /// Build step that created the layer (`created_by` in the history), as the builder recorded it.
    pub history: Option<String>,
}

impl LayerSummary {
    /// Returns the layer's name in reports: the digest of the blob, or else the diff ID.
    pub fn name(&self) -> Option<&Digest> {
        self.digest.as_ref().or(self.diff_id.as_ref())
    }
}
