//! Summary of an image without its content, as reports have it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Digest, Platform};

/// The image and its layers. Unknown values are null.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Image")]
pub struct ImageSummary {
    /// The reference as the user wrote it.
    pub reference: String,
    /// The source where the image was found: a transport and a location.
    // Empty for a program that ran in place.
    #[serde(default)]
    pub source: String,
    /// The place that served the image if it is not the one in `source`: a mirror or a rewritten location, with the file
    /// and line that configure it.
    pub served_by: Option<String>,
    /// Digest of the manifest.
    pub manifest: Option<Digest>,
    /// Digest of the configuration: the image ID.
    pub config: Option<Digest>,
    /// The platform that was judged: os/arch[/variant].
    pub platform: Option<Platform>,
    /// Layers with content, lowest first.
    // The layer of a site is an index into this list.
    #[serde(default)]
    pub layers: Vec<LayerSummary>,
    /// Build steps without a layer, such as `ENV`, as the builder recorded them.
    // Reports leave them out: they may have secrets.
    #[serde(skip)]
    pub empty_steps: Vec<String>,
    /// Notes for the reader that do not affect the verdict.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One layer. Unknown values are null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Layer")]
pub struct LayerSummary {
    /// Digest of the stored blob.
    pub digest: Option<Digest>,
    /// Diff ID: digest of the uncompressed tar.
    pub diff_id: Option<Digest>,
    /// True if all bytes of the tar were compared with the diff ID. False if its bytes are missing, or if it is a
    /// folder.
    pub diff_id_verified: bool,
    /// Compression of the blob: none, gzip or zstd.
    pub compression: String,
    /// Size of the stored blob in bytes.
    pub size: u64,
    /// Bytes of the blob that were read: none if the scan came from the cache.
    pub read: u64,
    /// Size of the uncompressed tar in bytes.
    pub unpacked: u64,
    /// Number of entries in the tar.
    pub entries: usize,
    /// True if the scan came from the cache, which changes only `read`.
    pub cached: bool,
    /// True if that cache was a shared one, into which other users write.
    #[serde(default)]
    pub shared: bool,
    /// The build step that made the layer, as the builder wrote it.
    pub history: Option<String>,
}

impl LayerSummary {
    /// Returns the layer's name in reports: the digest of the blob, or else the diff ID.
    pub fn name(&self) -> Option<&Digest> {
        self.digest.as_ref().or(self.diff_id.as_ref())
    }
}
