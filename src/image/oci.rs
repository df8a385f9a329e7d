//! Manifests, indexes and configurations (OCI image-spec; Docker Image Manifest V2, Schema 2): lists the images and
//! selects the requested ones.

use oci_spec::image::{Descriptor, ImageIndex, ImageManifest};
use serde::Deserialize;

use crate::image::source::{Source, SourceError, read_bounded};
use crate::image::target::Selector;
use crate::model::{BlobRef, Digest, Limits, Platform, printable};

use super::plan::{DescribedLayer, ImagePlan, LayerLocation, check_platform, configure, over};
use super::{ImageError, PlatformChoice, soci};

/// `org.opencontainers.image.ref.name` (image-spec, `annotations.md`).
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// Annotation with which containerd and Docker name an image in a layout.
const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// Annotation that is `attestation-manifest` on attestations that `BuildKit` attaches to an image.
const REFERENCE_TYPE: &str = "vnd.docker.reference.type";

/// The fields that determine a document's kind: a media type from outside may be wrong (CVE-2021-41190).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct Shape {
    schema_version: Option<u64>,
    media_type: Option<String>,
    config: Option<serde::de::IgnoredAny>,
    layers: Option<serde::de::IgnoredAny>,
    manifests: Option<serde::de::IgnoredAny>,
    fs_layers: Option<serde::de::IgnoredAny>,
}

/// A manifest that may be the requested one.
struct ManifestCandidate {
    blob: BlobRef,
    platform: Option<Platform>,
    names: Vec<String>,
}

/// Finds the images of a source.
pub(super) struct Finder<'a> {
    source: &'a dyn Source,
    limits: &'a Limits,
    candidates: Vec<ManifestCandidate>,
    notes: Vec<String>,
}

impl<'a> Finder<'a> {
    /// Plans the requested images.
    pub(super) fn plans(
        source: &'a dyn Source,
        selector: Option<&Selector>,
        choice: &PlatformChoice,
        limits: &'a Limits,
    ) -> Result<Vec<ImagePlan>, ImageError> {
        let mut finder = Self { source, limits, candidates: Vec::new(), notes: Vec::new() };
        let top = source.top()?;
        match Self::shape(&top.bytes, top.media_type.as_deref())? {
            DocumentKind::Manifest => {
                let plan = finder.plan(&top.bytes, top.digest)?;
                check_platform(&plan, choice)?;
                Ok(vec![plan])
            }
            DocumentKind::Index => {
                finder.index(&top.bytes, &[], 0)?;
                finder.choose(selector, choice)
            }
        }
    }

    fn shape(bytes: &[u8], media_type: Option<&str>) -> Result<DocumentKind, ImageError> {
        let shape: Shape = serde_json::from_slice(bytes)
            .map_err(|error| ImageError::invalid(format!("the manifest is not JSON of the expected form: {error}")))?;
        if shape.schema_version == Some(1) || shape.fs_layers.is_some() {
            return Err(ImageError::invalid(
                "the manifest uses Docker's schema 1, which has been obsolete since 2015: push the image \
                 again with a current Docker",
            ));
        }
        let declared = shape.media_type.as_deref().or(media_type);
        match (shape.manifests.is_some(), shape.config.is_some() && shape.layers.is_some()) {
            (true, true) => Err(ImageError::invalid("the document is ambiguous: it has both manifests and layers")),
            (true, false) => Ok(DocumentKind::Index),
            (false, true) => Ok(DocumentKind::Manifest),
            (false, false) => Err(ImageError::invalid(format!(
                "the document is neither an image manifest nor an index{}",
                declared.map(|kind| format!(" (its media type is '{}')", printable(kind))).unwrap_or_default()
            ))),
        }
    }

