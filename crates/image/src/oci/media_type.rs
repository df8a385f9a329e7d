//! The kinds of documents and layers, by media type (OCI image-spec, `media-types.md`; Docker Image Manifest V2,
//! Schema 2).

use oci_spec::image::Descriptor;

/// Annotation that is `attestation-manifest` on attestations that `BuildKit` attaches to an image.
const REFERENCE_TYPE: &str = "vnd.docker.reference.type";

/// Media types of image configurations. Registries before 2016 replaced them by the types after the first two, and
/// engines still accept those (moby/moby, `distribution/pull_v2.go`; distribution/distribution issue 1621).
const CONFIGS: [&str; 6] = [
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
    "application/octet-stream",
    "application/json",
    "text/html",
    "",
];

/// The kind of document that an index entry names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum IndexedKind {
    /// An image, unless its configuration or its layers show that it is an artifact.
    Manifest,
    Index,
    Attestation,
    /// An artifact of this type.
    Artifact(String),
    /// A document of an unknown media type: "MUST NOT be an error" (image-spec, `image-index.md`).
    Unknown(String),
}

impl IndexedKind {
    pub(super) fn of(entry: &Descriptor) -> Self {
        let reference_type = entry.annotations().as_ref().and_then(|annotations| annotations.get(REFERENCE_TYPE));
        if reference_type.is_some_and(|kind| kind == "attestation-manifest") {
            return Self::Attestation;
        }
        let artifact = entry.artifact_type().as_ref().map(ToString::to_string);
        if let Some(kind) = artifact.filter(|kind| !is_config(kind)) {
            return Self::Artifact(kind);
        }
        let media_type = entry.media_type().to_string();
        match &*media_type {
            "application/vnd.oci.image.manifest.v1+json" | "application/vnd.docker.distribution.manifest.v2+json" => {
                Self::Manifest
            }
            "application/vnd.oci.image.index.v1+json" | "application/vnd.docker.distribution.manifest.list.v2+json" => {
                Self::Index
            }
            _ => Self::Unknown(media_type),
        }
    }
}

/// Returns true for the media type of an image configuration.
pub(super) fn is_config(media_type: &str) -> bool {
    CONFIGS.contains(&media_type)
}

/// Returns true for the media type of a layer. Signatures and attestations have an image's configuration and other
/// layers (cosign: `application/vnd.dev.cosign.simplesigning.v1+json`).
pub(super) fn is_layer(media_type: &str) -> bool {
    let known = ["application/vnd.oci.image.layer.", "application/vnd.docker.image.rootfs."];
    let vague = ["application/octet-stream", "application/x-tar", "application/gzip", "application/x-gzip", ""];
    known.iter().any(|prefix| media_type.starts_with(prefix)) || vague.contains(&media_type)
}
