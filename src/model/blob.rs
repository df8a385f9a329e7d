//! What names the bytes of a blob.

use super::Digest;

/// What a manifest's descriptor says of a blob, reduced to what is needed to fetch and verify it
/// (OCI image-spec, `descriptor.md`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRef {
    /// Digest of the bytes as stored.
    pub digest: Digest,
    /// Their number.
    pub size: u64,
}
