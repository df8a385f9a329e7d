//! References to blobs.

use super::Digest;

/// The fields of a descriptor that are needed to fetch and verify a blob (OCI image-spec, `descriptor.md`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRef {
    /// Digest of the stored bytes.
    pub digest: Digest,
    /// Number of stored bytes.
    pub size: u64,
}