    /// Collects the manifests of an index. `names` are those of the enclosing index.
    fn index(&mut self, bytes: &[u8], names: &[String], depth: usize) -> Result<(), ImageError> {
        let index: ImageIndex = serde_json::from_slice(bytes)
            .map_err(|error| ImageError::invalid(format!("the image index is malformed: {error}")))?;
        for descriptor in index.manifests() {
            let blob = blob_ref(descriptor)?;
            let annotations = descriptor.annotations().clone().unwrap_or_default();
            if annotations.get(REFERENCE_TYPE).is_some_and(|kind| kind == "attestation-manifest") {
                self.notes.push(format!("skipped attestation manifest {}", blob.digest));
                continue;
            }
            if let Some(kind) = descriptor.artifact_type() {
                let kind = kind.to_string();
                // A SOCI index is not an image; a note reports its use when layers are read.
                if soci::is_index(&kind) {
                    continue;
                }
                self.notes.push(format!("skipped artifact {} ({})", blob.digest, printable(&kind)));
                continue;
            }
            let mut names = names.to_vec();
            names.extend([REF_NAME, CONTAINERD_NAME].iter().filter_map(|key| annotations.get(*key).cloned()));
            let media_type = descriptor.media_type().to_string();
            if media_type.ends_with("index.v1+json") || media_type.ends_with("manifest.list.v2+json") {
                if depth >= self.limits.nesting {
                    let what = format!("image indexes are nested {} deep", depth + 2);
                    return Err(over(what, "nesting", self.limits.nesting as u64));
                }
                let bytes = self.document(&blob)?;
                self.index(&bytes, &names, depth + 1)?;
                continue;
            }
            let platform = descriptor.platform().as_ref().map(|platform| Platform {
                os: platform.os().to_string(),
                architecture: platform.architecture().to_string(),
                variant: platform.variant().clone(),
            });
            self.candidates.push(ManifestCandidate { blob, platform, names });
            if self.candidates.len() > self.limits.layers {
                let what = format!("the image index names {} images", self.candidates.len());
                return Err(over(what, "layers", self.limits.layers as u64));
            }
        }
        Ok(())
    }

    /// Selects by name or digest first, then by platform.
    fn choose(mut self, selector: Option<&Selector>, choice: &PlatformChoice) -> Result<Vec<ImagePlan>, ImageError> {
        let all = std::mem::take(&mut self.candidates);
        let wanted = named(&all, selector)?;
        let mut plans = Vec::new();
        for candidate in wanted.iter().filter(|candidate| candidate.serves(choice, wanted.len() == 1)) {
            let bytes = self.document(&candidate.blob)?;
            let plan = self.plan(&bytes, candidate.blob.digest.clone())?;
            if check_platform(&plan, choice).is_ok() {
                plans.push(plan);
            }
        }
        let Some(first) = plans.first() else { return Err(not_offered(&wanted, choice)) };
        if *choice == PlatformChoice::All {
            return Ok(plans);
        }
        // Variants of an architecture are in the index's order of preference, but two images for the same platform are
        // ambiguous.
        let is_rival =
            |plan: &&ImagePlan| plan.manifest != first.manifest && plan.config.platform == first.config.platform;
        if plans.iter().any(|plan| is_rival(&plan)) {
            let lines =
                wanted.iter().map(|candidate| format!("{} {}", candidate.blob.digest, candidate.names.join(" ")));
            let list: Vec<_> = lines.map(|line| printable(line.trim_end()).into_owned()).collect();
            let what = "several images match; choose one by name or by @DIGEST";
            return Err(ImageError::invalid(format!("{what}:\n  {}", list.join("\n  "))));
        }
        plans.truncate(1);
        Ok(plans)
    }

    /// Fetches a document by digest and verifies it.
    fn document(&self, blob: &BlobRef) -> Result<Vec<u8>, ImageError> {
        if blob.size > self.limits.document {
            let what = format!("document {} has {} bytes", blob.digest, blob.size);
            return Err(over(what, "document", self.limits.document));
        }
        let bytes = self.source.manifest(&blob.digest)?;
        verify(&bytes, blob)?;
        Ok(bytes)
    }

    /// Plans the image of one manifest.
    fn plan(&mut self, bytes: &[u8], digest: Digest) -> Result<ImagePlan, ImageError> {
        Self::shape(bytes, None)?;
        let manifest: ImageManifest = serde_json::from_slice(bytes)
            .map_err(|error| ImageError::invalid(format!("manifest {digest} is malformed: {error}")))?;
        let config_type = manifest.config().media_type().to_string();
        if !matches!(
            config_type.as_str(),
            "application/vnd.oci.image.config.v1+json" | "application/vnd.docker.container.image.v1+json"
        ) {
            let what =
                format!("manifest {digest} describes an artifact ({}), not a container image", printable(&config_type));
            return Err(ImageError::invalid(what));
        }
        let blob = blob_ref(manifest.config())?;
        if blob.size > self.limits.document {
            let what = format!("configuration {} has {} bytes", blob.digest, blob.size);
            return Err(over(what, "document", self.limits.document));
        }
        let reader = self.source.open(&blob)?;
        let bytes = read_bounded(reader, self.limits.document, &format!("reading configuration {}", blob.digest))?;
        verify(&bytes, &blob)?;
        let mut notes = self.notes.clone();
        let mut layers = Vec::new();
        for descriptor in manifest.layers() {
            let media_type = descriptor.media_type().to_string();
            let is_foreign = media_type.contains("nondistributable") || media_type.contains("foreign");
            if is_foreign {
                notes.push(format!(
                    "skipped foreign layer {}: it is not distributed with the image",
                    descriptor.digest()
                ));
            }
            if media_type.ends_with("+encrypted") {
                return Err(ImageError::invalid(format!("layer {} is encrypted", descriptor.digest())));
            }
            let blob = blob_ref(descriptor)?;
            let location = LayerLocation::Blob { digest: blob.digest, size: blob.size };
            let annotations = descriptor.annotations().clone().unwrap_or_default().into_iter().collect();
            layers.push((!is_foreign).then_some(DescribedLayer {
                location,
                media_type: Some(media_type),
                annotations,
            }));
        }
        let annotations = manifest.annotations().clone().unwrap_or_default().into_iter().collect();
        let plan = configure(&bytes, blob.digest, Some(digest), layers, notes, self.limits)?;
        Ok(ImagePlan { annotations, ..plan })
    }
}

enum DocumentKind {
    Manifest,
    Index,
}

impl ManifestCandidate {
    /// Returns true if the candidate is worth fetching. A platform that the index omits is in the configuration.
    fn serves(&self, choice: &PlatformChoice, is_only_one: bool) -> bool {
        match (choice, &self.platform) {
            (PlatformChoice::One(asked), Some(offered)) => asked.is_served_by(offered),
            (PlatformChoice::Host, Some(offered)) => is_only_one || Platform::host().is_served_by(offered),
            (_, None) | (PlatformChoice::All, _) => true,
        }
    }

    /// Matches a full name, which Podman writes, or a tag alone, which Docker writes.
    fn is_named(&self, asked: &str) -> bool {
        self.names.iter().any(|name| name == asked || name.rsplit_once(':').is_some_and(|(_, tag)| tag == asked))
    }
}

/// The candidates that match a selector.
fn named<'c>(
    all: &'c [ManifestCandidate],
    selector: Option<&Selector>,
) -> Result<Vec<&'c ManifestCandidate>, ImageError> {
    let wanted: Vec<_> = match selector {
        Some(Selector::Name(name)) => all.iter().filter(|candidate| candidate.is_named(name)).collect(),
        Some(Selector::Digest(digest)) => all.iter().filter(|candidate| candidate.blob.digest == *digest).collect(),
        Some(Selector::Index(index)) => all.get(*index).into_iter().collect(),
        None => all.iter().collect(),
    };
    if wanted.is_empty() {
        if all.is_empty() {
            return Err(ImageError::invalid("the index lists no images"));
        }
        let mut names: Vec<_> = all.iter().flat_map(|candidate| &candidate.names).map(|name| printable(name)).collect();
        // The images of a nested index share its name.
        names.dedup();
        let asked = selector.map(ToString::to_string).unwrap_or_default();
        let what = format!("no image '{asked}' in the index; available: {}", names.join(", "));
        return Err(ImageError::invalid(what));
    }
    Ok(wanted)
}

/// The error when no candidate is for the platform; lists the available ones.
fn not_offered(wanted: &[&ManifestCandidate], choice: &PlatformChoice) -> ImageError {
    let asked = match choice {
        PlatformChoice::One(platform) => platform.clone(),
        PlatformChoice::Host | PlatformChoice::All => Platform::host(),
    };
    let offered: Vec<_> =
        wanted.iter().filter_map(|candidate| candidate.platform.as_ref()).map(ToString::to_string).collect();
    ImageError::Source(SourceError::Invalid {
        what: format!("no {asked} image; available: {}", printable(&offered.join(", "))),
        hint: Some("choose one with --platform, or all with --all-platforms".to_owned()),
    })
}

/// Verifies the size and the digest of bytes against their descriptor.
fn verify(bytes: &[u8], blob: &BlobRef) -> Result<(), ImageError> {
    let mut hasher = blob.digest.hasher();
    hasher.update(bytes);
    let found = hasher.finish();
    if bytes.len() as u64 != blob.size {
        let what = format!("document {} has {} bytes, its descriptor says {}", blob.digest, bytes.len(), blob.size);
        return Err(ImageError::invalid(what));
    }
    if found != blob.digest {
        return Err(ImageError::invalid(format!(
            "document {} is corrupt: its bytes have the digest {found}",
            blob.digest
        )));
    }
    Ok(())
}

fn blob_ref(descriptor: &Descriptor) -> Result<BlobRef, ImageError> {
    let digest = descriptor.digest().to_string().parse().map_err(SourceError::from)?;
    Ok(BlobRef { digest, size: descriptor.size() })
}

#[cfg(test)]
mod tests;
